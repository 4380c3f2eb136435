"""The bytes of output files: staged by attempts, checked, put together, and published after the commit."""
