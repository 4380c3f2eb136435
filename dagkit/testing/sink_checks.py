"""Checks that a sink takes each window exactly once, after a crash at any step, and if a late driver repeats it."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dagkit.api.application import FunctionApplication
from dagkit.api.configuration import Config
from dagkit.api.dag import Dag
from dagkit.api.external import ExternalSystem, external_outputs
from dagkit.api.operators import InputOperator, Operator
from dagkit.api.ports import OutputPort
from dagkit.engine.program.points import Point
from dagkit.testing.alone import Alone
from dagkit.testing.crashes import Crashes
from dagkit.testing.operator_checks import ContractBroken
from dagkit.testing.rehearsal import Rehearsal

SinkT = TypeVar("SinkT", bound=Operator)
Make = Callable[[Path], SinkT]
Read = Callable[[Path], Any]


class Feed(InputOperator):
    """The input of the sink under test."""

    kind = "dagkit.testing.feed/1"
    items = OutputPort[Any]()


def check_sink(make: Make[SinkT], read: Read, *windows: Sequence[Any]) -> None:
    """Check that a sink stores each window exactly once. Raise ContractBroken.

    `make` creates the sink for an empty folder, and `read` returns what is visible there, such as rows or the content
    of files. For each step of a window, the run is ended after this step in every window and resumed. For an
    `ExternalSystem`, windows that it has are applied again, as a late driver does. The result must be that of an
    undisturbed run.
    """
    name, expected = _undisturbed(make, read, windows)
    for point in Point:
        with tempfile.TemporaryDirectory(prefix="dagkit-sink-") as folder:
            crashes = Crashes(point)
            rehearsal = _rehearsal(make(Path(folder)), windows)
            crashes(lambda probe, rehearsal=rehearsal: rehearsal.run(probe=probe))  # type: ignore[misc]
            found = read(Path(folder))
        if found != expected:
            how = f"ended after {point} of the windows {crashes.windows} and resumed"
            raise ContractBroken(f"{name}, {how}: {found!r:.300} instead of {expected!r:.300}")
    for output in external_outputs(type(_made(make))):
        _check_late_driver(make, read, windows, output)


def _made(make: Make[SinkT]) -> SinkT:
    with tempfile.TemporaryDirectory(prefix="dagkit-sink-") as folder:
        return make(Path(folder))


def _undisturbed(make: Make[SinkT], read: Read, windows: Sequence[Sequence[Any]]) -> tuple[str, Any]:
    """The name of the sink, and what is visible after a run without crashes."""
    with tempfile.TemporaryDirectory(prefix="dagkit-sink-") as folder:
        sink, empty = make(Path(folder)), None
        name = type(sink).__name__
        _rehearsal(sink, ()).run()
        empty = read(Path(folder))
        _rehearsal(sink, windows).run()
        expected = read(Path(folder))
    if expected == empty:
        raise ContractBroken(f"{name} stored nothing, so nothing can be proven of it")
    return name, expected


def _rehearsal(sink: Operator, windows: Sequence[Sequence[Any]]) -> Rehearsal:
    def populate_dag(dag: Dag, conf: Config) -> None:  # noqa: ARG001 - the signature of applications
        dag.add_operator("Feed", Feed()) >> dag.add_operator("Sink", sink)

    return Rehearsal(FunctionApplication(populate=populate_dag), inputs=[{"Feed": items} for items in windows])


@dataclass(frozen=True)
class _Window:
    """A window that one operator staged alone."""

    writer: str
    window_id: int
    staged: tuple[bytes, ...]

    def entries(self) -> Iterator[bytes]:
        yield from self.staged


def _check_late_driver(make: Make[SinkT], read: Read, windows: Sequence[Sequence[Any]], output: str) -> None:
    """Apply all windows, then again from the first on, by a system that was connected meanwhile."""
    with tempfile.TemporaryDirectory(prefix="dagkit-sink-") as folder:
        sink = make(Path(folder))
        staged = list(_staged(sink, windows, output))
        for window in staged:
            with closing(_connected(sink, output)) as system:
                system.apply(window)
        expected = read(Path(folder))
        with closing(_connected(sink, output)) as system:
            for window in staged:
                system.apply(window)
                found = read(Path(folder))
                if found != expected:
                    how = f"window {window.window_id} applied again after window {staged[-1].window_id}"
                    help_ = "compare with <=: a window that is not newer than the recorded one is there already"
                    name = type(sink).__name__
                    raise ContractBroken(f"{name}, {how}: {found!r:.300} instead of {expected!r:.300}; {help_}")


def _connected(sink: Operator, output: str) -> ExternalSystem:
    system = external_outputs(type(sink))[output].system(sink)
    system.prepare("check")
    return system


def _staged(sink: Operator, windows: Sequence[Sequence[Any]], output: str) -> Iterator[_Window]:
    alone = Alone(sink)
    for items in windows:
        with alone.window() as window_id:
            alone.send(*items)
        staged = tuple(alone.entries[output].added)
        alone.entries[output].added.clear()
        if staged:
            yield _Window("check", window_id, staged)
