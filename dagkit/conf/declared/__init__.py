"""Applications that are declared as data."""
