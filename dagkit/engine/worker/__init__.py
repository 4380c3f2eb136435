"""What one slot does in one window."""
