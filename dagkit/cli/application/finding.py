"""Finds the application that APP names: in a file, in a folder with `app.py`, or by `module:Class`."""

import contextlib
import difflib
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeGuard

from dagkit.api.application import FunctionApplication, StreamingApplication, name_after
from dagkit.api.traces import shown_path
from dagkit.cli.application.importing import authored, importable, module_named, module_of
from dagkit.conf.declared.declarative import ENDINGS, declared_application
from dagkit.errors import ApplicationNotFound, Where, did_you_mean, near
from dagkit.ground.application_folder import LEDGER
from dagkit.ground.urls import is_url

FUNCTION = "populate_dag"
_APP_FILES = ("app.py", "app.json", "app.properties")
_FORMS = "APP is a file, a folder with app.py, or module:Class"


@dataclass(frozen=True, slots=True)
class Candidate:
    """An application that was found, with the names that select it."""

    names: tuple[str, ...]
    where: Where | None
    make: Callable[[], StreamingApplication]

    @property
    def name(self) -> str:
        return self.names[0]


@dataclass(frozen=True, slots=True)
class Place:
    """The file, folder or module that APP names, and the applications in it."""

    shown: str
    file: Path | None
    candidates: tuple[Candidate, ...]
    module: ModuleType | None = None

    @property
    def folder(self) -> Path | None:
        return self.file.parent if self.file else None

    def choose(self, name: str | None) -> Candidate:
        """The application to use: the only one, the one with this name, or the only one whose name contains it."""
        if name is None:
            found, problem = list(self.candidates), f"{self.shown} holds several applications"
        else:
            found, problem = self._named(name), f"{name!r} is part of several names in {self.shown}"
        if len(found) == 1:
            return found[0]
        if not found:
            meant = did_you_mean(str(name), (n for c in self.candidates for n in c.names))
            found, problem = list(self.candidates), f"{self.shown} holds no application {name!r}; {meant}"
        raise ApplicationNotFound(_listed(problem, found), f"choose one with --app, as in --app {found[0].name}")

    def _named(self, name: str) -> list[Candidate]:
        exact = [c for c in self.candidates if name in c.names]
        return exact or [c for c in self.candidates if any(name.casefold() in n.casefold() for n in c.names)]


def _listed(problem: str, candidates: Sequence[Candidate]) -> str:
    width = max(len(c.name) for c in candidates)
    lines = [f"  {c.name:{width}}  {c.where or ''}".rstrip() for c in candidates]
    return "\n".join([problem, *lines])


@contextlib.contextmanager
def place_of(target: str) -> Iterator[Place]:
    """Resolve APP. Within the block, the modules beside it can be imported; afterwards they are unloaded."""
    path = Path(target)
    if _is(Path.is_dir, path):
        path = _app_in(path, target)
    if not _is(Path.is_file, path):
        with _referred(target, path) as place:
            yield place
    elif path.suffix in ENDINGS:
        with importable(path.absolute().parent):
            yield Place(target, path.absolute(), (_of_declaration(path),))
    elif path.suffix != ".py":
        raise ApplicationNotFound(
            f"{target} is not an application", f"{_FORMS}; declared applications end in {' or '.join(ENDINGS)}"
        )
    else:
        with module_of(path, str(path)) as module:
            yield Place(target, path.absolute(), _candidates(module, path, target), module)


@contextlib.contextmanager
def _referred(target: str, path: Path) -> Iterator[Place]:
    """Resolve `module:Class` or `file.py:Class`, if APP has that form."""
    source, _, name = target.rpartition(":")
    is_file = source.endswith(".py")
    path = Path(source) if is_file else path
    if not (_is(Path.is_file, path) and name.isidentifier() if is_file else _is_reference(target)):
        meant = near(path.name, _names_in(path.parent))
        instead = _FORMS if meant is None else f"did you mean {str(path.parent / meant)!r}?"
        raise ApplicationNotFound(f"there is no file or folder {str(path if is_file else target)!r}", instead)
    with module_named(source) as module:
        yield _member(module, name, source, target)


def _is(kind: Callable[[Path], bool], path: Path) -> bool:
    """Whether the path is of that kind; False also for a path that no file can have."""
    try:
        return kind(path)
    except (OSError, ValueError):
        return False


def _names_in(folder: Path) -> list[str]:
    """The names in a folder; none if it cannot be read."""
    try:
        return sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
    except (OSError, ValueError):
        return []


def _app_in(folder: Path, target: str) -> Path:
    for name in _APP_FILES:
        if _is(Path.is_file, folder / name):
            return folder / name
    if holds_a_ledger(target):
        raise ApplicationNotFound(
            f"{target} is the folder in which an application runs, and this command needs the application itself",
            f"give what was launched instead of the folder: {_FORMS}",
        )
    others = [name for name in _names_in(folder) if name.endswith((".py", ".json"))]
    instead = f"name one of its files: {', '.join(others[:8])}" if others else _FORMS
    raise ApplicationNotFound(f"the folder {target!r} holds no app.py", instead)


def holds_a_ledger(target: str) -> bool:
    """Whether the target is an application's folder, not an application; a URL is always a folder."""
    return is_url(target) or _is(Path.is_file, Path(target, LEDGER))


def _is_reference(target: str) -> bool:
    module, colon, name = target.partition(":")
    return bool(colon) and name.isidentifier() and all(part.isidentifier() for part in module.split("."))


# -- the applications of a module ------------------------------------------------------------------------------------


def _candidates(module: ModuleType, path: Path, target: str) -> tuple[Candidate, ...]:
    """The applications that the module itself defines, in the order of their lines; else its function."""
    held = list(dict.fromkeys(filter(inspect.isclass, vars(module).values())))
    applications = [value for value in held if is_application(value)]
    # A file may import another application, such as its base class: that one belongs to its own file.
    defined = [value for value in applications if value.__module__ == module.__name__]
    if defined:
        return tuple(_of_class(value) for value in defined)
    function = vars(module).get(FUNCTION)
    if inspect.isfunction(function):
        return (_of_function(function, name_after(path)),)
    instead = [f"it imports {found.__name__}: write {found.__module__}:{found.__name__}" for found in applications]
    instead += _almost(module)
    instead = instead or [f"define a subclass of StreamingApplication, or a function {FUNCTION}(dag, conf)"]
    raise ApplicationNotFound(f"{target} holds no application", "; ".join(instead))


def _almost(module: ModuleType) -> list[str]:
    """How to complete classes and functions that are nearly an application: only the name `populate_dag` is missing."""
    own = [value for value in vars(module).values() if getattr(value, "__module__", None) == module.__name__]
    classes = [value for value in dict.fromkeys(filter(inspect.isclass, own)) if _lacks_its_function(value)]
    functions = [name for name, value in vars(module).items() if inspect.isfunction(value) and value in own]
    near = difflib.get_close_matches(FUNCTION, functions, n=1)
    return [*map(_lacking, classes), *(f"rename {name} to {FUNCTION} to make it the application" for name in near)]


def _lacks_its_function(value: Any) -> bool:
    return (
        inspect.isclass(value)
        and issubclass(value, StreamingApplication)
        and FUNCTION in getattr(value, "__abstractmethods__", ())
    )


def _lacking(defined: type) -> str:
    """How to make the class an application."""
    near = difflib.get_close_matches(FUNCTION, [name for name, v in vars(defined).items() if callable(v)], n=1)
    where, instead = line_of(defined), f" instead of {near[0]}" if near else ""
    subject = f"{defined.__name__} at {where}" if where else defined.__name__
    return f"{subject} has no {FUNCTION}: write def {FUNCTION}(self, dag: Dag, conf: Config) in it{instead}"


def is_application(value: Any) -> TypeGuard[type[StreamingApplication]]:
    """Whether this is an application class that can be instantiated."""
    return (
        inspect.isclass(value)
        and issubclass(value, StreamingApplication)
        and value is not FunctionApplication
        and not inspect.isabstract(value)
    )


def _of_class(defined: type[StreamingApplication]) -> Candidate:
    names = tuple(dict.fromkeys(filter(None, (str(defined.name), defined.__name__))))

    def make() -> StreamingApplication:
        with authored(names[0], "the application cannot be made"):
            return defined()

    return Candidate(names, line_of(defined), make)


def _of_function(function: Any, name: str) -> Candidate:
    """The function as an application with this name."""
    names = tuple(dict.fromkeys((name, function.__name__)))
    return Candidate(names, line_of(function), lambda: FunctionApplication(populate=function, called=name))


def line_of(defined: Any) -> Where | None:
    """The first line of a class or a function, if its source is available."""
    try:
        return Where(shown_path(inspect.getfile(defined)), inspect.getsourcelines(defined)[1])
    except (OSError, TypeError):
        return None


def _member(module: ModuleType, name: str, module_name: str, target: str) -> Place:
    """The class or function of this name in the module."""
    file = Path(module.__file__).absolute() if module.__file__ else None
    value: Any = vars(module).get(name)
    if is_application(value):
        return Place(target, file, (_of_class(value),), module)
    if inspect.isfunction(value):
        own = name_after(file) if file and name == FUNCTION else name
        return Place(target, file, (_of_function(value, own),), module)
    fitting = [n for n, v in vars(module).items() if is_application(v) or n == FUNCTION]
    what = "is not an application" if name in vars(module) else "does not exist"
    near = did_you_mean(name, fitting, "" if fitting else f"{module_name} holds no application")
    if _lacks_its_function(value):
        near = _lacking(value)
    raise ApplicationNotFound(f"{name} of {module_name} {what}", near)


# -- declarations ----------------------------------------------------------------------------------------------------


def _of_declaration(path: Path) -> Candidate:
    declared = declared_application(path)
    return Candidate((declared.application_name,), Where(shown_path(str(path))), lambda: declared)
