"""The properties of a program that the loop needs, each computed once. Pure."""

from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from typing import TypeVar

from dagkit.api.attributes import Attribute, DagContext, OnPoison
from dagkit.api.external import external_outputs
from dagkit.api.files import output_files
from dagkit.api.operators import REJECTED, DelayOperator, Operator
from dagkit.api.state import declared_state
from dagkit.engine.program.address import Address
from dagkit.engine.program.program import Port, Program, Target
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.split import CutNear

T = TypeVar("T")


class ProgramSummary:
    """The properties of a program that hold for all its windows."""

    def __init__(self, program: Program) -> None:
        self._program = program

    @cached_property
    def addresses(self) -> Mapping[Address, Target]:
        """The target of every wire, by its name in a checkpoint."""
        targets = self._program.targets
        return {target.address: target for target in targets.values()}

    @cached_property
    def slots(self) -> Mapping[Address, int]:
        """The number of slots that read from each queue."""
        return self._program.queued_slots

    @cached_property
    def elements(self) -> Mapping[Address, Elements]:
        """The work and the JSON form of the elements in each queue."""
        return Elements.of(self._program)

    @cached_property
    def near(self) -> Mapping[Address, CutNear]:
        """Where pending work may be cut so that several slots can share it."""
        return {into: one.cut_near for into, one in self.elements.items() if not in_one(self._program, into)}

    @cached_property
    def counts(self) -> frozenset[int]:
        """The lengths of all application windows, in streaming windows."""
        program = self._program
        return frozenset(count for name, count in program.windows.items() if name in program.stage_of)

    @cached_property
    def overlaps(self) -> bool:
        """Whether no window depends on the previous one, so that two may be in flight."""
        keeps = any(declared_state(worker) or issubclass(worker, DelayOperator) for worker in self._workers)
        return not keeps and self.counts <= {1} and not self._program.sliders

    @cached_property
    def writes(self) -> bool:
        """Whether any operator stages files, or entries for an external system."""
        by_name = self._program.operators
        classes = (type(operators[0]) for operators in by_name.values())
        return any(output_files(one) or external_outputs(one) for one in classes)

    @cached_property
    def delivers(self) -> bool:
        """Whether any operator stages entries for an external system, which the driver delivers after the commit."""
        return any(map(external_outputs, self._workers))

    @cached_property
    def drains(self) -> bool:
        """Whether any operator overrides `drained`."""
        return any(worker.drained is not Operator.drained for worker in self._workers)

    @cached_property
    def millis(self) -> int:
        """The length of a streaming window."""
        return of_application(self._program, DagContext.STREAMING_WINDOW_SIZE_MILLIS)

    @cached_property
    def sets_aside(self) -> bool:
        """Whether a record that ends its worker is set aside; otherwise the application stops."""
        return of_application(self._program, DagContext.ON_POISON) is OnPoison.SET_ASIDE

    @cached_property
    def timeout_millis(self) -> int | None:
        """After how long without progress a worker is ended."""
        return of_application(self._program, DagContext.RECORD_TIMEOUT_MILLIS)

    @cached_property
    def finds(self) -> bool:
        """Whether an operator on the workers finds work for another one."""
        return any(
            target.queued for stage in self._program.stages for ends in stage.targets.values() for target in ends
        )

    @cached_property
    def hands_over(self) -> bool:
        """Whether slots may hand work over while a window runs."""
        return of_application(self._program, DagContext.HAND_OVER_WORK)

    @cached_property
    def rejecting(self) -> tuple[Port, ...]:
        """The outputs for rejected records that lead somewhere."""
        connected = {port for stage in self._program.stages for port in (*stage.links, *stage.targets)}
        return tuple(sorted(port for port in connected if port[1] == REJECTED))

    @cached_property
    def heartbeat(self) -> timedelta:
        """How often listeners get statistics while the loop is idle."""
        return timedelta(milliseconds=of_application(self._program, DagContext.HEARTBEAT_INTERVAL_MILLIS))

    @property
    def _workers(self) -> list[type[Operator]]:
        """The classes of the operators on the workers."""
        return [type(self._program.operators[name][0]) for name in self._program.stage_of]


def in_one(program: Program, into: Address) -> bool:
    """Whether only one slot at a time may work on a block, as writers in other slots cannot know the order of pieces.

    Writers that share their slots with the reader know the place of each piece in its file.
    """
    # Behind an exchange, pieces would be ordered by window and slot: all lines of the block, in another order.
    # Rejected: batches that carry their position in the block, since each small block would then need a batch of its
    # own. The cost is a slow block that keeps one slot busy while others are idle; `OutputFiles(..., of_blocks=False)`
    # avoids it.
    reader = into.operator
    elsewhere = [
        name for name in program.after(reader) if program.stage_of[name].level != program.stage_of[reader].level
    ]
    declared = [item for name in elsewhere for item in output_files(type(program.operators[name][0])).values()]
    return any(item.of_blocks for item in declared)


def of_application(program: Program, attribute: Attribute[T]) -> T:
    """The value of an attribute of the application."""
    context = next(iter(program.contexts.values()), None)
    found: T = attribute.default if context is None else context.value(attribute)
    return found
