"""What may change between two windows: requests, listeners, and the plan that runs."""
