"""The command line: it parses, calls the layers below and prints. Results go to stdout, everything else to stderr."""

from dagkit.cli.group import main

__all__ = ["main"]
