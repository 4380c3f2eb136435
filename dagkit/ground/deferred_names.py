"""Names of a package whose modules are imported on first use, so that a process loads only what it uses."""

import re
import sys
from collections.abc import Mapping
from importlib import import_module
from operator import itemgetter
from typing import Any

LIBRARIES = ("dagkit", "dagkit_operators")
"""The packages whose names authors import."""

_NAME = re.compile(r"^from (\S+) import (\w+) as \2$", re.MULTILINE)


def homes_of(package: str) -> Mapping[str, str]:
    """The names that `__init__.pyi` of a package lists, each with the module that defines it."""
    spec: Any = sys.modules[package].__spec__
    listed = spec.loader.get_data(f"{spec.origin}i").decode()  # also from an archive
    return {name: home for home, name in sorted(_NAME.findall(listed), key=itemgetter(1))}


def deferred(package: str, homes: Mapping[str, str], name: str) -> Any:
    """Return a name of the package from the module that defines it. `homes` has the module of each name.

    Raise NamedElsewhere for a name of the other library, and for one of Apex that has a counterpart under another name.
    """
    if name not in homes:
        from dagkit.ground.names_of_apex import NamedElsewhere, hint  # noqa: PLC0415 - only a wrong name needs it

        advice = hint(name) or _other_library(package, name)
        if advice is not None:
            raise NamedElsewhere(name, package, advice)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(import_module(homes[name]), name)


def _other_library(package: str, name: str) -> str | None:
    others = (library for library in LIBRARIES if library != package)
    return next((f"write from {home} import {name}" for home in others if name in import_module(home).__all__), None)
