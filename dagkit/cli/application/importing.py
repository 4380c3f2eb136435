"""Imports an author's code under its own name, with the modules beside it, and unloads it afterwards."""

import contextlib
import importlib
import importlib.machinery
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from dagkit.api.traces import author_where, is_authored, shown_path, spoken
from dagkit.errors import ApplicationFaults, ApplicationNotFound, DagkitError, Diagnostic, Where, did_you_mean
from dagkit.ground.deferred_names import LIBRARIES
from dagkit.ground.names_of_apex import NamedElsewhere, hint


@contextlib.contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Make the modules in this folder importable; unload them at the end of the block."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()  # Python may have listed the folder before its files were written
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(folder))
        # `dagkit diff` opens two applications, whose modules may have equal names.
        for name in [name for name in list(sys.modules) if name not in before]:
            if _lies_in(sys.modules.get(name.partition(".")[0]), folder):
                del sys.modules[name]


_HARMLESS = frozenset({"antigravity", "idlelib", "lib2to3", "test", "this", "turtledemo"})
"""Modules of Python that no library imports; `test` is also the usual name of a folder."""


def hidden_by(folder: Path) -> list[Path]:
    """The files and packages in a folder that hide a module of Python while the folder is importable."""
    entries = [(entry.stem if entry.suffix == ".py" else entry.name, entry) for entry in sorted(folder.iterdir())]
    return [
        entry
        for name, entry in entries
        if name in sys.stdlib_module_names - _HARMLESS and (entry.suffix == ".py" or (entry / "__init__.py").is_file())
    ]


def folder_of_imports(file: Path) -> Path:
    """The folder that is importable while the application of a file is open."""
    return _root_and_name(file.absolute())[0]


@contextlib.contextmanager
def module_of(path: Path, subject: str) -> Iterator[ModuleType]:
    """Import the file as a module under which its classes can be pickled; modules beside it can be imported too."""
    path = path.absolute()
    root, name = _root_and_name(path)
    if root == path.parent:
        name = _free_name(name, path)
    with importable(root):
        yield _by_name(name, subject) if root != path.parent else _loaded(name, path, subject)


@contextlib.contextmanager
def module_named(source: str) -> Iterator[ModuleType]:
    """The module of a file, or of a dotted name, which may lie in the working directory; unloaded after the block."""
    # `app:Class` is the module app also beside a file that is called app
    if source.endswith(".py") and os.path.isfile(source):  # noqa: PTH113 - accepts names that no file can have
        with module_of(Path(source), source) as module:
            yield module
    else:
        with importable(Path.cwd()):
            yield imported(source)


def imported(name: str) -> ModuleType:
    """Import a module; raise `ApplicationNotFound` if it does not exist, `ApplicationFaults` if its code raises."""
    try:
        return _by_name(name, name)
    except ApplicationFaults as fault:
        missing = fault.__cause__
        if isinstance(missing, ModuleNotFoundError) and f"{name}.".startswith(f"{missing.name}."):
            raise ApplicationNotFound(
                f"there is no module {missing.name}", "install it for this Python, or correct its name"
            ) from None
        raise


@contextlib.contextmanager
def authored(subject: str, problem: str, where: Where | None = None, *, only_theirs: bool = False) -> Iterator[None]:
    """Run an author's code: its prints go to stderr, and its exceptions become faults of the application.

    With `only_theirs`, dagkit's own code runs as well. An exception then counts as the author's only if it passed one
    of the author's lines; any other is a bug in dagkit and is raised as it is.
    """
    # stdout is for results: what an author's code prints would break a JSON document.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            yield
        except DagkitError:
            raise
        except (Exception, SystemExit) as raised:
            if only_theirs and author_where(raised) is None:
                raise
            where = author_where(raised) or where
            fault = Diagnostic("populate-failed", f"{problem}: {spoken(raised)}", _advice(raised), where)
            raise ApplicationFaults(subject, [fault]) from raised


def _advice(raised: BaseException) -> str:
    if isinstance(raised, ImportError) and (home := _home(raised)) is not None:
        return home
    if isinstance(raised, ModuleNotFoundError):
        return f"install {raised.name!r} for this Python, or put it beside the application"
    if isinstance(raised, SyntaxError):
        return "fix the line: Python cannot parse the file"
    if (unannotated := _NO_TYPE.search(spoken(raised))) is not None:
        name, value = unannotated["name"], unannotated["value"]
        if "Port[" in value:
            return f"call the port: {name} = {value.rpartition('.')[2]}()"
        return f"write `{name}: TYPE = …` if users may set it, or `{name} = State(…)` if it changes while it runs"
    if isinstance(raised, SystemExit):
        return 'put code that runs the file as a program under if __name__ == "__main__"'
    return "fix the last of the lines below"


_NO_TYPE = re.compile(r"non-annotated attribute was detected: `(?P<name>\w+) = (?P<value>.*?)`")
_NO_NAME = re.compile(r"cannot import name '(?P<name>[^']+)' from '(?P<module>[^']+)'")


def _home(raised: ImportError) -> str | None:
    """Where dagkit has what was imported from another place; None if it has nothing like it."""
    if isinstance(raised, NamedElsewhere):
        return raised.advice
    missing = _NO_NAME.match(str(raised))
    if missing is None:
        sought = f"{raised.name}."
        if not sought.startswith(("operators.", "dagkit.operators.")):
            return None
        return "write from dagkit_operators import NAME for an operator of the library" + (
            ", or put your own module operators beside the application" if sought == "operators." else ""
        )
    name, module = missing["name"], missing["module"]
    if module.partition(".")[0] not in ("operators", *LIBRARIES):
        return None
    home = next((library for library in LIBRARIES if name in importlib.import_module(library).__all__), None)
    if home is not None:
        return f"write from {home} import {name}"
    if (counterpart := hint(name)) is not None:
        return counterpart
    return did_you_mean(name, importlib.import_module(module).__all__) if module in LIBRARIES else None


def _root_and_name(path: Path) -> tuple[Path, str]:
    """The folder to import the file from, and its dotted name there: folders with `__init__.py` are packages."""
    parts, folder = [path.stem], path.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        parts.insert(0, folder.name)
        folder = folder.parent
    if path.name == "__init__.py":
        parts.pop()
    return folder, ".".join(parts)


def _free_name(stem: str, path: Path) -> str:
    """The file's own name, by which its neighbours import it, unless another module has that name."""
    name = "".join(c if c.isalnum() else "_" for c in stem)
    if not name.isidentifier() or _taken(name, path):
        name = f"dagkit_app_{name}"
        while name in sys.modules:
            name += "_"
    return name


def _taken(name: str, path: Path) -> bool:
    if name in sys.modules:
        return True
    found = importlib.util.find_spec(name)
    # If Python itself can find this file, its name is free: the modules beside it import it by that name.
    return found is not None and found.origin != str(path)


def _by_name(name: str, subject: str) -> ModuleType:
    with authored(subject, "the module cannot be imported"):
        return importlib.import_module(name)


def _loaded(name: str, path: Path, subject: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        name, path, loader=importlib.machinery.SourceFileLoader(name, str(path))
    )
    assert spec is not None, "a loader was given, so there is a spec"
    assert spec.loader is not None, "the spec holds the loader that it was given"
    module = importlib.util.module_from_spec(spec)
    # Before it runs: a dataclass looks up the module of its class while it is made.
    sys.modules[name] = module
    with authored(subject, "the file cannot be imported", Where(shown_path(str(path)))):
        try:
            spec.loader.exec_module(module)
        # A later import must not find the part of the module that ran.
        except BaseException:
            sys.modules.pop(name, None)
            raise
    return module


def _lies_in(module: ModuleType | None, folder: Path) -> bool:
    """Whether only this folder makes the top-level module importable."""
    origins = [getattr(module, "__file__", None) or "", *map(str, getattr(module, "__path__", ()))]
    return any(
        is_authored(origin) and folder in (Path(origin).parent, Path(origin).parent.parent)
        for origin in origins
        if origin
    )
