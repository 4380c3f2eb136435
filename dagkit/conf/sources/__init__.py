"""The sources of settings, and which of them wins."""
