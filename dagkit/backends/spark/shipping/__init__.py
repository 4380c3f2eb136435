"""What travels between the driver and tasks: the program, rows of frames, large state."""
