"""Which code a name in configuration may refer to: the author's, that of an operator library, or dagkit's.

Importing a module runs it, so a name is checked before its module is imported. See docs/security.md.
"""

import builtins
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

from dagkit.api.traces import is_authored

LIBRARIES = "dagkit.operators"
"""The entry-point group in which a library registers the package that holds its operators."""

BUILTINS = ("str", "int", "float", "bool", "bytes", "dict", "list", "tuple", "set", "object")
"""The builtin classes that a name may refer to, with their methods."""

_OWN_LIBRARY = "dagkit_operators"
_VALUES = frozenset({"collections", "datetime", "decimal", "fractions", "ipaddress", "pathlib", "uuid"})
"""The modules of the standard library that define classes of plain values."""


@cache
def library_names() -> tuple[str, ...]:
    """The packages that hold operators: dagkit's own, and those registered under the entry point."""
    named = [point.value.partition(":")[0] for point in importlib.metadata.entry_points(group=LIBRARIES)]
    return tuple(dict.fromkeys([_OWN_LIBRARY, *named]))


def may_be_named(module: str, home: str | None) -> bool:
    """Whether a name in configuration may refer to this module. `home` is the module of the application.

    A module that runs as a program, such as `package.__main__`, must not be imported again under its name.
    """
    if module in sys.modules and module == home:
        return True
    if any(part.startswith("__") for part in module.split(".")) and module not in sys.modules:
        return False
    top = _top(module)
    return top in (_top(__name__), *_VALUES) or _is_of_author_or_library(top, home)


def may_be_called(found: Any, home: str | None) -> bool:
    """Whether configuration may call a function or class: one of the author or a library, or a class of plain values.

    The module that defines it decides, not the module through which it was found, because an application may import
    any module.
    """
    # A method of a class in C, such as `str.upper`, has no module, but knows its class.
    bearer = found if isinstance(found, type) else getattr(found, "__objclass__", None)
    if bearer in _CLASSES_OF_PYTHON:
        return True
    # A callable instance belongs to the module that holds it.
    if not hasattr(found, "__qualname__"):
        return not isinstance(found, ModuleType)
    top = _top(str(getattr(found, "__module__", None)))
    is_value = isinstance(found, type) and top in (_top(__name__), *_VALUES)
    return is_value or _is_of_author_or_library(top, home)


def _is_of_author_or_library(top: str, home: str | None) -> bool:
    own = [] if home is None else [_top(home)]
    return top in (*own, *map(_top, library_names())) or _is_written_by_author(top)


def _top(module: str) -> str:
    return module.partition(".")[0]


def _is_written_by_author(top: str) -> bool:
    """Whether a top-level module lies outside Python and its libraries. The module is located, not imported."""
    places = list(_places(top))
    return bool(places) and all(map(is_authored, places))


def _places(top: str) -> Iterator[str]:
    loaded = sys.modules.get(top)
    if loaded is not None:
        yield from _folders(getattr(loaded, "__file__", None), getattr(loaded, "__path__", ()))
        return
    spec = importlib.util.find_spec(top)
    if spec is not None:
        yield from _folders(spec.origin, spec.submodule_search_locations or ())


def _folders(file: str | None, folders: Any) -> Iterator[str]:
    if file is not None:
        yield file
    else:
        yield from map(str, folders)


_CLASSES_OF_PYTHON: frozenset[type] = frozenset(getattr(builtins, name) for name in BUILTINS)
