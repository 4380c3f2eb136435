"""The deadline of a window: what was claimed is never split off, and a watchdog splits when the time is over."""

import faulthandler
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dagkit import InputPort, Operator
from dagkit.backends.reference.child import run_in_child
from dagkit.engine.program.failures import WorkerDied
from dagkit.engine.worker.deadline import AGAIN_SECONDS, LONGEST_AGAIN_SECONDS, Deadline
from dagkit.engine.worker.outbox import Arrived
from dagkit.engine.worker.protocol import Answer
from dagkit.engine.worker.slot import SlotRun
from dagkit.ranges import OffsetRange, OffsetRestrictionTracker
from tests.engine.cast import Desk, Script, chain, one_slot
from tests.engine.poison_cast import TIMEOUT, Poisoned
from tests.patience import within


def test_what_was_not_begun_is_not_split():
    deadline, tracker = Deadline(None), OffsetRestrictionTracker(OffsetRange(3, 9))
    deadline.watch(tracker)
    deadline.split()
    assert tracker.current_restriction() == OffsetRange(3, 9)
    tracker.try_claim(3)
    deadline.split()
    deadline.split()
    assert tracker.current_restriction() == OffsetRange(3, 4)
    assert deadline.residual() == OffsetRange(4, 9)


def test_what_is_not_watched_any_more_is_not_split():
    deadline, tracker = Deadline(None), OffsetRestrictionTracker(OffsetRange(3, 9))
    deadline.watch(tracker)
    tracker.try_claim(3)
    assert deadline.residual() is None
    deadline.split()
    assert tracker.current_restriction() == OffsetRange(3, 9)


def test_the_watchdog_splits_what_begins_after_the_deadline():
    deadline, tracker = Deadline(0.0), OffsetRestrictionTracker(OffsetRange(0, 2**40))
    deadline.watch(tracker)
    position = 0
    while tracker.try_claim(position):
        position += 1
    deadline.end()
    assert deadline.residual() == OffsetRange(position, 2**40)


class Never(OffsetRestrictionTracker):
    """Gives nothing away, and notes how long the watchdog paused before each question."""

    def __init__(self, restriction: OffsetRange, deadline: Deadline) -> None:
        super().__init__(restriction)
        self.deadline = deadline
        self.pauses: list[float] = []
        self.asked_often = threading.Event()

    def try_split(self, fraction_of_remainder: float) -> None:
        self.pauses.append(self.deadline._again)
        if len(self.pauses) == 8:
            self.asked_often.set()


def test_what_gives_nothing_away_is_asked_less_and_less_and_what_comes_after_it_at_once():
    deadline = Deadline(0.0)
    never, next_one = Never(OffsetRange(0, 9), deadline), Never(OffsetRange(0, 9), deadline)
    never.try_claim(0)
    next_one.try_claim(0)
    deadline.watch(never)
    assert never.asked_often.wait(within(30))
    assert never.pauses[:8] == [min(AGAIN_SECONDS * 2**n, LONGEST_AGAIN_SECONDS) for n in range(8)]
    deadline.watch(next_one)
    assert next_one.asked_often.wait(within(30))
    assert next_one.pauses[0] == AGAIN_SECONDS
    deadline.end()


def test_the_watchdog_ends_with_its_window():
    deadline = Deadline(1e9)
    deadline.watch(OffsetRestrictionTracker(OffsetRange(0, 9)))
    assert deadline._watchdog is not None
    deadline.end()
    deadline._watchdog.join(within(60))
    assert not deadline._watchdog.is_alive()


ENDLESS = chain(numbers=Script(looks=((1,),)), poisoned=Poisoned(poison=(1,), way="endless"))


def in_a_slot(home: Path) -> None:
    def run() -> Answer:
        slot, arriving = one_slot(ENDLESS, timeout_millis=50)
        list(slot.run([arriving]))
        return Answer((slot.report(),), ())

    run_in_child(run, 1)


def on_the_reference(home: Path) -> None:
    Desk(home, ENDLESS, conf={TIMEOUT: 50}).run()


@pytest.mark.slow
@pytest.mark.parametrize("run", [in_a_slot, on_the_reference])
def test_a_worker_whose_operator_never_returns_is_ended(run, tmp_path):
    with pytest.raises(WorkerDied, match=r"ended since it made no progress in time: (.|\n)* in die"):
        run(tmp_path)


@pytest.mark.slow
def test_it_is_ended_where_the_driver_has_set_a_timer_of_faulthandler_too(tmp_path):
    faulthandler.dump_traceback_later(within(600))
    try:
        with pytest.raises(WorkerDied, match="no progress in time"):
            on_the_reference(tmp_path)
    finally:
        faulthandler.cancel_dump_traceback_later()


SLOTS: list[SlotRun] = []


def makes_progress() -> bool:
    """Whether the watchdog finds progress between two looks between which nothing happens."""
    return SLOTS[-1]._activity.progress() != SLOTS[-1]._activity.progress()


class Watched(Operator):
    input = InputPort(int)

    def process(self, item: int) -> None:
        assert not makes_progress()


def test_a_slot_that_waits_for_its_input_or_for_the_reader_of_its_output_is_not_ended():
    def arriving(first: Arrived) -> Iterator[Arrived | None]:
        for each in [first, None]:
            assert makes_progress()
            yield each
        assert makes_progress()

    slot, first = one_slot(chain(numbers=Script(looks=((1,),)), watched=Watched()))
    SLOTS.append(slot)
    for _ in slot.run(arriving(first)):
        assert makes_progress()
    assert not makes_progress()
