"""Delays between two windows: the items that they hold are stored as JSON and sent in the next window."""

from collections.abc import Iterable

from dagkit.api.operators import DelayOperator
from dagkit.engine.program.codec import JsonCodec
from dagkit.engine.program.entrances import made_by
from dagkit.engine.program.program import Program
from dagkit.engine.record.checkpoint import Held
from dagkit.engine.worker.outbox import Outbox, Sent
from dagkit.errors import RunFailure, Scene
from dagkit.schema.batch import Batch


def first_of_delays(program: Program) -> list[Sent]:
    """Return the items that delay operators send in the first window."""
    sent: list[Sent] = []
    for stage in program.stages:
        for name in stage.operators:
            for slot, operator in enumerate(program.operators[name]):
                if isinstance(operator, DelayOperator):
                    outbox = Outbox(slot)
                    first = list(operator.first_window())
                    for target in stage.targets.get((name, "output"), ()):
                        outbox.channel(target).batch(Batch.of(first))
                    sent += outbox.rest()
    return sent


def kept(program: Program, sent: Sent) -> Held:
    """Return the items that a delay holds, in the form of a checkpoint."""
    target = program.targets[sent.wire]
    written = JsonCodec(target.address, target.payload)
    return Held(into=target.address, slot=sent.slot, items=tuple(written.of(item) for item in sent.batch.items()))


def restored(program: Program, helds: Iterable[Held]) -> list[Sent]:
    """Return the items that the delays held at the end of the last window."""
    addresses = {target.address: target for target in program.targets.values()}
    sent = []
    for held in helds:
        target = addresses[held.into]
        written = JsonCodec(held.into, target.payload)
        batch = Batch.of([written.back(item) for item in held.items])
        if target.keys:  # the partitions may have changed: route each item by its key
            shares = made_by(target.into[0], target.shares(batch, held.slot, 0))
        elif held.slot < target.slots:
            shares = iter([(held.slot, batch)])
        else:
            raise RunFailure(
                f"a delay holds items for partition {held.slot + 1} of {held.into}, which now has {target.slots}, and "
                "the input has no key by which others could take them over",
                "give the input a key, or start with as many partitions as before",
                Scene(held.into.operator),
                code="items-stranded",
            )
        sent += [Sent(target.wire, slot, target.level, False, share) for slot, share in shares]
    return sent
