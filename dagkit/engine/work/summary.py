"""Traits: what the loop reads off a program before it begins, and again when the program becomes another one. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from dagkit.api.attributes import Attribute, DagContext
from dagkit.api.files import output_files
from dagkit.api.operators import DelayOperator, Operator
from dagkit.api.state import declared_state
from dagkit.engine.address import Address
from dagkit.engine.program.program import Program, Target
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.split import CutNear


@dataclass(frozen=True, slots=True)
class ProgramSummary:
    """What a program says of all its windows."""

    addresses: Mapping[Address, Target]
    """The far end of every wire, by the name that a checkpoint gives it."""
    slots: Mapping[Address, int]
    """How many slots read from each queue."""
    elements: Mapping[Address, Elements]
    """What waits in each queue: what work it is, and how it is written."""
    near: Mapping[Address, CutNear]
    """Where what waits may be cut so that several work on it at once."""
    timed_inputs: tuple[Address, ...]
    """Which of them tell how far event time has come."""
    counts: frozenset[int]
    """Of how many streaming windows the application windows are."""
    overlaps: bool
    """Whether no window depends on the one before, so that two may be in flight."""
    writes: bool
    """Whether anybody stages files."""
    drains: bool
    """Whether anybody wants to be told when nothing more comes for now."""
    millis: int
    """How long a streaming window is."""
    heartbeat: timedelta
    """How often statistics are told while nothing is to do."""

    @classmethod
    def of(cls, program: Program) -> "ProgramSummary":
        workers = [type(program.operators[name][0]) for name in program.stage_of]
        counts = frozenset(count for name, count in program.windows.items() if name in program.stage_of)
        keeps = any(declared_state(each) or issubclass(each, DelayOperator) for each in workers)
        elements = Elements.of(program)
        return cls(
            addresses={target.address: target for target in program.targets.values()},
            slots=program.queued_slots,
            elements=elements,
            near={into: each.cut_near for into, each in elements.items() if not in_one(program, into)},
            timed_inputs=tuple(into for into, each in sorted(elements.items()) if each.tells_time),
            counts=counts,
            overlaps=not keeps and counts <= {1} and not program.sliders,
            writes=any(output_files(type(operators[0])) for operators in program.operators.values()),
            drains=any(each.drained is not Operator.drained for each in workers),
            millis=_of_application(program, DagContext.STREAMING_WINDOW_SIZE_MILLIS),
            heartbeat=timedelta(milliseconds=_of_application(program, DagContext.HEARTBEAT_INTERVAL_MILLIS)),
        )


def in_one(program: Program, into: Address) -> bool:
    """Whether one slot at a time works on a block: it is written elsewhere, where nobody knows what came before what.

    Writers that share their slots with the reader know for each piece where it belongs.
    """
    reader = into.operator
    elsewhere = [
        name for name in program.after(reader) if program.stage_of[name].level != program.stage_of[reader].level
    ]
    declared = [each for name in elsewhere for each in output_files(type(program.operators[name][0])).values()]
    return any(each.of_blocks for each in declared)


def _of_application(program: Program, attribute: Attribute[int]) -> int:
    values = next(iter(program.attributes.values()), {})
    found: int = values.get(attribute.qualified, attribute.default)
    return found
