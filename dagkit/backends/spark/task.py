"""The task: what one slot of one level does inside a Spark job."""

import gc
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext

from dagkit.backends.spark.rows import Row, rows_in
from dagkit.backends.spark.shipping import Shipped
from dagkit.engine.slot import Items, SlotRun, SlotState

_settled = False


@dataclass(frozen=True, slots=True)
class LevelTask:
    """All tasks of one level in one window: each finds its slot when it runs."""

    shipped: Shipped
    level: int
    window_id: int
    arriving: Mapping[int, tuple[tuple[int, Items], ...]]
    """What the driver hands to each slot: work that it found, and what delays held back."""
    state: Mapping[int, SlotState]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _settle()
        program = self.shipped.unpacked()
        slot = _own_slot()
        following = program.slots_at(min(self.level + 1, program.levels - 1))
        run = SlotRun(program, self.level, slot, self.window_id, self.state.get(slot, {}))
        passing: list[Row] = []
        for sent in run.run(self._arriving(slot, batches, passing)):
            yield Row.of(sent).batch(following)
            yield from (row.batch(following) for row in _drained(passing))
        yield from (row.batch(following) for row in _drained(passing))
        yield Row.of(run.report()).batch(following)

    def _arriving(
        self, slot: int, batches: Iterable[pa.RecordBatch], passing: list[Row]
    ) -> Iterator[tuple[int, Items]]:
        """What is for this level; what is for a later one, or for the driver, passes on."""
        yield from self.arriving.get(slot, ())
        for batch in batches:
            if self.level > 0:
                for row in rows_in(batch):
                    if row.level == self.level:
                        yield row.items
                    else:
                        passing.append(row)


def _own_slot() -> int:
    context = TaskContext.get()
    assert context is not None, "a level's task runs inside a Spark task"
    return context.partitionId()


def _settle() -> None:
    """Once for each worker: what is imported stays, so the collection after each task need not look at it again."""
    global _settled  # noqa: PLW0603 - it is the worker process that is settled
    if not _settled:
        gc.collect()
        gc.freeze()
        _settled = True


def _drained(rows: list[Row]) -> list[Row]:
    drained = rows[:]
    rows.clear()
    return drained
