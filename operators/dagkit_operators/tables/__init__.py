"""Rows for tables of databases and lakes: staged on workers as Arrow columns, and added window by window."""
