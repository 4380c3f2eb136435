"""Output files: attempts stage them, checks run before the commit, and publishing follows it."""
