"""The input files that exist, with what operators would do with each, and those that the ledger names."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from dagkit.api.files import ExplainsFiles, FileState
from dagkit.api.operators import Operator
from dagkit.compiler import Compilation
from dagkit.compiler.rules.file_rules import items_into
from dagkit.engine.changes.running_plan import RunningPlan
from dagkit.engine.checkpoint.checkpoint import Checkpoint
from dagkit.engine.checkpoint.journal import stored_in
from dagkit.engine.history.history import newest_checkpoint
from dagkit.engine.program.program import Program
from dagkit.engine.worker.instances import SavedState, live
from dagkit.inventory.arrivals import Arrival, arrivals, is_folder, is_there, path_of
from dagkit.inventory.hashes import Hashes
from dagkit.inventory.readings import path_in, slices
from dagkit.ledger import DatasetKind, Ledger

State = Literal["seen", "new", "pending", "ignored", "quarantined", "gone"]
"""The states of `FileState`; and `gone`: the file was found before, and is not where it was."""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """One file, and the operator that found it or would find it."""

    finder: str
    path: str
    state: State
    reason: str = ""


def listed(compilation: Compilation, ledger: Ledger, home: str = "") -> Iterator[ListedFile]:
    """The files that exist where the application looks for them, then those that were found before and are gone.

    Of an operator that does not say which files exist, as an author's own splitter, all that were found are listed.
    """
    yield from _with_aside(ledger, _listed_now(compilation, ledger, home))


def _listed_now(compilation: Compilation, ledger: Ledger, home: str) -> Iterator[ListedFile]:
    finders = places(compilation)
    found = {name: Hashes() for name in finders}
    """The paths that each operator finds now."""
    unreadable: list[str] = []
    """Folders that may not be read: their files cannot be listed, and need not be gone."""
    for name, state in states(compilation, ledger, home):
        if state.state != "ignored":
            found[name].add(state.path)
        if state.state == "quarantined" and is_folder(state.path):
            unreadable.append(f"{state.path}/")
        yield ListedFile(name, state.path, state.state, state.reason)
    gone = Hashes()
    for file in _from_roots(ledger):
        if file.path not in found.get(file.finder, ()) and gone.add((file.finder, file.path)):
            gone.add(file.path)
            is_gone = file.finder in finders and not file.path.startswith((*unreadable,))
            yield replace(file, state="gone") if is_gone else file
    for arrival in arrivals(ledger, compilation):
        if arrival.path not in gone and not any(arrival.path in paths for paths in found.values()):
            yield _listed(arrival, is_gone=not is_there(arrival.path))


def recorded(ledger: Ledger) -> Iterator[ListedFile]:
    """The files that operators found, as the ledger records them: those of each input operator once, in order."""
    yield from _with_aside(ledger, _recorded(ledger))


def _recorded(ledger: Ledger) -> Iterator[ListedFile]:
    there = Hashes()
    for file in _from_roots(ledger):
        if there.add((file.finder, file.path)):
            there.add(file.path)
            yield file
    yield from (_listed(arrival, is_gone=False) for arrival in arrivals(ledger) if arrival.path not in there)


def _with_aside(ledger: Ledger, files: Iterable[ListedFile]) -> Iterator[ListedFile]:
    """The files, of which those are quarantined that were found before, and of which work is set aside."""
    reasons = {path_of(each.item.name): each.reason for each in newest_checkpoint(ledger).aside}
    for file in files:
        is_aside = file.path in reasons and file.state in ("seen", "gone")
        yield replace(file, state="quarantined", reason=f"set aside: {reasons[file.path]}") if is_aside else file


def _listed(arrival: Arrival, *, is_gone: bool) -> ListedFile:
    if arrival.waits_for:
        return ListedFile(arrival.finder, arrival.path, "pending", f"it waits for {arrival.waits_for}")
    return ListedFile(arrival.finder, arrival.path, "gone" if is_gone else "seen")


def _from_roots(ledger: Ledger) -> Iterator[ListedFile]:
    """The files that input operators found, as their chains record them: one that was read again several times."""
    last = ("", "")
    for name, chain, record in slices(ledger):
        rows = b",".join((chain.data(record) or b"").splitlines())
        for row in json.loads(b"[%b]" % rows):  # its hash was checked, so `read_json`, which is slower, finds no fault
            path = path_in(row)
            if path is not None and (name, path) != last:  # the blocks of a file follow each other
                last = name, path
                yield ListedFile(name, path, "seen")


def states_at(compilation: Compilation, ledger: Ledger, path: str) -> list[ListedFile]:
    """What becomes of the file at a path now: for each operator that would find it, or where it arrived before."""
    found = [ListedFile(name, at.path, at.state, at.reason) for name, at in states(compilation, ledger, path=path)]
    if not found and is_there(path):
        found = [_listed(arrival, is_gone=False) for arrival in arrivals(ledger, compilation) if arrival.path == path]
    return list(_with_aside(ledger, found))


def states(
    compilation: Compilation, ledger: Ledger, home: str = "", path: str | None = None
) -> Iterator[tuple[str, FileState]]:
    """What each operator that discovers files would do with the files that exist, or with the one at a path."""
    plan, checkpoint = running_plan(compilation, ledger)
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
    return RunningPlan.resumed(compilation, checkpoint) if checkpoint.altered else RunningPlan.of(
        compilation
    ), checkpoint


@contextmanager
def set_up(program: Program, ledger: Ledger, checkpoint: Checkpoint, name: str, home: str = "") -> Iterator[Operator]:
    """An operator outside of a run, with its state from the ledger."""
    operator = live(program.operators[name][0], _state_of(ledger, checkpoint, name))
    operator.setup(program.context_of(name, 0, checkpoint.window + 1, home or str(Path.cwd())))
    try:
        yield operator
    finally:
        operator.teardown()


def places(compilation: Compilation) -> Mapping[str, Sequence[str]]:
    """The paths and patterns that each operator searches for files."""
    graph = compilation.graph
    finders = [(node, node.operator) for node in graph.nodes if isinstance(node.operator, ExplainsFiles)]
    return {node.name: list(operator.places(items_into(graph, node))) for node, operator in finders}


def receivers(compilation: Compilation) -> Mapping[str, frozenset[str]]:
    """The operators that each operator sends items to."""
    found: dict[str, set[str]] = {}
    for node in compilation.graph.nodes:
        for _, stream in compilation.graph.connected_inputs(node.name):
            for end in (stream.source, *stream.further_sources):
                if end is not None:
                    found.setdefault(end.node, set()).add(node.name)
    return {name: frozenset(names) for name, names in found.items()}


def _state_of(ledger: Ledger, checkpoint: Checkpoint, name: str) -> SavedState:
    """The state of an operator: an input operator keeps it in its own chain, another one in the checkpoint."""
    if name in checkpoint.state:
        return checkpoint.state[name][0]
    if name in ledger.names() and ledger.chain(name).kind is DatasetKind.ROOT:
        return stored_in(ledger.chain(name))[1]
    return {}
