"""What operators stage for external systems, and its delivery after the commit."""
