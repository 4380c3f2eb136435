"""Reader contexts: how the bytes of a block become records."""
