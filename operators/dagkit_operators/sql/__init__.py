"""Tables of SQL databases: reading and writing."""
