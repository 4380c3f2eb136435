"""Input operators on the driver: what they discover, and how far event time has advanced."""
