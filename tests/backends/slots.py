"""A backend without Spark that fuses as Spark does: level by level, slot by slot, in one thread."""

import pickle
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from dagkit.compiler import Compilation
from dagkit.engine.files.publish import put_in_place
from dagkit.engine.files.staging import Part
from dagkit.engine.program.lower import program_of
from dagkit.engine.work.handover import SlotStanding
from dagkit.engine.worker.board_server import BoardServer
from dagkit.engine.worker.outbox import Arrived, Sent
from dagkit.engine.worker.protocol import Answer, Cores, Report, WindowTask
from dagkit.engine.worker.slot import SlotRun

NO_LIMIT = 1000
"""More cores than there are slots."""


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
        program, reports, delayed = self.program.placing(assignment.attempt.locates), [], []
        for level in range(program.levels):
            slots = [
                SlotRun(program, level, slot, window, states.get((level, slot), {}), work=work.get((level, slot), ()))
                for slot in range(program.slots_at(level))
            ]
            for left, report in self.run_level(slots, arriving):
                reports.append(report)
                for sent in left:
                    if sent.delayed:
                        delayed.append(sent)
                    else:
                        arriving.setdefault((sent.level, sent.slot), []).append(sent)
        return Answer(tuple(reports), tuple(delayed))

    def run_level(
        self, slots: list[SlotRun], arriving: Mapping[tuple[int, int], list[Sent]]
    ) -> Iterable[tuple[list[Sent], Report]]:
        """Run the slots of a level. Return what each of them sent, and its report."""
        return [_run(slot, arriving) for slot in slots]

    def running(self) -> list[SlotStanding]:
        return []

    def put_in_place(self, files: Mapping[str, Iterable[Part]], application_path: str, *, durable: bool) -> None:
        put_in_place(files, application_path, durable=durable)

    def close(self) -> None:
        """Nothing runs between two windows."""


class SlotsAtOnce(InSlots):
    """Runs the slots of a level at the same time, in threads, with a board."""

    def __init__(self, compilation: Compilation, board: BoardServer) -> None:
        super().__init__(compilation)
        self.board = board

    def run(self, assignment: WindowTask) -> Answer:
        slots = {into: self.program.queued_slots[into] for into in assignment.attempt.movable}
        with self.board.window(assignment.window_id, slots, frozenset(slots), NO_LIMIT) as place:
            return super().run(assignment.trying(board=place))

    def running(self) -> list[SlotStanding]:
        return self.board.running()

    def run_level(
        self, slots: list[SlotRun], arriving: Mapping[tuple[int, int], list[Sent]]
    ) -> Iterable[tuple[list[Sent], Report]]:
        with ThreadPoolExecutor(len(slots)) as threads:
            return list(threads.map(lambda slot: _run(slot, arriving), slots))


def _run(slot: SlotRun, arriving: Mapping[tuple[int, int], list[Sent]]) -> tuple[list[Sent], Report]:
    left = list(
        slot.run(Arrived(sent.wire, sent.batch, sent.element) for sent in arriving.get((slot.level, slot.slot), ()))
    )
    return left, slot.report()
