"""Compressed files, read as streams of their content."""
