"""What happened in a run, for observers."""
