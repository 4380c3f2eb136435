"""The file formats: Hadoop XML, .properties, TOML and JSON, as keys, values and lines."""
