"""Applying a configuration to an application, and reporting the keys that matched nothing."""
