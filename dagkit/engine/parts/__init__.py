"""The parts of a run: each feature with its own fields, and what they share."""
