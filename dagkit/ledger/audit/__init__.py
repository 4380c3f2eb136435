"""Checking what is stored: replay, contents, completeness, orphans."""
