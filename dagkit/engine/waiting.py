"""The block queue: what was found and not yet read, and who gets what of it in the next window. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dagkit.engine.memory import Waiting
from dagkit.ranges import OFFSET_INFINITY

Deal = Mapping[str, Sequence[Sequence[Waiting]]]
"""The blocks of one window: by the input that they go to, then by slot."""


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
        """What a window left, at the front: it waits longest."""
        returned = list(blocks)
        for into in {each.into for each in returned}:
            mine = [each for each in returned if each.into == into]
            self.waiting[into] = sorted(mine, key=place_of) + self.waiting.get(into, [])

    def all(self) -> list[Waiting]:
        return [each for blocks in self.waiting.values() for each in blocks]

    def __len__(self) -> int:
        return sum(len(blocks) for blocks in self.waiting.values())

    @property
    def positions(self) -> int:
        """How much there is to read; what has no end counts as one block's worth of nothing."""
        return sum(length_of(each) for each in self.all())

    def take(self, slots: Mapping[str, int], positions_each: float) -> Deal:
        """Deal out as much as each slot can read in a window, evenly, and at least one block to whoever can have one.

        The longest block goes to whoever has least so far, so that all slots end at about the same time.
        """
        dealt: dict[str, list[list[Waiting]]] = {}
        for into, count in slots.items():
            taken = self._first(into, count, positions_each * count)
            hands: list[list[Waiting]] = [[] for _ in range(count)]
            loads = [0] * count
            for each in sorted(taken, key=lambda w: (-length_of(w), place_of(w))):
                slot = loads.index(min(loads))
                hands[slot].append(each)
                loads[slot] += max(1, length_of(each))
            dealt[into] = [sorted(hand, key=place_of) for hand in hands]
        return dealt

    def take_these(self, deal: Mapping[str, Sequence[Sequence[Sequence[int]]]], slots: Mapping[str, int]) -> Deal:
        """The very blocks, by id and start, that a window was promised; to the slots that there are now."""
        dealt: dict[str, list[list[Waiting]]] = {}
        for into, hands in deal.items():
            by_place: dict[tuple[int, ...], list[Waiting]] = {}
            for each in reversed(self.waiting.get(into, [])):
                by_place.setdefault(place_of(each), []).append(each)
            dealt[into] = [[] for _ in range(slots[into])]
            for slot, hand in enumerate(hands):
                for place in map(tuple, hand):
                    assert by_place.get(place), f"block {place} was promised and does not wait for {into}"
                    dealt[into][slot % slots[into]].append(by_place[place].pop())
            gone = {id(each) for hand in dealt[into] for each in hand}
            self.waiting[into] = [each for each in self.waiting.get(into, []) if id(each) not in gone]
        return dealt

    def _first(self, into: str, slots: int, positions: float) -> list[Waiting]:
        """The first blocks that are about so long together, and at least one for each slot."""
        waiting = self.waiting.get(into, [])
        count = 0
        while count < len(waiting) and (count < slots or positions > 0):
            positions -= length_of(waiting[count])
            count += 1
        taken, self.waiting[into] = waiting[:count], waiting[count:]
        return taken


def length_of(each: Waiting) -> int:
    """How many positions a block has; one without an end has none that can be counted."""
    return 0 if each.block.end >= OFFSET_INFINITY else each.block.end - each.block.start


def place_of(each: Waiting) -> tuple[int, int]:
    return each.block.block_id, each.block.start


def places(deal: Deal) -> dict[str, list[list[list[int]]]]:
    """A deal as a promise keeps it: the blocks by id and start."""
    return {into: [[list(place_of(each)) for each in hand] for hand in hands] for into, hands in deal.items()}
