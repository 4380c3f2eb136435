"""Input operators on the driver: their discoveries, and the watermarks of the application."""
