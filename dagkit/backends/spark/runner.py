"""Running windows: each is one Spark job. Level 0 begins at the driver's work, each further level after an exchange."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dagkit.api.operators import DelayOperator, InputOperator
from dagkit.api.ports import output_ports
from dagkit.backends.spark.rows import SPARK_SCHEMA, rows_in
from dagkit.backends.spark.shipping import shipped
from dagkit.backends.spark.task import LevelTask
from dagkit.compiler import Compilation
from dagkit.engine.live import SavedState, bind_output, live
from dagkit.engine.program import Target, program_of
from dagkit.engine.slot import Items, Outbox, Report, Sent, SlotState


class SparkRunner:
    """A compiled application on a Spark session. `window()` runs one streaming window."""

    def __init__(self, compilation: Compilation, spark: SparkSession) -> None:
        self.spark = spark
        self.program = program_of(compilation)
        self.shipped = shipped(self.program)
        self.window_id = 0
        self.state: dict[tuple[int, int], SlotState] = {}
        """What each slot keeps between windows, by level and slot."""
        self.pending: list[Sent] = []
        """What goes into the next window: found by the driver, or held back by delays."""
        self.inputs = {name: self._input(name) for name in self.program.sources}
        self._begin_delays()

    def window(self) -> None:
        """Run the next streaming window."""
        self.window_id += 1
        for operator, outbox in self.inputs.values():
            operator.begin_window(self.window_id)
            operator.emit_tuples()
            operator.end_window()
            self.pending += outbox.rest()
        pending, self.pending = self.pending, []
        for row in rows_in(self._frame(pending).toArrow()):
            told = row.told
            if isinstance(told, Report):
                self.state[told.level, told.slot] = told.state
            else:
                self.pending.append(told)

    def state_of(self, operator: str) -> list[SavedState]:
        """The state of every partition of an operator, as JSON."""
        level = next(stage.level for stage in self.program.stages if operator in stage.operators)
        slots = range(len(self.program.operators[operator]))
        return [self.state.get((level, slot), {}).get(operator, {}) for slot in slots]

    def close(self) -> None:
        """Tear down what runs on the driver."""
        for operator, _ in self.inputs.values():
            operator.teardown()

    def _frame(self, pending: list[Sent]) -> DataFrame:
        """The job of one window."""
        slots = self.program.slots_at(0)
        frame = self.spark.range(0, slots, 1, slots).mapInArrow(self._task(0, pending), SPARK_SCHEMA)
        for level in range(1, self.program.levels):
            exchanged = frame.repartitionById(self.program.slots_at(level), "slot")
            frame = exchanged.mapInArrow(self._task(level, pending), SPARK_SCHEMA)
        return frame

    def _task(self, level: int, pending: list[Sent]) -> Any:
        arriving: dict[int, tuple[tuple[int, Items], ...]] = {}
        for sent in pending:
            if sent.level == level:
                arriving[sent.slot] = (*arriving.get(sent.slot, ()), (sent.wire, sent.items))
        state: Mapping[int, SlotState] = {slot: kept for (at, slot), kept in self.state.items() if at == level}
        task = LevelTask(self.shipped, level, self.window_id, arriving, state)

        def run(batches: Any) -> Any:
            return task(batches)

        return run

    def _input(self, name: str) -> tuple[InputOperator, Outbox]:
        """A live input operator, whose outputs fall into an outbox."""
        operator = live(self.program.operators[name][0], {})
        assert isinstance(operator, InputOperator), "only input operators run on the driver"
        outbox = Outbox(0)
        for port in output_ports(type(operator)):
            targets = self.program.sources[name].get(port, ())
            bind_output(operator, port, [outbox.slit(target) for target in targets])
        operator.setup(None)
        return operator, outbox

    def _begin_delays(self) -> None:
        """What delays hand on in the first window, when nothing has come round yet."""
        for stage in self.program.stages:
            for name in stage.operators:
                for slot, operator in enumerate(self.program.operators[name]):
                    if isinstance(operator, DelayOperator):
                        self.pending += _first(operator, slot, stage.targets.get((name, "output"), ()))


def _first(delay: DelayOperator[Any], slot: int, targets: tuple[Target, ...]) -> list[Sent]:
    outbox = Outbox(slot)
    for target in targets:
        drop = outbox.slit(target)
        for item in delay.first_window():
            drop(item)
    return list(outbox.rest())
