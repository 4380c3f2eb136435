"""A ledger written as a run would have written it: blocks are found, windows read some of them, counts are decided."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dagkit import Backlog, Block, Capacity
from dagkit.compiler import compile_application
from dagkit.engine.inputs.discoveries import Discovery, Emitted
from dagkit.engine.program.facts import Fact, Scaled
from dagkit.engine.program.lower import program_of
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.journal import Journal
from dagkit.engine.work.item import WindowPromise, WorkItem
from dagkit.ledger import Ledger, Span, Work
from dagkit.scaling import Follower, ScalingSettings
from dagkit.testing import FakeClock
from tests.engine.cast import lines_through_filter

MIB = 1 << 20


@dataclass
class Recording:
    """One file, found block by block and read from its beginning on; a reader that decides before each window."""

    place: Path
    settings: ScalingSettings = field(default_factory=ScalingSettings)
    capacity: Capacity = field(default_factory=lambda: Capacity(cores=4, most_cores=4))
    count: int = 1
    found: int = 0
    read: int = 0
    blocks: int = 0
    window: int = 0
    follower: Follower = field(default_factory=Follower)
    clock: FakeClock = field(default_factory=FakeClock)

    def __post_init__(self) -> None:
        program = program_of(compile_application(lines_through_filter(self.place)))
        ledger = Ledger.create(self.place / "app", clock=self.clock, durable=False)
        self.journal = Journal(ledger, program, "0" * 16, "0.1.0")

    def find(self, blocks: int, size: int = MIB) -> None:
        starts = [self.found + number * size for number in range(blocks)]
        self.add([Block(self.blocks + n, "a.txt", start, start + size) for n, start in enumerate(starts)])
        self.found += blocks * size
        self.blocks += blocks

    def add(self, blocks: Sequence[Block]) -> None:
        self.journal.add(Discovery("splitter", tuple(Emitted("blocks_metadata_output", each) for each in blocks)), {})

    def decide(self) -> Scaled:
        waiting = self.found - self.read
        backlog = Backlog(-(-waiting // MIB), waiting, -(-waiting // MIB))
        at = round(self.clock.now().timestamp() * 1000)
        looked = self.follower.look(self.settings, self.count, at, backlog, self.capacity)
        assert looked is not None, "there is no interval between looks"
        inputs, decision = looked
        fact = Scaled(
            operator="reader",
            at=self.clock.now(),
            before=self.count,
            after=decision.after,
            policy=self.settings.policy,
            rule=decision.rule,
            inputs=inputs.model_dump(mode="json"),
        )
        self.count = decision.after
        return fact

    def run(self, positions: int, seconds: float, facts: Sequence[Fact], *, queue: Sequence[WorkItem] = ()) -> None:
        """A window that reads so much in so much time."""
        at = self.journal.roots["splitter"].head.seq
        self.journal.promise({"splitter": at}, WindowPromise(deal={}, lasts_millis=0.0))
        self.clock.advance(seconds=seconds)
        self.window += 1
        source = "a.txt"
        consumed = (Span(source=source, start=self.read, end=self.read + positions),) if positions else ()
        self.read += positions
        pending = (Span(source=source, start=self.read, end=self.found),) if self.read < self.found else ()
        self.journal.commit(
            Checkpoint(
                window=self.window,
                work=Work(consumed=consumed, pending=pending),
                queue=tuple(queue),
                facts=tuple(facts),
            ),
            (),
        )
        self.capacity = replace(self.capacity, positions_per_second=positions / seconds / self.count)


def burst(place: Path, settings: ScalingSettings | None = None) -> Recording:
    """A hundred blocks, read by four in ten seconds, then nothing."""
    recording = Recording(place, settings or ScalingSettings())
    recording.find(100)
    recording.run(50 * MIB, 5, [recording.decide()])
    recording.run(50 * MIB, 5, [])
    recording.clock.advance(seconds=60)
    recording.decide()
    recording.clock.advance(seconds=20)
    recording.find(1)
    recording.run(MIB, 0.5, [recording.decide()])
    return recording
