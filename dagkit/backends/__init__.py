"""Backends, which run the windows of a plan: Spark, and the reference in plain Python."""
