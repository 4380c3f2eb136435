"""Configuration: property files, the grammar of their keys, what each key sets, and applications that are declared."""
