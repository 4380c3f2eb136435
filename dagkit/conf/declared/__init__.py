"""Applications that are declared as data, in JSON or properties."""
