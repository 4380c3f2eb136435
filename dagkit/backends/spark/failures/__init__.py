"""Spark failures, with their causes; and jobs that can be stopped."""
