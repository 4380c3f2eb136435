"""The files that arrived at operators in the middle of the graph, as the windows of a ledger name them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from dagkit.compiler import Compilation
from dagkit.engine.program.address import Address
from dagkit.engine.program.facts import Decided
from dagkit.engine.record.history import application_chain, own_windows
from dagkit.engine.record.source_names import is_path, owner_of, path_of
from dagkit.ground.urls import is_url, local_path, resolved
from dagkit.ledger import Ledger, Pointer
from dagkit.runs.inventory.finders import finder_of


@dataclass(frozen=True, slots=True)
class Arrival:
    """A file that arrived at an operator in the middle of the graph."""

    finder: str
    path: str
    owner: str
    """The operator whose file it is: see `owner_of`."""


@dataclass(frozen=True, slots=True)
class Noted:
    """What the windows of a ledger record of sources."""

    receivers: Mapping[str, str]
    """The operator at which each source arrived first that an operator in the middle of the graph sent, in order.

    A window lists at most a thousand of those that it found and read.
    """
    given_up: Mapping[tuple[str, str], str]
    """Why work of a source will never be done, in words, by the owner and the source."""
    head: Pointer | None = None
    """The last block that was read."""

    @classmethod
    def of(cls, ledger: Ledger, known: Self | None = None) -> Self:
        """Read the windows that record this; most windows of most applications do not.

        After what is `known`, only the windows since then are read.
        """
        chain = application_chain(ledger)
        head = known.head if known is not None else None
        # A restart removes blocks, and others may have come in their place.
        if chain is None or head is None or head.seq > chain.head.seq or chain.read(head.seq).hash != head.hash:
            known = None
        receivers: dict[str, str] = {} if known is None else dict(known.receivers)
        given_up: dict[tuple[str, str], str] = {} if known is None else dict(known.given_up)
        first = 0 if known is None or head is None else head.seq + 1
        for window in own_windows(ledger, b'"found":[{', b'"given-up"', first=first):
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
        return cls(receivers, given_up, None if chain is None else chain.head)


def arrivals(noted: Noted, compilation: Compilation | None = None) -> Iterator[Arrival]:
    """Yield the files that arrived, each once. Without the application, each counts as found by its receiver."""
    known: set[str] = set()
    # paths that end like a version: only the longer name of the same file shows that this is none
    for source in sorted(noted.receivers, key=len, reverse=True):
        path = source if source in known else path_of(source)
        if path not in known and is_path(path):
            known.add(path)
            receiver = noted.receivers[source]
            finder = receiver if compilation is None else finder_of(compilation, receiver)
            yield Arrival(finder, path, receiver)


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
