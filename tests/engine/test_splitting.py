"""Cutting blocks before they are read: nothing is lost, all slots get alike, and nothing is cut without need."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Block
from dagkit.engine.splitting import LEAST, anywhere, dealt, load_of
from dagkit.engine.waiting import BlockQueue, places
from dagkit.engine.work import Waiting, length_of
from dagkit.ranges import OFFSET_INFINITY

MIB = 1 << 20


def waiting(number: int, start: int, end: int) -> Waiting:
    return Waiting.of_block("read.blocks", Block(number, "a", start, end), "a")


def of_lengths(*lengths: int) -> list[Waiting]:
    """One block of each length, side by side in one source."""
    blocks, start = [], 0
    for number, length in enumerate(lengths):
        blocks.append(waiting(number, start, start + length))
        start += length
    return blocks


def stretches(hands: list[list[Waiting]]) -> list[list[tuple[int, int, int]]]:
    """The blocks of each slot: number, start and end, in mebibytes."""
    return [[(w.number[0], w.start // MIB, w.end // MIB) for w in hand] for hand in hands]


@pytest.mark.parametrize(
    ("lengths", "slots", "expected"),
    [
        ([64, 64, 64, 64], 2, [[(0, 0, 64), (2, 128, 192)], [(1, 64, 128), (3, 192, 256)]]),
        ([100], 2, [[(0, 0, 50)], [(0, 50, 100)]]),
        ([64, 32], 2, [[(0, 0, 48)], [(0, 48, 64), (1, 64, 96)]]),
        ([90], 3, [[(0, 0, 30)], [(0, 30, 60)], [(0, 60, 90)]]),
        ([1], 2, [[(0, 0, 1)], []]),
    ],
    ids=[
        "whole blocks where they are even",
        "one block for two is halved",
        "only what goes over its share is cut",
        "one block for three is cut twice",
        "what is small stays whole",
    ],
)
def test_work_is_dealt_evenly(lengths: list[int], slots: int, expected: list[list[tuple[int, int, int]]]) -> None:
    assert stretches(dealt(of_lengths(*(length * MIB for length in lengths)), slots)) == expected


@given(st.lists(st.integers(0, 200 * MIB), max_size=12), st.integers(1, 9))
def test_every_position_is_dealt_once_and_no_more_is_cut_than_there_are_slots(lengths: list[int], slots: int) -> None:
    blocks = of_lengths(*lengths)
    hands = dealt(blocks, slots)
    pieces = sorted((w.number[0], w.start, w.end) for hand in hands for w in hand)
    glued: dict[int, list[int]] = {}
    for number, start, end in pieces:
        known = glued.setdefault(number, [start, start])
        assert known[1] == start
        known[1] = end
    assert glued == {w.number[0]: [w.start, w.end] for w in blocks}
    assert len(pieces) < len(blocks) + slots
    assert [w for hand in hands for w in hand if length_of(w) < LEAST and w not in blocks] == []


@given(st.lists(st.integers(32 * MIB, 200 * MIB), min_size=1, max_size=12), st.integers(1, 9))
def test_long_blocks_are_dealt_so_that_nobody_has_much_more_than_his_share(lengths: list[int], slots: int) -> None:
    hands = dealt(of_lengths(*lengths), slots)
    assert max(map(load_of, hands)) <= 1.05 * sum(lengths) / slots + 2 * LEAST


def test_what_may_not_be_cut_stays_whole() -> None:
    hands = dealt(of_lengths(100 * MIB), 2, lambda *_: None)
    assert stretches(hands) == [[(0, 0, 100)], []]


def test_a_cut_is_made_where_the_reader_allows_it() -> None:
    hands = dealt(of_lengths(100 * MIB), 2, lambda _, position: position - 7)
    assert [hand[0].end for hand in hands] == [50 * MIB - 7, 100 * MIB]


def test_what_has_no_end_is_never_cut() -> None:
    endless = waiting(0, 0, OFFSET_INFINITY)
    assert dealt([endless, *of_lengths(100 * MIB)[:0]], 2, anywhere) == [[endless], []]


def test_only_the_last_piece_ends_its_source() -> None:
    block = Waiting.of_block("read.blocks", Block(0, "a", 0, 100 * MIB, last=True), "a")
    assert [hand[0].as_block().last for hand in dealt([block], 2)] == [False, True]


def test_a_promised_cut_is_made_again() -> None:
    first, second = (BlockQueue.of(of_lengths(100 * MIB, 7 * MIB)) for _ in range(2))
    deal = first.take({"read.blocks": 2}, 1e9, {"read.blocks": anywhere})
    assert stretches([*map(list, deal["read.blocks"])]) == [[(0, 0, 53)], [(0, 53, 100), (1, 100, 107)]]
    assert second.take_these(places(deal), {"read.blocks": 2}) == deal
    assert len(second) == 0


def test_what_stands_around_a_promised_stretch_waits_still() -> None:
    queue = BlockQueue.of(of_lengths(100))
    (taken,) = queue.take_these({"read.blocks": [[[[0], 10, 30]]]}, {"read.blocks": 1})["read.blocks"][0]
    assert (taken.start, taken.end) == (10, 30)
    assert [(each.start, each.end) for each in queue.all()] == [(0, 10), (30, 100)]
