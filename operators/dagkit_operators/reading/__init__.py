"""Readers: operators that read blocks and files, with a reader context that can be replaced."""
