"""Operators on items: mapping, filtering, counting."""
