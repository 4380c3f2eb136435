"""Finds an operator's class by its name, its dotted path, or `module:Class`."""

import contextlib
import importlib.metadata
import importlib.util
import inspect
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeGuard

from dagkit.api.application import Module
from dagkit.api.code_origin import LIBRARIES
from dagkit.api.component import Component
from dagkit.api.operators import InputOperator, Operator, RowOperator, Unifier
from dagkit.cli.application.importing import imported, module_named, module_of
from dagkit.errors import ApplicationNotFound, did_you_mean
from dagkit.ground.names_of_apex import hint, member

_OWN = ("dagkit_operators", "dagkit")
_LIST = "`dagkit describe` lists all"
_KINDS = (Operator, InputOperator, RowOperator, Unifier, Module)
"""The base classes, which are not operators to list."""


@dataclass(frozen=True, slots=True)
class Library:
    """A package of operators."""

    package: str
    operators: Mapping[str, type[Component]]


def libraries() -> list[Library]:
    """Every installed library of operators, dagkit's own first."""
    return [Library(package, operators_in(imported(package))) for package in packages()]


def packages() -> list[str]:
    """The packages of every installed library, dagkit's own first; imports none of them."""
    declared = [entry.value.partition(":")[0] for entry in importlib.metadata.entry_points(group=LIBRARIES)]
    own = [package for package in _OWN if importlib.util.find_spec(package) is not None]
    return list(dict.fromkeys((*own, *declared)))


def operators_in(module: ModuleType) -> dict[str, type[Component]]:
    """The public operators and modules of a Python module, by name."""
    names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
    shown = ((name, getattr(module, name, None)) for name in names)
    return {name: value for name, value in shown if is_operator(value)}


def is_operator(value: Any) -> TypeGuard[type[Component]]:
    """Whether this is a class that can be added to a Dag."""
    return inspect.isclass(value) and issubclass(value, Operator | Module) and value not in _KINDS


def is_file_of_operators(name: str) -> bool:
    """Whether this names a whole file, without a class in it."""
    return name.endswith(".py") and os.path.isfile(name)  # noqa: PTH113 - accepts names that no file can have


@contextlib.contextmanager
def library_in(file: str) -> Iterator[Library]:
    """The operators that a file itself defines; within the block, the modules beside it can be imported."""
    with module_of(Path(file), file) as module:
        held = operators_in(module)
        own = {name: value for name, value in held.items() if value.__module__ == module.__name__}
        if not own:
            instead = f"it imports {', '.join(held)}: name one of them" if held else "name a file that does"
            raise ApplicationNotFound(f"{file} defines no operators", instead)
        yield Library(file, own)


@contextlib.contextmanager
def operator_named(name: str) -> Iterator[type[Component]]:
    """The class of this name; within the block, the modules beside it can be imported."""
    source, mark, class_name = name.rpartition(":" if ":" in name else ".")
    if mark:
        with module_named(source) as module:
            yield _member(module, class_name, source)
    else:
        yield _in_libraries(name)


def _member(module: ModuleType, class_name: str, source: str) -> type[Component]:
    value: Any = module
    for part in class_name.split("."):
        value = member(value, part)
    if is_operator(value):
        return value
    what = "is not an operator" if value is not None else "does not exist"
    known = operators_in(module)
    near = hint(class_name) or did_you_mean(class_name, known, "" if known else f"{source} holds no operators")
    raise ApplicationNotFound(f"{class_name} of {source} {what}", near)


def _in_libraries(name: str) -> type[Component]:
    installed = libraries()
    for library in installed:
        if name in library.operators:
            return library.operators[name]
    known = [operator for library in installed for operator in library.operators]
    containing = [operator for operator in known if name.casefold() in operator.casefold()]
    near = f"did you mean {' or '.join(map(repr, containing))}?" if containing else did_you_mean(name, known, _LIST)
    near = hint(name) or near
    raise ApplicationNotFound(
        f"no library has an operator {name!r}",
        f"{near}; name your own operator as file.py:Class or module:Class",
    )
