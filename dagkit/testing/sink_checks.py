"""Checks that a sink takes each window exactly once, after a crash at any step, and if a late driver repeats it."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar, Union

from dagkit.api.application import FunctionApplication
from dagkit.api.configuration import Config
from dagkit.api.dag import Dag
from dagkit.api.external import external_outputs
from dagkit.api.operators import InputOperator, Operator
from dagkit.api.ports import OutputPort, input_ports
from dagkit.engine.program.codec import ItemUnwritable, JsonCodec
from dagkit.engine.program.points import Point
from dagkit.schema import arguments_of_class, is_known, substitute
from dagkit.testing.alone import Alone
from dagkit.testing.crashes import Crashes
from dagkit.testing.operator_checks import ContractBroken, until_answered
from dagkit.testing.rehearsal import Rehearsal

T = TypeVar("T")
SinkT = TypeVar("SinkT", bound=Operator)
Make = Callable[[Path], SinkT]
Read = Callable[[Path], Any]


class Feed(InputOperator, Generic[T]):
    """The input of the sink under test."""

    kind = "dagkit.testing.feed/1"
    items = OutputPort[T]()


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
        # A sink may make an empty table or file without any item, which proves nothing.
        _rehearsal(sink, ()).run()
        empty = read(Path(folder))
        _rehearsal(sink, windows).run()
        expected = read(Path(folder))
    if expected == empty:
        raise ContractBroken(f"{name} stored nothing, so nothing can be proven of it")
    return name, expected


def _rehearsal(sink: Operator, windows: Sequence[Sequence[Any]]) -> Rehearsal:
    of_payload: Any = Feed
    feed = of_payload[_payload_of(sink, [item for items in windows for item in items])]()

    def populate_dag(dag: Dag, conf: Config) -> None:  # noqa: ARG001 - the signature of applications
        dag.add_operator("Feed", feed) >> dag.add_operator("Sink", sink)

    return Rehearsal(FunctionApplication(populate=populate_dag), inputs=[{"Feed": items} for items in windows])


def _payload_of(sink: Operator, items: Sequence[Any]) -> Any:
    """The type that the main input takes, or the classes of the items if it is not known or cannot keep them."""
    ports = list(input_ports(type(sink)).values())
    main = [port for port in ports if port.main or len(ports) == 1]
    taken = substitute(main[0].payload, arguments_of_class(type(sink))) if main else Any
    if not items or (is_known(taken) and _can_keep(taken, items)):
        return taken
    return Union[tuple(dict.fromkeys(map(type, items)))]  # noqa: UP007 - built from a tuple


def _can_keep(payload: Any, items: Sequence[Any]) -> bool:
    """Whether the ledger can keep the items as this type. It cannot keep 1 in a `list[float]`, which a sink takes."""
    written = JsonCodec("Feed.items", payload)
    try:
        for item in items:
            written.of(item)
    except ItemUnwritable:
        return False
    return True


@dataclass(frozen=True)
class _Window:
    """A window that one operator staged alone."""

    writer: str
    window_id: int
    staged: tuple[bytes, ...]

    def entries(self) -> Iterator[bytes]:
        yield from self.staged


def _check_late_driver(make: Make[SinkT], read: Read, windows: Sequence[Sequence[Any]], output: str) -> None:
    """Apply all windows, then again from the first on. Each time, another system is connected."""
    with tempfile.TemporaryDirectory(prefix="dagkit-sink-") as folder:
        # As compiled: with the properties that the type of the items implies.
        sink = _rehearsal(make(Path(folder)), windows).compilation.graph.by_name["Sink"].operator
        assert isinstance(sink, Operator), "it was placed as one"
        staged = list(_staged(sink, windows, output))
        name = type(sink).__name__
        for window in staged:
            until_answered(name, partial(_apply, sink, output, window))
        expected = read(Path(folder))
        for window in staged:
            until_answered(name, partial(_apply, sink, output, window))
            found = read(Path(folder))
            if found != expected:
                how = f"window {window.window_id} applied again after window {staged[-1].window_id}"
                help_ = "compare with <=: a window that is not newer than the recorded one is there already"
                raise ContractBroken(f"{name}, {how}: {found!r:.300} instead of {expected!r:.300}; {help_}")


def _apply(sink: Operator, output: str, window: _Window) -> None:
    with closing(external_outputs(type(sink))[output].system(sink)) as system:
        system.prepare("check")
        system.apply(window)


def _staged(sink: Operator, windows: Sequence[Sequence[Any]], output: str) -> Iterator[_Window]:
    alone = Alone(sink)
    for items in windows:
        with alone.window() as window_id:
            alone.send(*items)
        staged = tuple(alone.entries[output].added)
        alone.entries[output].added.clear()
        if staged:
            yield _Window("check", window_id, staged)
