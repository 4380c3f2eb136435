"""The stored form of blocks, events and hashes."""
