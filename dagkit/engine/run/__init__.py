"""The loop: it decides what to do next, and does it."""
