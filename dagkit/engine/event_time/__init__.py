"""Event time: how far it has advanced at each operator, from the sources of watermarks downstream. Pure."""
