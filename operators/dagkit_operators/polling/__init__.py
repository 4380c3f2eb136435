"""Polling for what is new."""
