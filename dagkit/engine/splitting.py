"""Splitting: where work is cut so that all slots of a window end together. Pure.

A block is cut before it is read only where whole blocks cannot be dealt evenly: each cut makes a file of several
pieces. What a slot does not read in time is cut off by its tracker, and is dealt anew in the next window.
"""

from collections.abc import Callable, Sequence

from dagkit.engine.work import Waiting, has_end, length_of, place_of, stretch_of

LEAST = 1 << 20
"""Positions of a piece at least: less is not worth a cut."""
EVEN_ENOUGH = 1.05
"""How much more than its share a slot may be dealt before anything is cut."""

CutNear = Callable[[Waiting, int], int | None]
"""Where a block may be cut near a position; none: nowhere."""
Hands = list[list[Waiting]]


def nowhere(_: Waiting, position: int) -> int | None:  # noqa: ARG001 - as whoever cuts is asked
    """Some work is all or nothing."""
    return None


def anywhere(_: Waiting, position: int) -> int | None:
    """Lines and numbers may be cut at any position."""
    return position


def dealt(blocks: Sequence[Waiting], slots: int, cut_near: CutNear = anywhere, least: int = LEAST) -> Hands:
    """The blocks by slot. Whole ones where that is even enough; else some are cut, less than one for each slot."""
    hands = whole_blocks(blocks, slots)
    share = sum(map(length_of, blocks)) / slots
    if share < least or max(map(load_of, hands)) <= EVEN_ENOUGH * share:
        return hands
    cut = wrapped(blocks, slots, cut_near, least)
    return cut if max(map(load_of, cut)) < max(map(load_of, hands)) else hands


def whole_blocks(blocks: Sequence[Waiting], slots: int) -> Hands:
    """The longest block goes to whoever has least so far."""
    hands: Hands = [[] for _ in range(slots)]
    loads = [0] * slots
    for each in sorted(blocks, key=lambda w: (-length_of(w), place_of(w))):
        slot = loads.index(min(loads))
        hands[slot].append(each)
        loads[slot] += max(1, length_of(each))
    return [sorted(hand, key=place_of) for hand in hands]


def wrapped(blocks: Sequence[Waiting], slots: int, cut_near: CutNear, least: int) -> Hands:
    """One slot is filled after the other, and a block that goes over its share is cut there."""
    hands: Hands = [[] for _ in range(slots)]
    left = sorted(blocks, key=place_of, reverse=True)
    whole = sum(map(length_of, blocks))
    given, slot = 0, 0
    while left:
        each = left.pop()
        room = whole * (slot + 1) // slots - given
        length = length_of(each)
        if slot < slots - 1 and room < length:
            pieces = cut(each, each.start + room, cut_near, least)
            if pieces is not None:
                each, rest = pieces
                left.append(rest)
            elif room < length // 2 and hands[slot]:
                left.append(each)
                slot += 1
                continue
        hands[slot].append(each)
        given += length_of(each)
        while slot < slots - 1 and given >= whole * (slot + 1) // slots:
            slot += 1
    return hands


def cut(each: Waiting, position: int, cut_near: CutNear, least: int) -> tuple[Waiting, Waiting] | None:
    """A block as two, cut near a position; none where no piece would be worth it."""
    if position - each.start < least or each.end - position < least or not has_end(each):
        return None
    place = cut_near(each, position)
    if place is None or not each.start < place < each.end:
        return None
    return stretch_of(each, each.start, place), stretch_of(each, place, each.end)


def load_of(hand: Sequence[Waiting]) -> int:
    """How many positions a slot is dealt."""
    return sum(map(length_of, hand))
