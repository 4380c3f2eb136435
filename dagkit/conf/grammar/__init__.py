"""What a key names: the grammar of property keys, and how names match."""
