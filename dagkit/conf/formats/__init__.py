"""Property files as keys, values and lines: Hadoop XML, .properties, TOML, JSON."""
