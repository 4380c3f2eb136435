"""The registry of scaling policies: finds the class of a policy by name.

A policy is built in, or an installed distribution names it in the entry-point group `dagkit.policies`, or a setting
gives its path, `package.module:Class`, in the author's code or in a library of operators. No other module is imported,
and no object is called before it is known to be a policy.
"""

import importlib
import importlib.metadata
import inspect
import sys
from collections.abc import Mapping
from typing import Any, TypeVar

from dagkit.api.code_origin import may_be_named
from dagkit.errors import did_you_mean

T = TypeVar("T")

GROUP = "dagkit.policies"
"""The entry-point group in which a distribution names its policies: `name = "package.module:Class"`."""
BUILT_IN: Mapping[str, str] = {"drain": "dagkit.scaling.drain:Drain", "apex": "dagkit.scaling.apex:Apex"}


class PolicyUnknown(ValueError):
    """There is no policy of this name."""


def policy_names() -> list[str]:
    """Every name of a policy besides class paths: built-in policies first."""
    return list(dict.fromkeys([*BUILT_IN, *sorted(point.name for point in _entry_points())]))


def class_named(name: str, base: type[T]) -> type[T]:
    """The policy class of this name or path, a concrete subclass of `base`. Raise PolicyUnknown if there is none."""
    place = BUILT_IN.get(name) or next((point.value for point in _entry_points() if point.name == name), None)
    if place is None and not {".", ":"} & set(name):
        help_ = did_you_mean(name, policy_names(), "name one by package.module:Class")
        raise PolicyUnknown(f"there is no policy {name!r}; {help_}")
    if place is None:
        _refuse_foreign(name)
    found = _found_at(place or name)
    if not (inspect.isclass(found) and issubclass(found, base)):
        raise PolicyUnknown(f"{place or name} is not a subclass of {base.__name__}")
    if inspect.isabstract(found):
        raise PolicyUnknown(f"{place or name} is abstract: it has no decide(self, inputs)")
    return found


def _entry_points() -> importlib.metadata.EntryPoints:
    return importlib.metadata.entry_points(group=GROUP)


def _refuse_foreign(place: str) -> None:
    """Raise PolicyUnknown if settings may not name this module, because importing a module runs it."""
    module, _ = _parts(place)
    if module not in sys.modules and not may_be_named(module, None):
        problem = f"the module {module!r} is neither the application's nor a library's of operators"
        raise PolicyUnknown(f"{problem}; a distribution names its policies under the entry point {GROUP!r}")


def _parts(place: str) -> tuple[str, str]:
    """The module and the class in `package.module:Class` or `package.module.Class`."""
    module_name, colon, path = place.partition(":")
    if not colon:
        module_name, _, path = place.rpartition(".")
    if not all(part.isidentifier() for part in (*module_name.split("."), *path.split("."))):
        raise PolicyUnknown(f"{place!r} does not name a class; write package.module:Class")
    return module_name, path


def _found_at(place: str) -> Any:
    """The object at a path, without calling it."""
    module_name, path = _parts(place)
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as broken:
        problem = f"{place}: the module {module_name} cannot be imported: {type(broken).__name__}: {broken}"
        raise PolicyUnknown(problem) from broken
    for part in path.split("."):
        if not hasattr(found, part):
            raise PolicyUnknown(f"{place}: {getattr(found, '__qualname__', module_name)} has no {part!r}")
        found = getattr(found, part)
    return found
