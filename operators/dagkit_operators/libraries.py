"""Libraries that only some operators need, and that are installed with an extra of dagkit."""

import importlib
from typing import Any

from dagkit.errors import LibraryMissing


def library(name: str, extra: str) -> Any:
    """Import a module of a library. Raise `LibraryMissing` if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise LibraryMissing(name.partition(".")[0], extra, on_workers=True) from error
