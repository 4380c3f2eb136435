"""Shipping: the program as bytes for the workers, which include the author's modules by value.

A class that is pickled by value exists twice: on the driver and on each worker. Such classes are numbered, and later
pickles refer to their numbers, so that an item has the same class after it was sent to a worker and back.
"""

import dataclasses
import hashlib
import io
import pickle
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NoReturn

import cloudpickle
from cloudpickle.cloudpickle import subimport

from dagkit.api.installed import is_installed
from dagkit.engine.program.program import Program
from dagkit.engine.worker.pickling import CodePickler, remember


class Known:
    """Writes and reads pickles that refer to classes by numbers, which the driver and the workers share."""

    def __init__(self, classes: Sequence[type]) -> None:
        self.classes = classes
        self.numbers = {cls: number for number, cls in enumerate(classes)}

    def dumps(self, value: Any) -> bytes:
        """The value as bytes."""
        with io.BytesIO() as file:
            _Pickler(file, self.numbers).dump(value)
            return file.getvalue()

    def loads(self, data: Any) -> Any:
        """The value, from the bytes of `dumps` in this or another process."""
        return _Unpickler(io.BytesIO(data), self.classes).load()


def _known_class(number: int) -> type:
    """Stands for a class in a pickle. It is never called, because `_Unpickler` replaces it by its list of classes."""
    raise AssertionError(f"only a process with the program can read class {number}")


class _ByValue(CodePickler):
    def reducer_override(self, obj: Any) -> Any:
        if obj is dataclasses.MISSING:  # a copy would look like a default value of the field of a dataclass
            return "MISSING"
        return super().reducer_override(obj)


class _Recorder(_ByValue):
    """Records the classes that it writes: those of operators and payloads, and those that their functions use.

    Other classes in their modules, such as that of the application, are not recorded: workers do not need them, and
    may lack the modules that these import.
    """

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.classes: dict[type, None] = {}

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type):
            self.classes[obj] = None
        return super().reducer_override(obj)


class _Pickler(_ByValue):
    def __init__(self, file: io.BytesIO, numbers: dict[type, int]) -> None:
        super().__init__(file)
        self._numbers = numbers

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type) and obj in self._numbers:
            return _known_class, (self._numbers[obj],)
        return super().reducer_override(obj)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, classes: Sequence[type]) -> None:
        super().__init__(file)
        self._classes = classes

    def find_class(self, module: str, name: str, /) -> Any:
        if name == _known_class.__name__ and module == __name__:
            return self._classes.__getitem__
        return super().find_class(module, name)


class Missing:
    """Stands for an object that this worker cannot import. Its first use raises the error of the import.

    A module that is pickled by value refers to all modules that it imports. Its operators may use only some of these.
    """

    def __init__(self, error: ModuleNotFoundError) -> None:
        self.__dict__["error"] = error

    def _raise(self, *_: Any, **__: Any) -> NoReturn:
        raise ModuleNotFoundError(*self.__dict__["error"].args, name=self.__dict__["error"].name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python itself looks these up on any object
            raise AttributeError(name)
        self._raise()

    __call__ = __mro_entries__ = _raise


class _WorkersUnpickler(pickle.Unpickler):
    """Reads a program on a worker, which may lack modules that only the driver uses."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.missing: list[ModuleNotFoundError] = []

    def find_class(self, module: str, name: str, /) -> Any:
        # cloudpickle writes a module as a call that imports it, which would raise for one that only the driver has.
        if (module, name) == (subimport.__module__, subimport.__name__):
            return self._module
        try:
            return super().find_class(module, name)
        except ModuleNotFoundError as error:
            return self._missing(error)

    def _module(self, name: str) -> Any:
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            return self._missing(error)

    def _missing(self, error: ModuleNotFoundError) -> Missing:
        self.missing.append(error)
        return Missing(error)


def read_where_it_runs(data: bytes) -> tuple[Program, list[type]]:
    """The program and the numbered classes. Raise ModuleNotFoundError if a missing module is needed to read them.

    This process then also has the lines of their code, wherever their files are.
    """
    unpickler = _WorkersUnpickler(io.BytesIO(data))
    try:
        program, classes = unpickler.load(), unpickler.load()
        remember(unpickler.load())
    except pickle.UnpicklingError as error:  # a class of an object is missing
        if unpickler.missing:
            raise unpickler.missing[-1] from error
        raise
    return program, classes


@dataclass(frozen=True, slots=True)
class Shipped:
    """The bytes of a program, and a hash of them."""

    digest: str
    data: bytes

    def unpacked(self) -> tuple[Program, Known]:
        """The program and its classes. A worker process caches the last program, so it reads it once."""
        if self.digest not in _READ:
            _READ.clear()
            program, classes = read_where_it_runs(self.data)
            _READ[self.digest] = program, Known(classes)
        return _READ[self.digest]


_READ: dict[str, tuple[Program, Known]] = {}


def shipped(program: Program, modules: Sequence[ModuleType]) -> tuple[Shipped, Known]:
    """The part of the program that workers need, as bytes, and the numbered classes.

    The caller must have registered the modules by `by_value`.
    """
    with io.BytesIO() as file:
        pickler = _Recorder(file)
        # One pickler writes all three: by its memo, the numbered classes are those of the program, and no copies.
        pickler.dump(program.for_workers())
        names = {module.__name__ for module in modules}
        pickler.dump(classes := [cls for cls in pickler.classes if cls.__module__ in names])
        pickler.dump(pickler.sources())
        data = file.getvalue()
    return Shipped(hashlib.sha256(data).hexdigest(), data), Known(classes)


def modules_of(program: Program) -> list[ModuleType]:
    """The modules that are not installed, and which a worker may lack: those of all objects in the program.

    Modules that these modules use are included.
    """
    with io.BytesIO() as file, ExitStack() as opened:
        finder = _Finder(file, opened)
        finder.dump(program)
        return [finder.found[name] for name in sorted(finder.found)]


class _Finder(_ByValue):
    """Finds the modules of the classes and functions that it writes.

    It registers each module by value when it finds it, so that it also writes, and searches, the objects that the
    module uses.
    """

    def __init__(self, file: io.BytesIO, opened: ExitStack) -> None:
        super().__init__(file)
        self.found: dict[str, ModuleType] = {}
        self._judged: set[str] = set()
        self._opened = opened

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type):
            self._find(cls.__module__ for cls in obj.__mro__)
        elif isinstance(obj, FunctionType):
            self._find([obj.__module__])
        elif isinstance(obj, ModuleType):
            self._find([obj.__name__])
        return super().reducer_override(obj)

    def _find(self, names: Iterable[str]) -> None:
        """Add the modules with these names, and those that they import, unless they are installed."""
        waiting = set(names) - self._judged
        while waiting:
            module = sys.modules.get(name := waiting.pop())
            if module is None:  # not imported yet; writing other objects may import it
                continue
            self._judged.add(name)
            if module.__name__ not in self.found and not _is_installed(module):
                self.found[module.__name__] = module
                self._opened.enter_context(by_value([module]))
                waiting |= set(_used_by(module)) - self._judged


def _used_by(module: ModuleType) -> Iterator[str]:
    for value in list(vars(module).values()):
        if isinstance(value, ModuleType):
            yield value.__name__
        elif isinstance(value, type | FunctionType) and isinstance(value.__module__, str):
            yield value.__module__


def _is_installed(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if file is None:
        # Modules that are compiled into Python have no file, and neither has the `__main__` of a notebook.
        return module.__name__ != "__main__"
    return is_installed(str(Path(file)))


_by_value_lock = threading.Lock()
_by_value_users: Counter[str] = Counter()


@contextmanager
def by_value(modules: Sequence[ModuleType]) -> Iterator[None]:
    """Pickle the content of these modules by value, not by name. Several threads may use it at the same time."""
    # cloudpickle always writes the content of `__main__`.
    mine = [module for module in modules if module.__name__ != "__main__"]
    with _by_value_lock:
        known = cloudpickle.list_registry_pickle_by_value()
        # Modules that the user has registered stay registered at the end.
        mine = [module for module in mine if module.__name__ not in known or _by_value_users[module.__name__]]
        for module in mine:
            _by_value_users[module.__name__] += 1
            cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        with _by_value_lock:
            for module in mine:
                _by_value_users[module.__name__] -= 1
                if not _by_value_users[module.__name__]:
                    cloudpickle.unregister_pickle_by_value(module)
