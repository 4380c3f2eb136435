"""The run loop: it decides the next action, performs it and commits windows; and the beginning of a launch."""
