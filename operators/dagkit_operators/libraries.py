"""Libraries that only some operators need, and that are installed with an extra of dagkit."""

import importlib
from typing import Any

from dagkit.errors import library_missing


def library(name: str, extra: str) -> Any:
    """Import a module of a library. Raise `library-missing` if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise library_missing(name.partition(".")[0], extra, on_workers=True) from error
