"""The parts of a run: each feature with its own fields, what they share, and what may change between two windows."""
