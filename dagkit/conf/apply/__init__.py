"""What a configuration sets on an application, and which of its keys matched nothing."""
