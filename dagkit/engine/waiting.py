"""The block queue: what was found and not yet read, and who gets what of it in the next window. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dagkit.engine.splitting import CutNear, Hands, dealt, nowhere
from dagkit.engine.work import Number, Waiting, has_end, length_of, place_of, stretch_of

Deal = Mapping[str, Sequence[Sequence[Waiting]]]
"""The blocks of one window: by the input that they go to, then by slot."""
NO_CUTS: Mapping[str, CutNear] = {}


@dataclass
class BlockQueue:
    """Blocks in the order in which they are to be read, by the input that they wait for."""

    waiting: dict[str, list[Waiting]] = field(default_factory=dict)

    @classmethod
    def of(cls, blocks: Iterable[Waiting]) -> "BlockQueue":
        queue = cls()
        queue.add(blocks)
        return queue

    def add(self, blocks: Iterable[Waiting]) -> None:
        """Blocks that were found, at the end."""
        for each in blocks:
            self.waiting.setdefault(each.into, []).append(each)

    def put_back(self, blocks: Iterable[Waiting]) -> None:
        """What a window left, at the front: it waits longest. What has no end goes behind all others of its input."""
        returned = list(blocks)
        for into in {each.into for each in returned}:
            mine = sorted((each for each in returned if each.into == into), key=place_of)
            ending = [each for each in mine if has_end(each)]
            endless = [each for each in mine if not has_end(each)]
            self.waiting[into] = [*ending, *self.waiting.get(into, []), *endless]

    def all(self) -> list[Waiting]:
        return [each for blocks in self.waiting.values() for each in blocks]

    def lengths(self) -> dict[str, tuple[int, int]]:
        """How many blocks wait, and how long they are together, by the input that they wait for."""
        return {into: (len(blocks), sum(map(length_of, blocks))) for into, blocks in self.waiting.items()}

    def __len__(self) -> int:
        return sum(len(blocks) for blocks in self.waiting.values())

    @property
    def positions(self) -> int:
        """How much there is to read; what has no end counts as one block's worth of nothing."""
        return sum(length_of(each) for each in self.all())

    def take(self, slots: Mapping[str, int], positions_each: float, cuts: Mapping[str, CutNear] = NO_CUTS) -> Deal:
        """Deal out as much as each slot can read in a window, and at least one block to whoever can have one.

        Where whole blocks cannot be dealt evenly, and `cuts` tells where they may be cut, some are cut.
        """
        return {
            into: dealt(self._first(into, count, positions_each * count), count, cuts.get(into, nowhere))
            for into, count in slots.items()
        }

    def take_these(self, deal: Mapping[str, Sequence[Sequence[Any]]], slots: Mapping[str, int]) -> Deal:
        """The very stretches, by number, start and end, that a window was promised; to the slots that there are now."""
        taken: dict[str, Hands] = {}
        for into, hands in deal.items():
            taken[into] = [[] for _ in range(slots[into])]
            for slot, hand in enumerate(hands):
                taken[into][slot % slots[into]] += [self._stretch(into, tuple(n), *place) for n, *place in hand]
        return taken

    def _stretch(self, into: str, number: Number, start: int, end: int) -> Waiting:
        """One stretch of what waits, be it of one part or of several; what stands before and after it waits still."""
        waiting = self.waiting.get(into, [])
        mine = [each for each in waiting if each.number == number]
        parts = [each for each in mine if each.start <= start and end <= each.end][:1]
        parts = parts or sorted((each for each in mine if each.start < end and start < each.end), key=place_of)
        reached = start
        for each in parts:
            assert each.start <= reached, f"[{reached}, {each.start}) of {number} was promised and does not wait"
            reached = each.end
        if not parts or reached < end:
            raise AssertionError(f"{number} [{start}, {end}) was promised and does not wait for {into}")
        first, last = parts[0], parts[-1]
        taken = stretch_of(first if len(parts) == 1 else first.model_copy(update={"size": None}), start, end)
        rest = [stretch_of(first, first.start, start), stretch_of(last, end, last.end)]
        at = waiting.index(first)
        kept = [each for each in waiting[at:] if each not in parts]
        self.waiting[into] = [*waiting[:at], *(part for part in rest if part.start < part.end), *kept]
        return taken

    def _first(self, into: str, slots: int, positions: float) -> list[Waiting]:
        """The first blocks that are about so long together, and at least one for each slot."""
        waiting = self.waiting.get(into, [])
        count = 0
        while count < len(waiting) and (count < slots or positions > 0):
            positions -= length_of(waiting[count])
            count += 1
        taken, self.waiting[into] = waiting[:count], waiting[count:]
        return taken


def places(deal: Deal) -> dict[str, list[list[list[Any]]]]:
    """A deal as a promise keeps it: each stretch by its number, its start and its end."""
    return {
        into: [[[list(each.number), each.start, each.end] for each in hand] for hand in hands]
        for into, hands in deal.items()
    }
