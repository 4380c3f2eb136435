"""A window in which an operator's server does not answer is tried again until it does, and nothing of it is doubled."""

import errno
import logging
import tempfile
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import pytest

from dagkit import InputOperator, InputPort, Operator, OutputPort, Shutdown, State, Unavailable
from dagkit.api.running import Context, Until
from dagkit.engine.parts.in_flight import ATTEMPTS_AT_LOST_WINDOWS
from dagkit.engine.program.failures import OperatorFailed, WindowLost
from dagkit.engine.program.points import Point
from dagkit.engine.record.run_events import Failed, RunEvent
from dagkit.engine.record.status_file import LaunchMarker
from dagkit.engine.worker.protocol import Answer, Backend, WindowTask
from dagkit.testing import CrashAfter, FakeClock
from tests.engine.cast import Around, Collect, Desk, Script, arrived, chain, on_both, reference, slots

AWAY = iter(())


class Priced(Operator):
    """Asks a server in one of its methods, and counts what it priced."""

    kind = "awaited.priced/1"
    input = InputPort(int)
    output = OutputPort(int)
    asks_in: str = "process"
    count = State(0)

    def begin_window(self, window_id):
        self.ask("begin_window")

    def process(self, item):
        self.count += 1
        self.output.emit(10 * item)
        self.ask("process")

    def end_window(self):
        self.ask("end_window")

    def ask(self, method):
        if method == self.asks_in and next(AWAY, False):
            raise Unavailable("the server answers 503")


def priced(asks_in):
    return chain(numbers=Script(looks=((1, 2), (3,))), priced=Priced(asks_in=asks_in), collect=Collect())


@on_both
@pytest.mark.parametrize("asks_in", ["begin_window", "process", "end_window"])
def test_a_window_waits_for_the_server_of_an_operator_and_is_processed_once(
    tmp_path, monkeypatch, caplog, asks_in, backend
):
    monkeypatch.setattr(f"{__name__}.AWAY", iter([True, True, True]))
    clock = FakeClock()
    began = clock.now()
    desk = Desk(tmp_path, priced(asks_in), clock=clock, backend=backend)
    with caplog.at_level(logging.WARNING):
        loop = desk.run()
    assert arrived(loop) == [10, 20, 30]
    assert loop.state["priced"][0]["count"] == 3
    assert caplog.text.count("priced does not answer, and is tried again until it does: the server answers 503") == 1
    assert caplog.text.count("priced answers again") == 1
    assert (clock.now() - began).total_seconds() >= 0.7
    assert desk.faults() == []


def test_a_launch_that_is_to_stop_leaves_the_window_to_the_next_one(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(f"{__name__}.AWAY", iter(lambda: True, None))
    desk = Desk(tmp_path, priced("process"), clock=FakeClock())
    loop = desk.loop(observers=[lambda event: loop.stop() if type(event).__name__ == "Failed" else None])
    loop.run()
    assert (loop.checkpoint.window, "window 1 waited for a server" in caplog.text) == (0, True)
    monkeypatch.setattr(f"{__name__}.AWAY", iter(()))
    assert arrived(desk.run()) == [10, 20, 30]
    assert desk.faults() == []


def test_another_failure_after_an_outage_ends_the_run(tmp_path, monkeypatch):
    def answers():
        yield True
        raise ValueError("no price")

    monkeypatch.setattr(f"{__name__}.AWAY", answers())
    with pytest.raises(OperatorFailed, match="no price"):
        Desk(tmp_path, priced("process"), clock=FakeClock()).run()


def test_a_window_that_notes_its_records_waits_for_a_server_while_the_disk_is_full(tmp_path, monkeypatch):
    desk = Desk(tmp_path, priced("process"), clock=FakeClock(), backend=slots)
    desk.crash(CrashAfter(Point.PLANNED, 1))
    LaunchMarker(desk.ledger().store).begin()
    make, folders = tempfile.mkdtemp, []

    def mkdtemp(**given):
        if folders:
            raise OSError(errno.ENOSPC, "No space left on device")
        folders.append(make(**given))
        return folders[0]

    monkeypatch.setattr("tempfile.mkdtemp", mkdtemp)
    monkeypatch.setattr(f"{__name__}.AWAY", iter([True, True]))
    assert arrived(desk.run()) == [10, 20, 30]
    assert (len(folders), next(AWAY, None)) == (1, None)


class Pages(InputOperator):
    """Sends pages of two numbers; the server is away in the middle of some requests."""

    kind = "unavailable.pages/1"
    out = OutputPort(int)
    page = State(0)

    def emit_tuples(self):
        if self.page == 3:
            raise Shutdown
        self.page += 1
        self.out.emit(2 * self.page)
        if next(AWAY, False):
            raise Unavailable("the server answers 503")
        self.out.emit(2 * self.page + 1)


@pytest.mark.parametrize("until", [Until.ONCE, Until.IDLE, Until.STOPPED])
@pytest.mark.parametrize("crash", [None, CrashAfter(Point.APPENDED, 1)])
def test_every_page_is_sent_once_whenever_the_server_is_away(tmp_path, monkeypatch, caplog, until, crash):
    monkeypatch.setattr(f"{__name__}.AWAY", iter([True, True, False, True, False, False, True]))

    def graph(dag, conf):
        dag.add_operator("pages", Pages()) >> dag.add_operator("collect", Collect())

    desk = Desk(tmp_path, graph, until=until, clock=FakeClock())
    with caplog.at_level(logging.WARNING):
        desk.crash(*([crash] if crash else []))
        loop = desk.run()
    while until is Until.ONCE and len(arrived(loop)) < 6:
        loop = desk.run()
    assert arrived(loop) == [2, 3, 4, 5, 6, 7]
    assert "pages does not answer, and is tried again until it does: the server answers 503" in caplog.text
    assert desk.faults() == []


ACKNOWLEDGED: list[int] = []


class Acknowledged(Pages):
    """Acknowledges each page once it is committed."""

    kind = "unavailable.acknowledged/1"
    context: ClassVar[Context]

    def setup(self, context):
        Acknowledged.context = context

    def emit_tuples(self):
        self.context.finalizer.register(partial(ACKNOWLEDGED.append, self.page + 1))
        super().emit_tuples()


def test_a_look_whose_source_is_away_acknowledges_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.AWAY", iter([True, True, False, True]))
    ACKNOWLEDGED.clear()

    def graph(dag, conf):
        dag.add_operator("pages", Acknowledged()) >> dag.add_operator("collect", Collect())

    loop = Desk(tmp_path, graph, until=Until.IDLE, clock=FakeClock()).run()
    assert arrived(loop) == [2, 3, 4, 5, 6, 7]
    assert ACKNOWLEDGED[:3] == [1, 2, 3]


@dataclass
class Losing(Around):
    losses: int = 0
    given: list[int] = field(default_factory=list)

    def run(self, assignment: WindowTask) -> Answer:
        self.given.append(assignment.window_id)
        if len(self.given) <= self.losses:
            raise WindowLost("a machine went away")
        return self.inner.run(assignment)


DRAW = chain(numbers=Script(looks=((1, 2), (3,))), collect=Collect())


def test_a_window_that_was_lost_runs_again(tmp_path):
    losing: list[Losing] = []

    def backend(inner: Backend) -> Backend:
        losing.append(Losing(inner, ATTEMPTS_AT_LOST_WINDOWS))
        return losing[0]

    assert arrived(Desk(tmp_path, DRAW, backend=backend).run()) == [1, 2, 3]
    assert losing[0].given == [1] * ATTEMPTS_AT_LOST_WINDOWS + [1, 2]


def test_a_window_that_is_lost_again_and_again_ends_the_run_and_not_the_application(tmp_path):
    told: list[RunEvent] = []
    desk = Desk(tmp_path, DRAW, backend=lambda inner: Losing(inner, ATTEMPTS_AT_LOST_WINDOWS + 1))
    with pytest.raises(WindowLost, match="went away"):
        desk.run(observers=[told.append])
    failed = [each for each in told if isinstance(each, Failed)]
    assert [each.again for each in failed] == [True] * ATTEMPTS_AT_LOST_WINDOWS + [False]
    assert {(each.operator, each.message) for each in failed} == {(None, "WindowLost: a machine went away")}
    desk.backend = reference
    assert arrived(desk.run()) == [1, 2, 3]
