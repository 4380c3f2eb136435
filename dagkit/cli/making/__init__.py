"""`dagkit new`: an application, for what one has or as an example."""
