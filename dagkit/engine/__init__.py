"""The engine: what slots do in a window, and the loop that runs windows and commits them."""
