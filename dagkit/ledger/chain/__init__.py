"""One chain: reading it, appending to it, and promising windows."""
