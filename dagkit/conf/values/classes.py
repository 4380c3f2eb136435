"""Classes and functions by name: of the application, of dagkit, of operator libraries, of any module, and of Apex."""

import builtins
import importlib
import importlib.metadata
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

from dagkit.api import affinity, application, operators, partitioning, stats, streams
from dagkit.errors import did_you_mean

LIBRARIES = "dagkit.operators"
"""The entry-point group in which a library names the package that holds its operators."""

_OWN_LIBRARY = "dagkit_operators"
_API = (operators, partitioning, stats, streams, application, affinity)
_BUILTINS = ("str", "int", "float", "bool", "bytes", "dict", "list", "tuple", "set", "object")
_OF_JAVA: dict[str, type] = {
    "java.lang.String": str,
    "java.lang.Integer": int,
    "java.lang.Long": int,
    "java.lang.Short": int,
    "java.lang.Double": float,
    "java.lang.Float": float,
    "java.lang.Boolean": bool,
    "java.lang.Object": object,
    "java.util.Map": dict,
    "java.util.HashMap": dict,
    "java.util.List": list,
    "java.util.ArrayList": list,
}


class ClassNotFound(ValueError):
    """No class or function has this name."""

    def __init__(self, problem: str, help_: str) -> None:
        super().__init__(problem)
        self.help = help_


def find_class(name: str, home: str | None = None) -> type:
    """The class of this name: `Class`, `package.module.Class`, `package.module:Class`, or the Java name of Apex's."""
    found = _find(name.strip(), home)
    if not inspect.isclass(found):
        raise ClassNotFound(f"{name!r} is no class, but {_a(found)}", "name a class")
    return found


def find_function(name: str, home: str | None = None) -> Any:
    """The function, or another callable, that `module:function` or `package.module.function` names."""
    found = _find(name.strip(), home)
    if not callable(found):
        raise ClassNotFound(f"{name!r} cannot be called; it is {_a(found)}", "name a function as module:function")
    return found


def _a(found: Any) -> str:
    return "a module" if isinstance(found, ModuleType) else "a function" if callable(found) else repr(found)


def _find(name: str, home: str | None) -> Any:
    if name in _OF_JAVA:
        return _OF_JAVA[name]
    module, colon, path = name.partition(":")
    if colon:
        return _in_module(module, path.split("."), name)
    if "." not in name:
        return _by_simple_name(name, name, home)
    found = _by_path(name)
    return _by_simple_name(name, name.rpartition(".")[2].rpartition("$")[2], home) if found is None else found


def _in_module(module_name: str, path: list[str], name: str) -> Any:
    module = _imported(module_name)
    if module is None:
        raise ClassNotFound(
            f"there is no module {module_name!r} for {name!r}", "check its spelling and the Python path"
        )
    found: Any = module
    for part in path:
        if not hasattr(found, part):
            where = getattr(found, "__qualname__", None) or found.__name__
            raise ClassNotFound(f"{where} has no {part!r}", did_you_mean(part, _public(found)))
        found = getattr(found, part)
    return found


def _by_path(name: str) -> Any:
    """What a dotted path leads to, through the longest part of it that is a module; none where no part is one."""
    parts = name.replace("$", ".").split(".")
    for length in range(len(parts) - 1, 0, -1):
        if _imported(".".join(parts[:length])) is not None:
            return _in_module(".".join(parts[:length]), parts[length:], name)
    return None


def _by_simple_name(name: str, simple: str, home: str | None) -> Any:
    for module in _searched(home):
        found = getattr(module, simple, None)
        if found is not None:
            return found
    if simple in _BUILTINS:
        return getattr(builtins, simple)
    known = [public for module in _searched(home) for public in _public(module)]
    raise ClassNotFound(f"there is no class {name!r}", did_you_mean(simple, known, "write it as package.module:Class"))


def _searched(home: str | None) -> Iterator[ModuleType]:
    """Where a simple name is looked for: beside the application, in dagkit, then in the libraries of operators."""
    if home is not None and home in sys.modules:
        yield sys.modules[home]
    yield from _API
    yield from _libraries()


def _public(module: Any) -> list[str]:
    names = getattr(module, "__all__", None) or [
        n for n, v in vars(module).items() if inspect.isclass(v) or callable(v)
    ]
    return [name for name in names if not name.startswith("_")]


def _libraries() -> list[ModuleType]:
    """The packages that hold operators: those that say so, and dagkit's own where it can be imported."""
    return [module for name in _library_names() if (module := _imported(name)) is not None]


@cache
def _library_names() -> tuple[str, ...]:
    named = [point.value.partition(":")[0] for point in importlib.metadata.entry_points(group=LIBRARIES)]
    return tuple(dict.fromkeys([_OWN_LIBRARY, *named]))


def _imported(name: str) -> ModuleType | None:
    """The module, or none where none has this name. One that breaks while it is imported is a fault of its own."""
    if name in sys.modules:
        return sys.modules[name]
    if not all(part.isidentifier() for part in name.split(".")):
        return None
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is not None and f"{name}.".startswith(f"{missing.name}."):
            return None
        raise ClassNotFound(f"{name!r} needs the module {missing.name!r}", "install what it needs") from missing
    except Exception as broken:
        problem = f"{name!r} cannot be imported: {type(broken).__name__}: {broken}"
        raise ClassNotFound(problem, "mend the module") from broken
