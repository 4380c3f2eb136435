"""The execution of one slot in one window."""
