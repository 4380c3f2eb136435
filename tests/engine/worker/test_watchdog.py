"""A worker whose operator never returns is ended, and one that waits for others is not."""

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
    with pytest.raises(WorkerDied, match="Timeout"):
        run(tmp_path)


SLOTS: list[SlotRun] = []


def makes_progress() -> bool:
    """Whether the watchdog finds progress between two looks between which nothing happens."""
    return SLOTS[-1]._progress() != SLOTS[-1]._progress()


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
