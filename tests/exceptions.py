"""The exception classes of dagkit, complete whatever a test has imported before."""

import importlib
from pathlib import Path
from typing import Any

import dagkit
import dagkit_operators

_PACKAGES = (dagkit, dagkit_operators)


def exceptions() -> list[Any]:
    """Every exception class of dagkit and of the operator library."""
    for package in _PACKAGES:
        root = Path(package.__path__[0])
        for file in root.rglob("*.py"):
            if file.name != "__main__.py":
                importlib.import_module(".".join(file.relative_to(root.parent).with_suffix("").parts))
    names = {package.__name__ for package in _PACKAGES}
    return [kind for kind in _below(BaseException) if kind.__module__.split(".")[0] in names]


def _below(kind: type[BaseException]) -> set[type[BaseException]]:
    """All subclasses, however deep."""
    return {found for below in kind.__subclasses__() for found in (below, *_below(below))}
