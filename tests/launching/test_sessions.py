"""A launch whose sessions end resumes in others, as on a Spark Connect server that starts again."""

import json
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dagkit import Config, Dag, InputOperator, InputPort, Operator, OutputPort, State
from dagkit.api.outage import Patience, present_outages
from dagkit.engine.changes.requests import Request, StopRun, ask, reply_to
from dagkit.engine.points import Point
from dagkit.engine.reports.run_events import Failed, Resumed, RunEvent, Starting
from dagkit.engine.reports.status_file import DriverRuns, read_status
from dagkit.errors import RunFailure
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger, SequenceTaken
from dagkit.ledger.audit.verify import verify
from dagkit.sessions import MOST_IN_VAIN, Sessions
from tests.patience import join, within

LAST = 4


class Numbers(InputOperator):
    """One number in each window, up to the last."""

    kind = "sessions.numbers/1"
    output = OutputPort(int)
    sent = State(0)

    def emit_tuples(self) -> None:
        if self.sent < LAST:
            self.sent += 1
            self.output.emit(self.sent)


class Sum(Operator):
    """Adds up."""

    kind = "sessions.sum/1"
    input = InputPort(int)
    total = State(0)

    def process(self, item: int) -> None:
        self.total += item


def summing(dag: Dag, conf: Config) -> None:
    dag.add_operator("Numbers", Numbers()) >> dag.add_operator("Sum", Sum())


class Lost(RunFailure):
    """The server has started again."""

    code = "spark-ended"
    exit_code = 9


class Away(RunFailure):
    """Nothing listens there."""

    code = "spark-unavailable"


@dataclass(frozen=True, slots=True)
class OnServer(Machine):
    """The reference as a server that opens sessions; `at_opening` may raise what it answers."""

    at_opening: Callable[[], object] = lambda: None

    @property
    def server(self) -> str | None:
        return "spark:15002"

    def opened_again(self) -> Machine:
        self.at_opening()
        return self


@dataclass
class Ending:
    """A probe at which sessions end, each time that a window of these reaches a point."""

    windows: list[int]
    point: Point = Point.RUNNING

    def __call__(self, point: Point, window_id: int) -> None:
        if point is self.point and window_id in self.windows:
            self.windows.remove(window_id)
            raise Lost("the server has started again", "launch again")


@dataclass
class Refusing:
    """A server that is away for this many attempts to open a session."""

    attempts: int
    asked: list[str] = field(default_factory=list)

    def __call__(self) -> None:
        self.asked.append("".join(present_outages()))
        if len(self.asked) <= self.attempts:
            raise Away("nothing listens there", "start it")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def summed() -> int:
    """The sum that the ledger of the only application has, which verifies."""
    (place,) = Path(".dagkit").iterdir()
    ledger = Ledger.open(str(place))
    assert verify(ledger).is_valid
    (name,) = {*ledger.names()} - {"Numbers"}
    total: int = json.loads(ledger.chain(name).checkpoint() or b"")["state"]["Sum"][0]["total"]
    return total


@pytest.mark.parametrize("point", [Point.PLANNED, Point.RUNNING, Point.STAGED, Point.APPENDED])
def test_a_launch_resumes_in_another_session(point):
    probe = Ending([2, 3], point)
    launched = launch(summing, until="once", machine=OnServer("reference"), probe=probe)
    assert (launched.window_id, summed(), probe.windows) == (LAST, 10, [])
    assert launched.status is not None
    assert launched.status.state == "stopped"


def test_the_end_of_a_session_is_reported_once(caplog):
    seen: list[RunEvent] = []
    launch(summing, until="once", machine=OnServer("reference"), probe=Ending([3]), observers=[seen.append])
    assert [each for each in seen if isinstance(each, Failed | Starting | Resumed)] == [
        Resumed("tests.launching.test_sessions", 0, 0, promised=False),
        Failed(3, None, "Lost: the server has started again", again=True),
        Starting("opening another session at spark:15002"),
        Resumed("tests.launching.test_sessions", 2, 1, promised=True),
    ]
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "the server has started again; the launch resumes from its ledger, in another session"
    ]


def test_the_number_of_windows_counts_over_all_sessions():
    launched = launch(summing, until="once", windows=3, machine=OnServer("reference"), probe=Ending([2, 3, 3]))
    assert (launched.window_id, summed()) == (3, 6)


def test_a_fresh_launch_is_fresh_once():
    launch(summing, until="once", windows=1, machine=Machine("reference"))
    launched = launch(summing, until="once", fresh=True, machine=OnServer("reference"), probe=Ending([2, 3]))
    places = [*Path(".dagkit").iterdir()]
    assert (launched.window_id, len(places)) == (LAST, 2)


def test_it_ends_after_some_sessions_in_vain():
    probe = Ending([1, 2, 2, *[3] * MOST_IN_VAIN, 3])
    with pytest.raises(Lost):
        launch(summing, until="once", machine=OnServer("reference"), probe=probe)
    assert probe.windows == [3]
    assert summed() == 3
    assert launch(summing, until="once", machine=Machine("reference")).window_id == LAST
    assert summed() == 10


def test_sessions_elsewhere_are_not_replaced():
    with pytest.raises(Lost):
        launch(summing, until="once", machine=Machine("reference"), probe=Ending([2]))


def test_other_failures_are_raised():
    class Incomplete(RunFailure):
        code = "spark-incomplete"

    def fail() -> None:
        raise Incomplete("packages are missing", "install them")

    with pytest.raises(Incomplete):
        launch(summing, until="once", machine=OnServer("reference", at_opening=fail), probe=Ending([2]))


def test_it_waits_for_a_server_that_is_away(caplog):
    refusing = Refusing(2)
    launched = launch(summing, until="once", machine=OnServer("reference", at_opening=refusing), probe=Ending([2]))
    assert (launched.window_id, summed()) == (LAST, 10)
    assert refusing.asked[0] == ""
    assert all("the Spark Connect server spark:15002 has not answered for" in each for each in refusing.asked[1:])
    assert [record.getMessage().partition(", after")[0] for record in caplog.records[1:]] == [
        "the Spark Connect server spark:15002 does not answer, and is tried again until it does: nothing listens there",
        "the Spark Connect server spark:15002 answers again",
    ]
    assert present_outages() == ()


def test_a_signal_ends_the_waiting():
    def interrupted() -> None:
        signal.raise_signal(signal.SIGTERM)
        raise Away("nothing listens there")

    with pytest.raises(Lost):
        launch(summing, machine=OnServer("reference", at_opening=interrupted), probe=Ending([2]))
    (place,) = Path(".dagkit").iterdir()
    status = read_status(Ledger.open(str(place)).store)
    assert status is not None
    assert (status.state, status.window, status.error and status.error.code) == ("failed", 1, "spark-ended")
    assert launch(summing, until="once", machine=Machine("reference")).window_id == LAST


def test_a_request_ends_the_waiting():
    asked: list[Request] = []

    def stopped_from_outside() -> None:
        (place,) = Path(".dagkit").iterdir()
        store = Ledger.open(str(place)).store
        status = read_status(store)
        assert status is not None
        asked.append(ask(store, StopRun(launch=status.driver.launch), datetime.now(UTC)))
        raise Away("nothing listens there")

    with pytest.raises(Lost):
        launch(summing, machine=OnServer("reference", at_opening=stopped_from_outside), probe=Ending([2]))
    (place,) = Path(".dagkit").iterdir()
    reply = reply_to(Ledger.open(str(place)).store, asked[0])
    assert reply is not None
    assert (reply.done, reply.window) == (True, 1)
    assert launch(summing, until="once", machine=Machine("reference")).window_id == LAST


def test_no_session_is_opened_for_a_launch_that_is_to_stop():
    class Stopping(Ending):
        def __call__(self, point: Point, window_id: int) -> None:
            if (point, window_id) == (Point.RUNNING, 2):
                signal.raise_signal(signal.SIGINT)
            super().__call__(point, window_id)

    opened = Refusing(0)
    with pytest.raises(Lost):
        launch(summing, machine=OnServer("reference", at_opening=opened), probe=Stopping([2]))
    assert opened.asked == []


def test_it_does_not_wait_for_ever():
    @contextmanager
    def backend_on(_: Machine) -> Iterator[None]:
        raise Lost("the server has started again")
        yield

    refusing = Refusing(1000)
    sessions = Sessions(
        "spark:15002", lambda _: None, threading.Event(), patience=Patience(0.001, 0.002), longest_seconds=0.05
    )
    with pytest.raises(Away):
        sessions.run(OnServer("reference", at_opening=refusing), backend_on, lambda *_: pytest.fail("no backend"))
    assert len(refusing.asked) > 1


def test_a_driver_that_was_replaced_meanwhile_stops():
    def replaced() -> None:
        launch(summing, until="once", windows=1, machine=Machine("reference"), take_over=True)

    with pytest.raises(SequenceTaken):
        launch(summing, until="once", machine=OnServer("reference", at_opening=replaced), probe=Ending([2]))
    assert summed() == 3
    assert launch(summing, until="once", machine=Machine("reference")).window_id == LAST


def test_a_driver_stops_that_another_one_is_about_to_replace():
    there, released = threading.Event(), threading.Event()

    def hold(event: RunEvent) -> None:
        if isinstance(event, Resumed):
            there.set()
            assert released.wait(within(60))

    other = threading.Thread(
        target=launch,
        args=(summing,),
        kwargs={"until": "once", "machine": Machine("reference"), "take_over": True, "observers": [hold]},
    )

    def replaced() -> None:
        other.start()
        assert there.wait(within(60))

    try:
        with pytest.raises(DriverRuns):
            launch(summing, until="once", machine=OnServer("reference", at_opening=replaced), probe=Ending([2]))
    finally:
        released.set()
        join(other, seconds=50)
    assert summed() == 10
