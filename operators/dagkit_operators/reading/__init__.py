"""Reading blocks and files: how their bytes become records."""
