"""Delays between two windows: what they hold back is kept as JSON, and goes out in the next one."""

from collections.abc import Iterable

from dagkit.api.operators import DelayOperator
from dagkit.engine.inputs import address
from dagkit.engine.memory import Held
from dagkit.engine.outbox import Outbox, Sent
from dagkit.engine.program import Program
from dagkit.engine.written import Written
from dagkit.schema.batch import Batch


def first_of_delays(program: Program) -> list[Sent]:
    """What delays hand on in the first window, when nothing has come round yet."""
    sent: list[Sent] = []
    for stage in program.stages:
        for name in stage.operators:
            for slot, operator in enumerate(program.operators[name]):
                if isinstance(operator, DelayOperator):
                    outbox = Outbox(slot)
                    first = list(operator.first_window())
                    for target in stage.targets.get((name, "output"), ()):
                        outbox.slit(target).batch(Batch.of(first))
                    sent += outbox.rest()
    return sent


def kept(program: Program, sent: Sent) -> Held:
    """What a delay holds back, as a checkpoint keeps it."""
    target = program.targets[sent.wire]
    written = Written(address(target), target.payload)
    return Held(into=address(target), slot=sent.slot, items=tuple(written.of(item) for item in sent.batch.items()))


def restored(program: Program, helds: Iterable[Held]) -> list[Sent]:
    """What the delays of the last window held back."""
    addresses = {address(target): target for target in program.targets.values()}
    sent = []
    for held in helds:
        target = addresses[held.into]
        written = Written(held.into, target.payload)
        items = [written.back(item) for item in held.items]
        sent.append(Sent(target.wire, held.slot, target.level, False, Batch.of(items)))
    return sent
