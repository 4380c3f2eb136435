"""The input files that exist, with what operators would do with each, and those that the ledger names."""

import json
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, Self

from dagkit.api.files import ExplainsFiles, FileState
from dagkit.api.operators import Operator
from dagkit.compiler import Compilation
from dagkit.compiler.rules.file_rules import items_into
from dagkit.engine.parts.running_plan import RunningPlan
from dagkit.engine.program.program import Launch, Program
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.history import newest_checkpoint, root_slices
from dagkit.engine.record.journal import stored_in
from dagkit.engine.record.source_names import owner_of, path_of
from dagkit.engine.record.work_history import untaken
from dagkit.engine.work.item import WorkItem
from dagkit.engine.worker.instances import SavedState, live
from dagkit.ledger import DatasetKind, Ledger
from dagkit.ledger.format.span_sets import positions_in
from dagkit.runs.inventory.arrivals import Noted, arrivals, is_folder, is_there
from dagkit.runs.inventory.finders import owners_of
from dagkit.runs.inventory.readings import length_in, path_in, sources_in

RECENT = 1 << 16
"""As many hashes are kept in a Python set before they are merged into the array: each takes ten times as much there."""


class Hashes:
    """A set of values, of which two count as one if their hashes of 64 bits are equal."""

    def __init__(self) -> None:
        self._sorted = array("q")
        self._recent: set[int] = set()

    def __len__(self) -> int:
        return len(self._sorted) + len(self._recent)

    def __contains__(self, value: Hashable) -> bool:
        sought = hash(value)
        if sought in self._recent:
            return True
        at = bisect_left(self._sorted, sought)
        return at < len(self._sorted) and self._sorted[at] == sought

    def add(self, value: Hashable) -> bool:
        """Add a value; return whether it is new."""
        if value in self:
            return False
        self._recent.add(hash(value))
        if len(self._recent) >= RECENT:
            self._merge()
        return True

    def _merge(self) -> None:
        import numpy as np  # noqa: PLC0415 - few lists are that long

        merged = np.concatenate([np.frombuffer(self._sorted, np.int64), np.fromiter(self._recent, np.int64)])
        merged.sort()
        self._sorted = array("q", merged.tobytes())
        self._recent = set()


Stage = Literal["waiting", "read", "quarantined", "given-up"]
"""What became of a file that was found."""
UNTAKEN = "no window has taken it yet"
FOLLOWED = "it is followed: what is appended to it is read"


File = tuple[str, str]
"""A file of an operator: its owner, as `owner_of` names it, and its path."""


State = Literal["new", "pending", "waiting", "read", "quarantined", "given-up", "ignored", "gone"]
"""What operators would do with a file, as in `FileState`; of one that was found, what became of it, as in `Stage`, or
`gone`: it is not where it was."""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """One file, and the operator that found it or would find it."""

    finder: str
    path: str
    state: State
    reason: str = ""


@dataclass(slots=True)
class FoundFile:
    """A file as the chain of its finder records it."""

    finder: str
    path: str
    at: datetime
    block: int
    """The first block of the chain that names it."""
    bytes: int | None = None
    """Its length at that time; None if it is followed, or read in other units."""
    end: int | None = None
    """The end of its last block that was found."""


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """The files of which work is not done; all others that were found are read."""

    noted: Noted
    waiting: Mapping[str, Hashes]
    """The files with work that waits, by the reason."""
    aside: Mapping[File, str]
    """The files with work that was set aside when they were read last, with the reason."""
    given_up: Mapping[File, str]
    """The files with work that was given up when they were read last, with the reason."""
    followed: Hashes
    """The files with work that has begun and has no end."""
    left: Mapping[File, int]
    """How many bytes of files wait."""

    @classmethod
    def of(cls, ledger: Ledger, checkpoint: Checkpoint, known: Noted | None = None) -> Self:
        """The files with work that is not done after the last window, which has this checkpoint."""
        noted, waiting, followed, left = Noted.of(ledger, known), dict[str, Hashes](), Hashes(), Counter[File]()
        for item in checkpoint.queue:
            if item.has_end or not item.done.turn:
                file = _file_of(item, noted)
                waiting.setdefault(f"it waits for {item.into.operator}", Hashes()).add(file)
                left[file] += item.positions
            else:
                followed.add(_file_of(item, noted))
        for work in untaken(ledger):
            file = work.operator, path_of(work.place.source)
            waiting.setdefault(UNTAKEN, Hashes()).add(file)
            left[file] += positions_in([work.place])
        set_aside = {
            (owner_of(each.item.name, each.item.into.operator, noted.receivers), each.item.name): (
                f"set aside: {each.reason}"
            )
            for each in checkpoint.suspects.aside
        }
        last = _found_last(ledger, noted, [*set_aside, *noted.given_up])
        return cls(noted, waiting, _of_last(last, set_aside), _of_last(last, noted.given_up), followed, left)

    def stage_of(self, owners: Collection[str], path: str) -> tuple[Stage, str]:
        """The stage of a file that was found, and why it is not read. `owners` are those whose file it may be."""
        files = [(owner, path) for owner in (*owners, "")]
        aside = next((self.aside[file] for file in files if file in self.aside), None)
        if aside is not None:
            return "quarantined", aside
        for reason, waiting in self.waiting.items():
            if any(file in waiting for file in files):
                return "waiting", reason
        given_up = next((self.given_up[file] for file in files if file in self.given_up), None)
        if given_up is not None:
            return "given-up", given_up
        return "read", FOLLOWED if any(file in self.followed for file in files) else ""

    def left_of(self, file: ListedFile, found: FoundFile | None) -> int:
        """How many bytes of a file are not read; 0 unless it waits."""
        if file.state != "waiting":
            return 0
        to_find = 0 if found is None or found.bytes is None or found.end is None else found.bytes - found.end
        return to_find + sum(self.left.get((owner, file.path), 0) for owner in (file.finder, ""))


def _file_of(item: WorkItem, noted: Noted) -> File:
    return owner_of(item.name, item.into.operator, noted.receivers), path_of(item.name)


def _found_last(ledger: Ledger, noted: Noted, sources: Iterable[tuple[str, str]]) -> Mapping[File, str]:
    """The source by which each file was found last, for the files of some sources: one that changed has several."""
    last = {(owner, path_of(source)): source for owner, source in sources}
    if not last:
        return last
    arrived = [(receiver, source) for source, receiver in noted.receivers.items()]
    for owner, source in (*arrived, *((owner_of(source, "", ()), source) for source in sources_in(ledger))):
        if (file := (owner, path_of(source))) in last:
            last[file] = source
    return last


def _of_last(last: Mapping[File, str], reasons: Mapping[tuple[str, str], str]) -> Mapping[File, str]:
    """The files, with the reasons of the sources by which they were found last."""
    return {file: reasons[file[0], source] for file, source in last.items() if (file[0], source) in reasons}


def listed(compilation: Compilation, ledger: Ledger, home: str = "") -> Iterator[ListedFile]:
    """The files that exist where the application looks for them, then those that were found before and are gone.

    Of an operator that does not list which files exist, as an author's own splitter, all found files are listed.
    """
    finders, running = owners_of(compilation), running_plan(compilation, ledger)
    files = FoundFiles.of(ledger, running[1])
    found = {name: Hashes() for name in finders}
    """The paths that each operator finds now."""
    unreadable: list[str] = []
    """Folders that may not be read: their files cannot be listed, and need not be gone."""
    for name, state in _states(running, ledger, home):
        if state.state != "ignored":
            found[name].add(state.path)
        if state.state in {"quarantined", "pending"} and is_folder(state.path):
            unreadable.append(f"{state.path}/")
        yield _now(files, name, finders[name], state)
    gone = Hashes()
    for each in _from_roots(ledger):
        finder, path = each.finder, each.path
        if path not in found.get(finder, ()) and gone.add((finder, path)):
            gone.add(path)
            is_gone = finder in finders and not path.startswith((*unreadable,)) and not is_there(path)
            yield _found(files, finder, [finder], path, is_gone=is_gone)
    for arrival in arrivals(files.noted, compilation):
        if arrival.path not in gone and not any(arrival.path in paths for paths in found.values()):
            yield _found(files, arrival.finder, [arrival.owner], arrival.path, is_gone=not is_there(arrival.path))


def recorded(ledger: Ledger) -> Iterator[ListedFile]:
    """The files that operators found, as the ledger records them: those of each input operator once, in order."""
    return (file for file, _ in described(FoundFiles.of(ledger, newest_checkpoint(ledger)), ledger))


def described(files: FoundFiles, ledger: Ledger) -> Iterator[tuple[ListedFile, FoundFile | None]]:
    """The files as `recorded` lists them, and what the chains of input operators record of them."""
    there = Hashes()
    for found in _from_roots(ledger):
        if there.add((found.finder, found.path)):
            there.add(found.path)
            yield _found(files, found.finder, [found.finder], found.path), found
    for arrival in arrivals(files.noted):
        if arrival.path not in there:
            yield _found(files, arrival.finder, [arrival.owner], arrival.path), None


def _now(files: FoundFiles, finder: str, owners: Collection[str], file: FileState) -> ListedFile:
    """A file that exists, with what its finder would do with it, or what became of it."""
    if file.state == "seen":
        return _found(files, finder, owners, file.path)
    return ListedFile(finder, file.path, file.state, file.reason)


def _found(files: FoundFiles, finder: str, owners: Collection[str], path: str, *, is_gone: bool = False) -> ListedFile:
    """A file that was found, with what became of it."""
    stage, reason = files.stage_of(owners, path)
    return ListedFile(finder, path, "gone" if is_gone and stage != "quarantined" else stage, reason)


def _from_roots(ledger: Ledger) -> Iterator[FoundFile]:
    """The files as chains record them: one that was read again several times."""
    last: FoundFile | None = None
    for name, chain, record in root_slices(ledger):
        rows = b",".join((chain.data(record) or b"").splitlines())
        for row in json.loads(b"[%b]" % rows):  # its hash was checked, so `read_json`, which is slower, finds no fault
            path = path_in(row)
            if path is None:
                continue
            if last is None or (name, path) != (last.finder, last.path):  # the blocks of a file follow each other
                if last is not None:
                    yield last
                last = FoundFile(name, path, record.block.system_time, record.seq)
            last.end = None if row.get("shares") else row.get("end")
            last.bytes = length_in(row) or last.end
    if last is not None:
        yield last


def states_at(compilation: Compilation, ledger: Ledger, path: str) -> list[ListedFile]:
    """What becomes of the file at a path now: for each operator that would find it, or where it arrived before."""
    running = running_plan(compilation, ledger)
    files = FoundFiles.of(ledger, running[1])
    owners = owners_of(compilation)
    found = [_now(files, name, owners[name], state) for name, state in _states(running, ledger, path=path)]
    if not found and is_there(path):
        here = (arrival for arrival in arrivals(files.noted, compilation) if arrival.path == path)
        found = [_found(files, arrival.finder, [arrival.owner], arrival.path) for arrival in here]
    return found


def states(compilation: Compilation, ledger: Ledger, path: str) -> Iterator[tuple[str, FileState]]:
    """The state of the file at a path, for each operator that discovers files."""
    return _states(running_plan(compilation, ledger), ledger, path=path)


def _states(
    running: tuple[RunningPlan, Checkpoint], ledger: Ledger, home: str = "", path: str | None = None
) -> Iterator[tuple[str, FileState]]:
    """The states of all files that exist, or of the one at a path, for each operator that discovers files."""
    plan, checkpoint = running
    graph, program = plan.configured.graph, plan.program
    for name, partitions in sorted(program.operators.items()):
        if not isinstance(partitions[0], ExplainsFiles):
            continue
        with set_up(program, ledger, checkpoint, name, home) as operator:
            assert isinstance(operator, ExplainsFiles), "it is an instance of the same class"
            for state in operator.file_states(items_into(graph, graph.by_name[name]), path):
                yield name, state


def running_plan(compilation: Compilation, ledger: Ledger) -> tuple[RunningPlan, Checkpoint]:
    """The plan with which the next launch begins, and the checkpoint of the last window."""
    checkpoint = newest_checkpoint(ledger)
    # the partitions that were assigned since do not matter: they change nothing of which files are found
    has_values = bool(checkpoint.changes.altered)
    plan = RunningPlan.resumed(compilation, checkpoint) if has_values else RunningPlan.of(compilation)
    return plan, checkpoint


@contextmanager
def set_up(program: Program, ledger: Ledger, checkpoint: Checkpoint, name: str, home: str = "") -> Iterator[Operator]:
    """An operator outside of a run, with its state from the ledger."""
    operator = live(program.operators[name][0], _state_of(ledger, checkpoint, name))
    operator.setup(program.context_of(name, 0, checkpoint.window + 1, Launch(home=home or str(Path.cwd()))))
    try:
        yield operator
    finally:
        operator.teardown()


def _state_of(ledger: Ledger, checkpoint: Checkpoint, name: str) -> SavedState:
    """The state of an operator: an input operator keeps it in its own chain, another one in the checkpoint."""
    if name in checkpoint.operators.state:
        return checkpoint.operators.state[name][0]
    if name in ledger.names() and ledger.chain(name).kind is DatasetKind.ROOT:
        return stored_in(ledger.chain(name))[1]
    return {}
