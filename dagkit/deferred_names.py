"""Names of a package whose modules are imported on first use, so that a process loads only what it uses."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def deferred(package: str, homes: Mapping[str, str], name: str) -> Any:
    """Return what a module of the package defines. `homes` has the module of each name."""
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(import_module(f"{package}.{homes[name]}"), name)
