"""`dagkit new`: an application for the user's own input, or as an example."""
