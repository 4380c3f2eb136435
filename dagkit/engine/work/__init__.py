"""What waits for splittable operators, what it costs, who gets it in the next window, and where it is cut. Pure."""
