"""Where settings come from, and which of them wins."""
