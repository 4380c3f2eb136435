"""Writing items to files."""
