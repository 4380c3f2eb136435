"""The engine: what one slot does in one window, and the loop that runs windows and commits them."""
