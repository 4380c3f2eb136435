"""The properties of a program that the loop needs, computed at its start and again after each change. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
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


@dataclass(frozen=True, slots=True)
class ProgramSummary:
    """The properties of a program that hold for all its windows."""

    addresses: Mapping[Address, Target]
    """The target of every wire, by its name in a checkpoint."""
    slots: Mapping[Address, int]
    """The number of slots that read from each queue."""
    elements: Mapping[Address, Elements]
    """The work and the JSON form of the elements in each queue."""
    near: Mapping[Address, CutNear]
    """Where pending work may be cut so that several slots can share it."""
    counts: frozenset[int]
    """The lengths of all application windows, in streaming windows."""
    overlaps: bool
    """Whether no window depends on the previous one, so that two may be in flight."""
    writes: bool
    """Whether any operator stages files, or entries for an external system."""
    delivers: bool
    """Whether any operator stages entries for an external system, which the driver delivers after the commit."""
    drains: bool
    """Whether any operator overrides `drained`."""
    millis: int
    """The length of a streaming window."""
    sets_aside: bool
    """Whether a record that ends its worker is set aside; otherwise the application stops."""
    timeout_millis: int | None
    """After how long without progress a worker is ended."""
    finds: bool
    """Whether an operator on the workers finds work for another one."""
    hands_over: bool
    """Whether slots may hand work over while a window runs."""
    rejecting: tuple[Port, ...]
    """The outputs for rejected records that lead somewhere."""
    heartbeat: timedelta
    """How often listeners get statistics while the loop is idle."""

    @classmethod
    def of(cls, program: Program) -> "ProgramSummary":
        workers = [type(program.operators[name][0]) for name in program.stage_of]
        counts = frozenset(count for name, count in program.windows.items() if name in program.stage_of)
        keeps = any(declared_state(item) or issubclass(item, DelayOperator) for item in workers)
        elements = Elements.of(program)
        return cls(
            addresses={target.address: target for target in program.targets.values()},
            slots=program.queued_slots,
            elements=elements,
            near={into: item.cut_near for into, item in elements.items() if not in_one(program, into)},
            counts=counts,
            overlaps=not keeps and counts <= {1} and not program.sliders,
            writes=any(_stages(type(operators[0])) for operators in program.operators.values()),
            delivers=any(external_outputs(item) for item in workers),
            drains=any(item.drained is not Operator.drained for item in workers),
            millis=of_application(program, DagContext.STREAMING_WINDOW_SIZE_MILLIS),
            sets_aside=of_application(program, DagContext.ON_POISON) is OnPoison.SET_ASIDE,
            timeout_millis=of_application(program, DagContext.RECORD_TIMEOUT_MILLIS),
            finds=any(
                target.queued for stage in program.stages for targets in stage.targets.values() for target in targets
            ),
            hands_over=of_application(program, DagContext.HAND_OVER_WORK),
            rejecting=tuple(sorted(port for port in _led(program) if port[1] == REJECTED)),
            heartbeat=timedelta(milliseconds=of_application(program, DagContext.HEARTBEAT_INTERVAL_MILLIS)),
        )


def _led(program: Program) -> set[Port]:
    """The outputs that lead somewhere."""
    return {port for stage in program.stages for port in (*stage.links, *stage.targets)}


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


def _stages(operator: type) -> bool:
    return bool(output_files(operator) or external_outputs(operator))


def of_application(program: Program, attribute: Attribute[T]) -> T:
    """The value of an attribute of the application."""
    values = next(iter(program.attributes.values()), {})
    found: T = values.get(attribute.qualified, attribute.default)
    return found
