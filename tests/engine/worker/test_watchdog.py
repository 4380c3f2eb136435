"""A worker whose operator never returns is ended, and one that waits for others is not."""

import faulthandler
from collections.abc import Iterator
from pathlib import Path

import pytest

from dagkit import InputPort, Operator
from dagkit.backends.reference.child import run_in_child
from dagkit.engine.program.failures import WorkerDied
from dagkit.engine.worker.outbox import Arrived
from dagkit.engine.worker.protocol import Answer
from dagkit.engine.worker.slot import SlotRun
from tests.engine.cast import Desk, Script, chain, one_slot
from tests.engine.poison_cast import TIMEOUT, Poisoned
from tests.patience import within

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
    """Is not waiting while it processes an item."""

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
