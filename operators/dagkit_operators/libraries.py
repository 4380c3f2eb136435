"""Libraries that only some operators need, and that are installed with an extra of dagkit."""

import importlib
from typing import Any

from dagkit.errors import RunFailure


class LibraryMissing(RunFailure):
    """A library that an operator needs is not installed."""

    code = "library-missing"

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(
            f"the library {library} is not installed",
            f"run: pip install 'dagkit[{extra}]', on each machine that runs workers, too",
        )


def library(name: str, extra: str) -> Any:
    """Import a module of a library. Raise `LibraryMissing` if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise LibraryMissing(name.partition(".")[0], extra) from error
