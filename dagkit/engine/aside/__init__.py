"""Work that is not done: set aside, given up by a user, or retried."""
