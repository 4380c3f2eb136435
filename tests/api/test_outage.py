"""Servers that do not answer: what is known of them while the process waits."""

import gc
import os
import signal
import threading

from dagkit.api import outage as outages
from dagkit.api.outage import Outage, present_outages
from dagkit.testing import FakeClock
from tests.patience import join, within
from tests.processes import await_end


def present(name):
    """What this process waits for, of the servers of this test."""
    return [sentence for sentence in present_outages() if sentence.startswith(name)]


def test_an_outage_is_present_from_the_first_failure_to_the_answer():
    now = [0.0]
    later, first = (Outage(f"present {name}", lambda: now[0]) for name in ("B", "A"))
    assert present("present") == []
    first.failed("refused")
    now[0] = 5.0
    first.failed("reset")
    later.failed("closed")
    assert present("present") == [
        "present A has not answered for 5 s: reset",
        "present B has not answered for 0 s: closed",
    ]
    first.is_over()
    assert present("present") == ["present B has not answered for 0 s: closed"]


def test_an_outage_that_nothing_asks_about_any_longer_is_forgotten():
    now = [0.0]
    kept, dropped = (Outage(f"forgotten {name}", lambda: now[0]) for name in ("A", "B"))
    for outage in (kept, dropped):
        outage.failed("refused")
    del dropped, outage
    gc.collect()
    assert present("forgotten") == ["forgotten A has not answered for 0 s: refused"]
    now[0] = 1000.0
    assert present("forgotten") == []


def test_an_outage_is_reported_at_once_then_every_minute_and_at_its_end(caplog):
    clock = FakeClock()
    began = clock.now()
    outage, reported, attempts = Outage("the server", lambda: clock.now().timestamp()), [], 0

    def note_reports():
        seconds = round((clock.now() - began).total_seconds())
        reported.extend((seconds, record.getMessage()) for record in caplog.records)
        caplog.clear()

    while (clock.now() - began).total_seconds() < 200:
        pause = outage.failed("refused")
        attempts += 1
        note_reports()
        clock.advance(seconds=pause)
    outage.is_over()
    outage.is_over()
    note_reports()
    assert reported == [
        (0, "the server does not answer, and is tried again until it does: refused"),
        (63, "the server has not answered for 63 s: refused"),
        (123, "the server has not answered for 123 s: refused"),
        (183, "the server has not answered for 183 s: refused"),
        (203, "the server answers again, after 203 s"),
    ]
    assert attempts == 26
    assert outage.failed("closed") == 0.1


def test_of_the_outages_within_a_minute_those_that_last_are_reported(caplog):
    now = [0.0]
    outage = Outage("the server", lambda: now[0])

    def fails_at(*times, answers):
        caplog.clear()
        for now[0] in times:
            outage.failed("busy")
        now[0] = answers
        outage.is_over()
        return [message.removeprefix("the server ") for message in caplog.messages]

    refused = "does not answer, and is tried again until it does: busy"
    assert fails_at(0, answers=1) == [refused, "answers again, after 1 s"]
    assert fails_at(10, 12, answers=13) == []
    assert fails_at(20, 22, 24, 26, answers=30) == ["has not answered for 6 s: busy", "answers again, after 10 s"]
    assert fails_at(90, answers=91) == [refused, "answers again, after 1 s"]


def test_an_outage_may_end_on_another_thread_while_it_is_shown():
    ends: list[Outage] = []

    def now() -> float:
        while ends:
            ends.pop().is_over()
        return 1.0

    outage = Outage("the server", now)
    outage.failed("refused")
    ends.append(outage)
    assert outage.seconds == 0.0


def test_a_child_can_see_outages_if_a_thread_noted_one_at_the_fork():
    noting, released = threading.Event(), threading.Timer(0.1, lambda: None)

    def note():
        with outages._lock:
            noting.set()
            join(released)

    thread = threading.Thread(target=note)
    released.start()
    thread.start()
    assert noting.wait(within(60))
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        present_outages()
        os._exit(0)
    join(thread)
    await_end(child)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
