"""A worker whose operator never returns is ended, and one that waits for others is not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dagkit import Dag, InputPort, Operator
from dagkit.backends.reference.child import run_in_child
from dagkit.compiler import compile_application
from dagkit.engine.failures import WorkerDied
from dagkit.engine.program.lower import program_of
from dagkit.engine.worker.outbox import Arrived
from dagkit.engine.worker.protocol import Answer, WindowTask
from dagkit.engine.worker.slot import SlotRun
from dagkit.schema.batch import Batch
from tests.engine.cast import Desk, Script
from tests.engine.poison_cast import TIMEOUT, Poisoned


def endless(dag: Dag, conf: object) -> None:
    numbers = dag.add_operator("numbers", Script(looks=((1,),)))
    numbers >> dag.add_operator("poisoned", Poisoned(poison=(1,), way="endless"))


def in_a_slot(home: Path) -> None:
    program = program_of(compile_application(endless))
    (wire,) = program.targets

    def run() -> Answer:
        slot = SlotRun(program, 0, 0, WindowTask(1, timeout_millis=50), {})
        list(slot.run([Arrived(wire, Batch.of([1]))]))
        return Answer((slot.report(),), ())

    run_in_child(run, 1)


def on_the_reference(home: Path) -> None:
    Desk(home, endless, conf={TIMEOUT: 50}).run()


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

    kind = "cast.watched/1"
    input = InputPort(int)

    def process(self, item: int) -> None:
        assert not makes_progress()


def test_a_slot_that_waits_for_its_input_or_for_the_reader_of_its_output_is_not_ended():
    def draw(dag: Dag, conf: object) -> None:
        dag.add_operator("numbers", Script(looks=((1,),))) >> dag.add_operator("watched", Watched())

    def arriving(wire: int) -> Iterator[Arrived | None]:
        for each in [Arrived(wire, Batch.of([1])), None]:
            assert makes_progress()
            yield each
        assert makes_progress()

    program = program_of(compile_application(draw))
    (wire,) = program.targets
    SLOTS.append(SlotRun(program, 0, 0, WindowTask(1), {}))
    for _ in SLOTS[-1].run(arriving(wire)):
        assert makes_progress()
    assert not makes_progress()
