"""Blocks, events and their hashes: what is written."""
