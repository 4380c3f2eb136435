"""The grammar of property keys, and how the names in keys match."""
