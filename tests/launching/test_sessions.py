"""A launch whose sessions end resumes in others, as on a Spark Connect server that starts again."""

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dagkit.api.outage import Patience, present_outages
from dagkit.engine.parts.requests import Request, StopRun, ask, reply_to
from dagkit.engine.program.points import Point
from dagkit.engine.record.run_events import Failed, Resumed, RunEvent, Starting
from dagkit.engine.record.status_file import read_status
from dagkit.errors import RunFailure
from dagkit.launching import Launched, Machine, launch
from dagkit.ledger import Ledger, SequenceTaken
from dagkit.runs.sessions import MOST_IN_VAIN, Sessions
from tests.launching.cast import LAST, place, summed, summing
from tests.patience import join, within


class Lost(RunFailure):
    code = "spark-ended"
    exit_code = 9


class Away(RunFailure):
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


def launched(probe: Any, at_opening: Any = lambda: None, **options: Any) -> Launched:
    return launch(summing, machine=OnServer("reference", at_opening=at_opening), probe=probe, **options)


def resumed(**options: Any) -> int | None:
    return launch(summing, until="once", machine=Machine("reference"), **options).window_id


@pytest.mark.parametrize("point", [Point.PLANNED, Point.RUNNING, Point.STAGED, Point.APPENDED])
def test_a_launch_resumes_in_another_session(point):
    probe = Ending([2, 3], point)
    ended = launched(probe, until="once")
    assert (ended.window_id, summed(), probe.windows, ended.status.state) == (LAST, 10, [], "stopped")


def test_the_end_of_a_session_is_reported_once(caplog):
    seen: list[RunEvent] = []
    launched(Ending([3]), until="once", observers=[seen.append])
    assert [each for each in seen if isinstance(each, Failed | Starting | Resumed)] == [
        Resumed("tests.launching.cast", 0, 0, promised=False),
        Failed(3, None, "Lost: the server has started again", again=True),
        Starting("opening another session at spark:15002"),
        Resumed("tests.launching.cast", 2, 1, promised=True),
    ]
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "the server has started again; the launch resumes from its ledger, in another session"
    ]


def test_the_number_of_windows_counts_over_all_sessions():
    assert (launched(Ending([2, 3, 3]), until="once", windows=3).window_id, summed()) == (3, 6)


def test_a_fresh_launch_is_fresh_once():
    resumed(windows=1)
    ended = launched(Ending([2, 3]), until="once", fresh=True)
    assert (ended.window_id, len([*Path(".dagkit").iterdir()])) == (LAST, 2)


def test_it_ends_after_some_sessions_in_vain():
    probe = Ending([1, 2, 2, *[3] * MOST_IN_VAIN, 3])
    with pytest.raises(Lost):
        launched(probe, until="once")
    assert (probe.windows, summed()) == ([3], 3)
    assert (resumed(), summed()) == (LAST, 10)


def test_sessions_elsewhere_are_not_replaced_and_other_failures_are_raised():
    with pytest.raises(Lost):
        resumed(probe=Ending([2]))

    class Incomplete(RunFailure):
        code = "spark-incomplete"

    def fail() -> None:
        raise Incomplete("packages are missing", "install them")

    with pytest.raises(Incomplete):
        launched(Ending([2]), fail, until="once")


def test_it_waits_for_a_server_that_is_away(caplog):
    refusing = Refusing(2)
    assert (launched(Ending([2]), refusing, until="once").window_id, summed()) == (LAST, 10)
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
        launched(Ending([2]), interrupted)
    status = read_status(Ledger.open(place()).store)
    assert (status.state, status.window, status.error.code) == ("failed", 1, "spark-ended")
    assert resumed() == LAST


def test_a_request_ends_the_waiting():
    asked: list[Request] = []

    def stopped_from_outside() -> None:
        store = Ledger.open(place()).store
        asked.append(ask(store, StopRun(launch=read_status(store).driver.launch), datetime.now(UTC)))
        raise Away("nothing listens there")

    with pytest.raises(Lost):
        launched(Ending([2]), stopped_from_outside)
    reply = reply_to(Ledger.open(place()).store, asked[0])
    assert (reply.done, reply.window) == (True, 1)
    assert resumed() == LAST


def test_no_session_is_opened_for_a_launch_that_is_to_stop():
    class Stopping(Ending):
        def __call__(self, point: Point, window_id: int) -> None:
            if (point, window_id) == (Point.RUNNING, 2):
                signal.raise_signal(signal.SIGINT)
            super().__call__(point, window_id)

    opened = Refusing(0)
    with pytest.raises(Lost):
        launched(Stopping([2]), opened)
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
    with pytest.raises(SequenceTaken):
        launched(Ending([2]), lambda: resumed(windows=1, take_over=True), until="once")
    assert summed() == 3
    assert resumed() == LAST


def test_a_driver_stops_that_another_one_is_about_to_replace():
    there, released = threading.Event(), threading.Event()

    def hold(event: RunEvent) -> None:
        if isinstance(event, Resumed):
            there.set()
            assert released.wait(within(60))

    other = threading.Thread(target=resumed, kwargs={"take_over": True, "observers": [hold]})

    def replaced() -> None:
        other.start()
        assert there.wait(within(60))

    try:
        with pytest.raises(RunFailure, match=r"\[driver-runs\]"):
            launched(Ending([2]), replaced, until="once")
    finally:
        released.set()
        join(other, seconds=50)
    assert summed() == 10
