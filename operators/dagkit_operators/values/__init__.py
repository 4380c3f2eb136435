"""What is computed of values: the values that operators process, expressions, keys, event times."""
