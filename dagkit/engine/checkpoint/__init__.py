"""What survives a window: checkpoints, the journal that keeps them, and how they fit a plan that changed."""
