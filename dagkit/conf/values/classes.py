"""Finding classes and functions by name: in the application, dagkit, operator libraries, and under Apex's names."""

import builtins
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from dagkit import scaling
from dagkit.api import affinity, application, operators, partitioning, stats, streams
from dagkit.api.code_origin import BUILTINS, LIBRARIES, library_names, may_be_called, may_be_named
from dagkit.errors import did_you_mean
from dagkit.ground.moved_classes import present_module
from dagkit.ground.names_of_apex import hint, member

_API = (operators, partitioning, stats, streams, application, affinity, scaling)
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


_MISSING = object()


class ClassNotFound(ValueError):
    """No class or function has this name."""

    def __init__(self, problem: str, help_: str) -> None:
        super().__init__(problem)
        self.help = help_


class ForeignCode(ClassNotFound):
    """The name belongs to code that is neither the author's nor a library's of operators."""


def find_class(name: str, home: str | None = None, *, is_called: bool = True, imports: bool = True) -> type:
    """The class of this name: `Class`, `package.module.Class`, `package.module:Class`, or the Java name of Apex's.

    With `imports`, import modules if configuration may name them. With `is_called`, accept only classes of the author,
    of a library, of dagkit, or of plain values: the caller makes objects of the class.
    """
    value = _find(name.strip(), home, imports=imports)
    if not inspect.isclass(value):
        raise ClassNotFound(f"{name!r} is not a class, but {_a(value)}", "name a class")
    if is_called and not may_be_called(value, home):
        raise _foreign(name, value.__module__, "subclass it in the application, and name your own class")
    return value


def find_function(name: str, home: str | None = None) -> Any:
    """The function, or another callable, that `module:function` or `package.module.function` names.

    It must belong to the author or to a library of operators, or be a method of a plain value of Python.
    """
    value = find_object(name, home)
    if not callable(value):
        raise ClassNotFound(f"{name!r} is not callable; it is {_a(value)}", "name a function as module:function")
    return value


def find_object(name: str, home: str | None = None) -> Any:
    """The object that `module:name` or `package.module.name` names. It must belong to the author or to a library."""
    value = _find(name.strip(), home, imports=True)
    if not may_be_called(value, home):
        module = str(getattr(value, "__module__", None) or "Python itself")
        raise _foreign(name, module, "define a function in the application that calls it, and name that")
    return value


def _foreign(name: str, module: str, instead: str) -> ForeignCode:
    return ForeignCode(
        f"{name!r} is code of {module}, which is neither the application's nor a library's of operators",
        f"{instead}; {_DECLARES}",
    )


_DECLARES = f"a library declares itself under the entry point {LIBRARIES!r}"


def _a(value: Any) -> str:
    return "a module" if isinstance(value, ModuleType) else "a function" if callable(value) else repr(value)


def _find(name: str, home: str | None, *, imports: bool) -> Any:
    if name in _OF_JAVA:
        return _OF_JAVA[name]
    module, colon, path = name.partition(":")
    if colon:
        return _in_module(module, path.split("."), name, home, imports=imports)
    simple = name.rpartition(".")[2].rpartition("$")[2]
    if "." not in name:
        return _by_simple_name(name, name, home)
    try:
        value = _by_path(name, home, imports=imports)
    except ForeignCode as foreign:
        # The package of a Java class may begin like an installed module, such as `io`.
        try:
            return _by_simple_name(name, simple, home)
        except ClassNotFound:
            raise foreign from None
    return _by_simple_name(name, simple, home) if value is None else value


def _in_module(module_name: str, path: list[str], name: str, home: str | None, *, imports: bool) -> Any:
    if module_name == "builtins" and path[0] in BUILTINS:
        return _below(builtins, path)
    module = _imported(present_module(module_name, path[0]), home, imports=imports)
    if module is None and not imports:
        help_ = "name a class that the application has imported, or set it in a property file and launch again"
        raise ClassNotFound(f"the module {module_name!r} is not loaded, and requests load no modules", help_)
    if module is None:
        raise ClassNotFound(
            f"there is no module {module_name!r} for {name!r}", "check its spelling and the Python path"
        )
    return _below(module, path)


def _below(module: ModuleType, path: list[str]) -> Any:
    value: Any = module
    for part in path:
        # Names such as `__class__` and `__globals__` would lead from the author's code to that of Python.
        if part.startswith("__") or (inner := member(value, part, _MISSING)) is _MISSING:
            where = getattr(value, "__qualname__", None) or value.__name__
            raise ClassNotFound(f"{where} has no {part!r}", hint(part) or did_you_mean(part, _public(value)))
        value = inner
    return value


def _by_path(name: str, home: str | None, *, imports: bool) -> Any:
    """The object at a dotted path, found in its longest prefix that is a module; None if no prefix is one."""
    parts = name.replace("$", ".").split(".")
    for length in range(len(parts) - 1, 0, -1):
        if (module := _imported(".".join(parts[:length]), home, imports=imports)) is not None:
            return _below(module, parts[length:])
    return None


def _by_simple_name(name: str, simple: str, home: str | None) -> Any:
    for module in _searched(home):
        value = member(module, simple)
        if value is not None:
            return value
    if simple in BUILTINS:
        return getattr(builtins, simple)
    known = [public for module in _searched(home) for public in _public(module)]
    otherwise = "write it as package.module:Class"
    raise ClassNotFound(f"there is no class {name!r}", hint(simple) or did_you_mean(simple, known, otherwise))


def _searched(home: str | None) -> Iterator[ModuleType]:
    """The modules in which a simple name is searched: the application's, dagkit's, then those of operator libraries."""
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
    """The packages of operators: those with the entry point, and dagkit's own if it can be imported."""
    return [module for name in library_names() if (module := _imported(name, None, imports=True)) is not None]


def _imported(name: str, home: str | None, *, imports: bool) -> ModuleType | None:
    """The module; None if there is none of this name. Raise `ClassNotFound` if importing it fails."""
    if not all(part.isidentifier() for part in name.split(".")):
        return None
    if not may_be_named(name, home):
        top = name.partition(".")[0]
        if top in sys.modules or importlib.util.find_spec(top) is not None:
            raise ForeignCode(
                f"the module {name!r} is neither the application's nor a library's of operators",
                f"define what you name in a module of the application; {_DECLARES}",
            )
        return None
    if name in sys.modules:
        return sys.modules[name]
    return _newly_imported(name) if imports else None


def _newly_imported(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        # The module or a package around it does not exist. In the other case it exists, and imports one that does not.
        if missing.name is not None and f"{name}.".startswith(f"{missing.name}."):
            return None
        raise ClassNotFound(f"{name!r} needs the module {missing.name!r}", "install what it needs") from missing
    # The module may be an author's, whose code may raise anything: it is reported.
    except Exception as broken:
        problem = f"{name!r} cannot be imported: {type(broken).__name__}: {broken}"
        raise ClassNotFound(problem, "fix the module") from broken
