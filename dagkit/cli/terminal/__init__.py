"""Printing for all commands."""
