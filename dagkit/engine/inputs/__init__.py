"""Input operators, which run on the driver."""
