"""Spark sessions: their Java, their settings, their master."""
