"""Reader contexts for formats that are not lines of text."""
