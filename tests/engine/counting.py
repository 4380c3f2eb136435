"""Many numbers, and a count without an end, by a driver in a process of its own, to be killed."""

from multiprocessing.connection import Connection
from multiprocessing.synchronize import Semaphore
from pathlib import Path
from typing import Any

import numpy as np

from apps.count.app import Count, Counted, UpTo
from dagkit import Batch, Dag, InputPort, Operator, OperatorContext, PortContext, State, StatelessPartitioner
from dagkit.api.running import Until
from dagkit.backends.spark import SparkBackend, local_session
from dagkit.compiler import compile_application
from dagkit.engine.record.run_events import Committed, Observer, RunEvent
from dagkit.engine.run.loop import Loop
from dagkit_operators import Items
from tests.engine.cast import Desk, Draw, Hurried
from tests.engine.driver import publisher

MANY, ENDLESS = "many", "endless"

Stretches = list[tuple[int, int]]
"""Numbers that were counted: stretches in order, none of which touches another."""


class Tally(Operator):
    """Knows of every number whether it was counted, and refuses one that is counted again."""

    numbers = InputPort(Counted)
    counted = State[dict[str, Stretches]](dict)

    def process(self, item: Counted) -> None:
        self.process_batch(Batch.of([item]))

    def process_batch(self, batch: Batch[Counted]) -> None:
        for name, of_name in batch.grouped("name"):
            numbers = np.asarray(of_name.column("number").values(), np.int64)
            assert (np.diff(numbers) == 1).all(), "what is claimed at once stands together"
            stretches = [*self.counted.get(name, []), (int(numbers[0]), int(numbers[-1]) + 1)]
            self.counted = {**self.counted, name: joined(stretches)}


def joined(stretches: Stretches) -> Stretches:
    """The same numbers in as few stretches as there can be; none of them twice."""
    whole: Stretches = []
    for start, stop in sorted(stretches):
        if whole and start <= whole[-1][1]:
            assert start == whole[-1][1], f"{start} was counted twice"
            whole[-1] = whole[-1][0], stop
        else:
            whole.append((start, stop))
    return whole


def counted(state: Any, name: str) -> Stretches:
    """What all partitions together counted of a name. Fails if two of them counted the same number."""
    return joined([stretch for each in state.get("tally", ()) for stretch in each.get("counted", {}).get(name, [])])


def how_many(state: Any, name: str) -> int:
    """How many numbers of a name were counted."""
    return sum(stop - start for start, stop in counted(state, name))


def counting(many: int, at_once: int) -> Draw:
    """Two count so many numbers, and others without end, and keep account of them."""

    def draw(dag: Dag, conf: object) -> None:
        pairs = dag.add_operator("pairs", Items[UpTo](items=((MANY, many), (ENDLESS, None))))
        count = dag.add_operator("count", Count(at_once=at_once))
        tally = dag.add_operator("tally", Tally())
        dag.set_operator_attribute(count, OperatorContext.PARTITIONER, StatelessPartitioner(2))
        dag.set_input_port_attribute(tally.numbers, PortContext.PARTITION_PARALLEL, True)
        dag.add_stream("pairs", pairs.output, count.pairs)
        dag.add_stream("numbers", count.numbers, tally.numbers)

    return draw


A_FEW = counting(20_000, at_once=500)
TWENTY_MILLION = counting(20_000_000, at_once=1 << 16)


def count(desk: Desk, many: int, observer: Observer) -> None:
    """Run until both have come as far as the one with an end goes."""
    loops: list[Loop] = []

    def stop_after_many(happening: RunEvent) -> None:
        if isinstance(happening, Committed):
            state = loops[0].state
            if all(how_many(state, name) >= many for name in (MANY, ENDLESS)):
                loops[0].stop()

    loops.append(desk.loop(observers=[observer, stop_after_many]))
    loops[0].run()


def run(home: Path, told: Connection, leave: Semaphore) -> None:
    """A few on the reference, where a window is over as soon as each slot has claimed once."""
    desk = Desk(home, A_FEW, until=Until.STOPPED, backend=Hurried)
    count(desk, 20_000, publisher(told, leave))


def on_spark(home: Path, lasts_millis: float) -> None:
    """Twenty million on Spark, in windows of a length."""
    backend = SparkBackend(compile_application(TWENTY_MILLION), local_session(2))
    desk = Desk(home, TWENTY_MILLION, until=Until.STOPPED, backend=lambda _: Hurried(backend, lasts_millis))
    count(desk, 20_000_000, lambda happening: print(happening, flush=True))  # noqa: T201
