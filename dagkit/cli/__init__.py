"""The command line. It parses, asks the floors below and prints; results go to stdout, everything else to stderr."""

from dagkit.cli.group import main

__all__ = ["main"]
