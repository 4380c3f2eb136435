"""Names of a package whose modules are imported on first use, so that a process loads only what it uses."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def deferred(package: str, homes: Mapping[str, str], name: str) -> Any:
    """Return what a module of the package defines. `homes` has the module of each name.

    Raise NamedAsInApex for a name of Apex that has a counterpart under another name.
    """
    if name not in homes:
        from dagkit.names_of_apex import NamedAsInApex, hint  # noqa: PLC0415 - only a wrong name needs it

        counterpart = hint(name)
        if counterpart is not None:
            raise NamedAsInApex(name, package, counterpart)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(import_module(f"{package}.{homes[name]}"), name)
