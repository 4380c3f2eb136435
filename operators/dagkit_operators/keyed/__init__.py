"""Operators that count, aggregate, join, deduplicate and sample items by key, also in windows of event time."""
