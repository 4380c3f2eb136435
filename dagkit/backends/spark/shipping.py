"""Shipping: the program as bytes that any worker can read, the author's own modules included by value."""

import functools
import hashlib
import pickle
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import cloudpickle

from dagkit.engine.program import Program


@dataclass(frozen=True, slots=True)
class Shipped:
    """A program on its way: its bytes, and what they are known by."""

    digest: str
    data: bytes

    def unpacked(self) -> Program:
        """The program; a worker reads it once, however many windows it runs."""
        return _unpacked(self.digest, self.data)


def shipped(program: Program) -> Shipped:
    """The program as bytes."""
    with _by_value(_modules_of(program)):
        data = cloudpickle.dumps(program)
    return Shipped(hashlib.sha256(data).hexdigest(), data)


_READ: dict[str, Program] = {}


def _unpacked(digest: str, data: bytes) -> Program:
    if digest not in _READ:
        _READ.clear()
        _READ[digest] = pickle.loads(data)  # noqa: S301 - written by our own driver
    return _READ[digest]


def _modules_of(program: Program) -> list[ModuleType]:
    """The modules that a worker may lack: those of the operators' classes that no installed package holds."""
    classes = {cls for slots in program.operators.values() for operator in slots for cls in type(operator).__mro__}
    modules = {sys.modules.get(cls.__module__) for cls in classes}
    return [module for module in modules if module is not None and not _is_installed(module)]


def _is_installed(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if file is None:
        return module.__name__ != "__main__"
    return any(Path(file).is_relative_to(folder) for folder in _installed_folders())


@functools.cache
def _installed_folders() -> tuple[Path, ...]:
    """Where installed code lies: the standard library, site packages, and dagkit with its library wherever it is."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    own = Path(__file__).parents[2]
    library = sys.modules.get("dagkit_operators")
    beside = [Path(library.__file__).parent] if library is not None and library.__file__ else []
    return (*(Path(sysconfig.get_path(name)) for name in names), own, *beside)


@contextmanager
def _by_value(modules: list[ModuleType]) -> Iterator[None]:
    known = cloudpickle.list_registry_pickle_by_value()
    fresh = [module for module in modules if module.__name__ not in known and module.__name__ != "__main__"]
    for module in fresh:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in fresh:
            cloudpickle.unregister_pickle_by_value(module)
