"""Finding, importing and compiling the application that a command names."""
