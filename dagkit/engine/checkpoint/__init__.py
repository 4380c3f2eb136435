"""Checkpoints, the journal that stores them, and their use under a changed plan."""
