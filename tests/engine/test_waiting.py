"""The block queue deals so that all slots are busy, and nothing is lost or dealt twice."""

from collections.abc import Sequence
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.api.work import Block
from dagkit.engine.waiting import BlockQueue, places
from dagkit.engine.work import Waiting, length_of
from dagkit.ranges import OFFSET_INFINITY

INTO = "reader.blocks"


def block(number: int, length: int, *, start: int = 0, into: str = INTO, path: str = "a") -> Waiting:
    end = OFFSET_INFINITY if length < 0 else start + length
    return Waiting.of_block(into, Block(number, path, start, end), path)


def queue_of(*lengths: int) -> BlockQueue:
    return BlockQueue.of(block(number, length) for number, length in enumerate(lengths))


def hands(deal: object) -> list[list[int]]:
    """Which blocks each slot got."""
    return [[each.number[0] for each in hand] for hand in deal[INTO]]  # type: ignore[index]


@pytest.mark.parametrize(
    ("lengths", "slots", "each", "dealt", "left"),
    [
        pytest.param([9], 3, 100, [[0], [], []], 0, id="one block goes to one slot"),
        pytest.param([1, 1, 1, 1], 2, 100, [[0, 2], [1, 3]], 0, id="equal blocks go round"),
        pytest.param([1, 1, 1, 3], 2, 100, [[3], [0, 1, 2]], 0, id="the longest goes first, to whoever has least"),
        pytest.param([5, 5, 5, 5], 2, 5, [[0], [1]], 2, id="no more than a window can read"),
        pytest.param([50, 50, 50], 2, 1, [[0], [1]], 1, id="every slot gets a block, however long"),
        pytest.param([-1, -1], 2, 1, [[0], [1]], 0, id="sources without an end lie in different hands"),
        pytest.param([0, 0, 0], 2, 1, [[0, 2], [1]], 0, id="empty blocks are dealt like others"),
        pytest.param([], 2, 9, [[], []], 0, id="nothing is dealt of nothing"),
    ],
)
def test_a_deal(lengths: Sequence[int], slots: int, each: float, dealt: list[list[int]], left: int) -> None:
    queue = queue_of(*lengths)
    assert hands(queue.take({INTO: slots}, each)) == dealt
    assert len(queue) == left


lengths = st.lists(st.integers(-1, 40), max_size=30)


@given(lengths, st.integers(1, 5), st.floats(0, 50))
def test_what_is_dealt_and_what_waits_are_all_there_was(lengths: list[int], slots: int, each: float) -> None:
    queue = queue_of(*lengths)
    dealt = hands(queue.take({INTO: slots}, each))
    waits = [waiting.number[0] for waiting in queue.all()]
    assert sorted([number for hand in dealt for number in hand] + waits) == list(range(len(lengths)))
    assert waits == sorted(waits)


@given(lengths, st.integers(1, 5), st.floats(0, 50))
def test_no_slot_is_idle_while_another_has_two_blocks(lengths: list[int], slots: int, each: float) -> None:
    dealt = hands(queue_of(*lengths).take({INTO: slots}, each))
    assert all(dealt) or max(map(len, dealt)) <= 1


@given(lengths, st.integers(1, 5))
def test_no_slot_has_more_than_the_others_by_more_than_its_last_block(lengths: list[int], slots: int) -> None:
    dealt = queue_of(*lengths).take({INTO: slots}, 1e9)[INTO]
    loads = [sum(max(1, length_of(each)) for each in hand) for hand in dealt]
    longest = max([1, *(length_of(each) for hand in dealt for each in hand)])
    assert max(loads) - min(loads) <= longest


@given(lengths, st.integers(1, 5), st.floats(0, 50))
def test_a_promised_deal_is_dealt_again(lengths: list[int], slots: int, each: float) -> None:
    first, second = queue_of(*lengths), queue_of(*lengths)
    deal = first.take({INTO: slots}, each)
    assert second.take_these(places(deal), {INTO: slots}) == deal
    assert second.all() == first.all()


@given(lengths, st.integers(1, 5), st.integers(1, 5))
def test_a_promised_deal_is_dealt_whole_to_fewer_or_more_slots(lengths: list[int], before: int, now: int) -> None:
    first, second = queue_of(*lengths), queue_of(*lengths)
    deal = first.take({INTO: before}, 10)
    again = second.take_these(places(deal), {INTO: now})
    assert len(again[INTO]) == now
    assert sorted(chain.from_iterable(hands(again))) == sorted(chain.from_iterable(hands(deal)))
    assert second.all() == first.all()


def test_blocks_of_one_number_and_two_files_are_told_apart() -> None:
    blocks = [block(0, 5, path="a"), block(0, 5, path="b")]
    first, second = BlockQueue.of(blocks), BlockQueue.of(blocks)
    deal = first.take({INTO: 1}, 1)
    assert [each.source for each in second.take_these(places(deal), {INTO: 1})[INTO][0]] == ["a"]
    assert [each.source for each in second.all()] == ["b"]


def test_what_a_window_left_comes_before_what_was_never_begun() -> None:
    queue = queue_of(4, 4, 4)
    taken = queue.take({INTO: 1}, 5)
    assert hands(taken) == [[0, 1]]
    queue.put_back([block(1, 2, start=2), block(0, 1, start=3)])
    assert [(each.number[0], each.start) for each in queue.all()] == [(0, 3), (1, 2), (2, 0)]


def test_each_input_has_a_queue_of_its_own() -> None:
    queue = BlockQueue.of([block(0, 5), block(1, 5, into="other.blocks")])
    deal = queue.take({INTO: 1, "other.blocks": 2}, 1)
    assert [[len(hand) for hand in deal[into]] for into in (INTO, "other.blocks")] == [[1], [1, 0]]


def test_sources_without_an_end_take_turns() -> None:
    queue = queue_of(-1, -1, 5)
    (first,) = queue.take({INTO: 1}, 0)[INTO]
    queue.put_back(each.model_copy(update={"turn": 1}) for each in first)
    assert [each.number[0] for each in queue.all()] == [1, 2, 0]
