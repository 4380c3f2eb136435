"""Receipts for input files that are committed with all their output."""
