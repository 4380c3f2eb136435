"""Output files and entries for external systems: staged by attempts, checked before the commit, published after it."""
