"""The files that arrived at operators in the middle of the graph, as the windows of a ledger name them."""

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from dagkit.api.work import SplittableOperator
from dagkit.compiler import Compilation
from dagkit.engine.program.address import Address
from dagkit.engine.program.facts import Decided
from dagkit.engine.record.history import own_windows
from dagkit.ground.urls import is_url, local_path, resolved
from dagkit.ledger import Ledger

_LOCAL_IDENTITY = re.compile(r"(.+)@[0-9a-f]+\.[0-9a-f]+-[0-9]+-[0-9a-f]{16}(?:-[0-9a-f]+)*", re.DOTALL)
"""The name of a source that is a local file with an identity."""
_VERSION = re.compile(r"(.+)@[0-9a-f]+", re.DOTALL)
"""The name of a source that is a file with the number of its first block; perhaps a path that ends so."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A file that arrived at an operator in the middle of the graph."""

    finder: str
    path: str
    owner: str
    """The operator whose file it is: see `owner_of`."""


def senders(compilation: Compilation, receiver: str) -> str:
    """The operators that send items to an operator."""
    graph = compilation.graph
    return " and ".join(sorted(graph.senders(receiver)))


def _finder(compilation: Compilation | None, receiver: str) -> str:
    """The operator that found what arrived: its sender, unless its receiver divides files instead of reading them."""
    if compilation is None or receiver not in compilation.graph.by_name:
        return receiver
    operator = compilation.graph.by_name[receiver].operator
    reads = isinstance(operator, SplittableOperator) and operator.reads_positions
    return senders(compilation, receiver) if reads else receiver


@dataclass(frozen=True, slots=True)
class Noted:
    """What the windows of a ledger say of sources in passing."""

    receivers: Mapping[str, str]
    """The operator at which each source arrived first that an operator in the middle of the graph sent, in order.

    A window lists at most a thousand of those that it found and read.
    """
    given_up: Mapping[tuple[str, str], str]
    """Why work of a source will never be done, in words, by the owner and the source."""

    @classmethod
    def of(cls, ledger: Ledger) -> Self:
        """Read all windows that say something of this; most windows of most applications do not."""
        receivers: dict[str, str] = {}
        given_up: dict[tuple[str, str], str] = {}
        for window in own_windows(ledger, b'"found":[{', b'"given-up"'):
            for work in window.work:
                receiver = Address(work.input).operator
                for span in work.found:
                    receivers.setdefault(span.source, receiver)
                    given_up.pop((receiver, span.source), None)  # it was found again
            for fact in window.checkpoint.facts:
                if isinstance(fact, Decided) and fact.decision == "given-up":
                    by = "" if fact.by is None else f"by {fact.by}"
                    owner = owner_of(fact.source, fact.into.operator, receivers)
                    given_up[owner, fact.source] = ": ".join(filter(None, (by, fact.reason)))
        return cls(receivers, given_up)


def arrivals(noted: Noted, compilation: Compilation | None = None) -> Iterator[Arrival]:
    """Yield the files that arrived, each once. Without the application, each counts as found by its receiver."""
    known: set[str] = set()
    # paths that end like a version: only the longer name of the same file shows that this is none
    for source in sorted(noted.receivers, key=len, reverse=True):
        path = source if source in known else path_of(source)
        if path not in known and is_path(path):
            known.add(path)
            receiver = noted.receivers[source]
            yield Arrival(_finder(compilation, receiver), path, receiver)


def owner_of(source: str, receiver: str, arrived: Container[str]) -> str:
    """The operator whose file a source is: the input operator that found it, or the receiver at which it arrived.

    It is empty if the only input operator found it, whose name the source does not contain then. Several operators may
    find the same file, and read it with different results.
    """
    finder, _, found = source.partition(": ")
    if not is_path(source) and is_path(found):
        return finder
    return receiver if source in arrived else ""


def path_of(source: str) -> str:
    """The path in the name of a source of the ledger, without its finder, an identity or a version."""
    if not is_path(source):
        source = next((rest for rest in source.partition(": ")[2:] if is_path(rest)), source)
    if is_url(source):  # the identity of a remote file begins with its name
        names = (source[: mark.start()] for mark in re.finditer("@", source))
        name = next((name for name in names if source.startswith(name, len(name) + 1)), None)
        if name is not None:
            return name
    match = _LOCAL_IDENTITY.fullmatch(source) or _VERSION.fullmatch(source)
    return source if match is None else match[1]


def is_path(name: str) -> bool:
    """Whether the name of a source is that of a file: an absolute path or a URL. That of other elements is JSON."""
    return name.startswith(("/", "file:")) or (is_url(name) and name[0].isalpha())


def is_folder(path: str) -> bool:
    """Whether a path of this machine is a folder, or may be one in a folder that may not be read."""
    try:
        return not is_url(path) and Path(local_path(path)).is_dir()
    except PermissionError:
        return True


def is_there(path: str) -> bool:
    """Whether a file exists, or may exist in a folder that may not be read."""
    if not is_url(path):
        try:
            return Path(local_path(path)).exists()
        except PermissionError:
            return True
    filesystem, inner, _ = resolved(path)
    return bool(filesystem.get_file_info(inner).is_file)
