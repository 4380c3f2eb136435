"""A backend without Spark that fuses as Spark does: level by level, slot by slot, in one thread."""

import pickle
from collections.abc import Iterable, Mapping
from dataclasses import replace

from dagkit.compiler import Compilation
from dagkit.engine.files.publish import put_in_place
from dagkit.engine.files.staging import Part
from dagkit.engine.program.lower import program_of
from dagkit.engine.worker.outbox import Sent
from dagkit.engine.worker.protocol import Answer, Cores, WindowTask
from dagkit.engine.worker.slot import SlotRun


class InSlots:
    """What a worker does, without the journey there and back."""

    def __init__(self, compilation: Compilation) -> None:
        self.load(compilation)

    def load(self, compilation: Compilation) -> None:
        self.program = program_of(compilation)

    def cores(self) -> Cores:
        return Cores()

    def run(self, assignment: WindowTask) -> Answer:
        arriving: dict[tuple[int, int], list[Sent]] = {}
        for sent in assignment.arriving:
            arriving.setdefault((sent.level, sent.slot), []).append(sent)
        window = replace(assignment, arriving=(), work={}, state={})  # as it travels to the workers of Spark
        states, work = pickle.loads(pickle.dumps((assignment.state, assignment.work)))  # noqa: S301 - as above
        reports, delayed = [], []
        for level in range(self.program.levels):
            for slot in range(self.program.slots_at(level)):
                run = SlotRun(
                    self.program,
                    level,
                    slot,
                    window,
                    states.get((level, slot), {}),
                    work=work.get((level, slot), ()),
                )
                for sent in run.run((sent.wire, sent.batch) for sent in arriving.get((level, slot), ())):
                    if sent.delayed:
                        delayed.append(sent)
                    else:
                        arriving.setdefault((sent.level, sent.slot), []).append(sent)
                reports.append(run.report())
        return Answer(tuple(reports), tuple(delayed))

    def put_in_place(self, files: Mapping[str, Iterable[Part]], application_path: str, *, durable: bool) -> None:
        put_in_place(files, application_path, durable=durable)

    def close(self) -> None:
        """Nothing runs between two windows."""
