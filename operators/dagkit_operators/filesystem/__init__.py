"""Files on any filesystem: finding out what exists, opening it, recognising it later."""
