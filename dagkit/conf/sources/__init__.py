"""Where settings come from: files of several formats, the environment, the command line; and which one wins."""
