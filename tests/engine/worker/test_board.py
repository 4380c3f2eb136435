"""The board decides which busy slot gives work to which idle slot."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from dagkit import Block
from dagkit.engine.program.address import Address
from dagkit.engine.work.handover import (
    LEAST_HANDED_MILLIS,
    Asked,
    Dismissed,
    Given,
    Handed,
    Handover,
    Hello,
    Progressed,
    Standing,
    line_of,
    message_in,
)
from dagkit.engine.worker.board import Board
from tests.engine.items import item_of

HANDOVER = Handover("a", Address("reader.blocks"), 0, ())


def board(slots: int = 3, *, others_wait: bool = False, **left_millis: float) -> Board:
    """A board whose slots have all begun; slots with work left are given as `slot_0=1000`."""
    found = Board(slots, 0, lambda: others_wait)
    for slot in range(slots):
        found.begin(slot)
    for name, millis in left_millis.items():
        found.progressed(int(name.removeprefix("slot_")), Standing("a", 0.5, 100.0, millis))
    return found


def test_an_idle_slot_gets_work_of_the_slot_with_most_left():
    found = board(slot_0=1000, slot_1=3000)
    assert found.idle(2) == [(1, Asked())]
    assert found.answered(1, HANDOVER) == [(2, Handed(HANDOVER))]


def test_two_idle_slots_ask_two_busy_ones():
    found = board(4, slot_0=1000, slot_1=3000)
    assert [*found.idle(2), *found.idle(3)] == [(1, Asked()), (0, Asked())]


def test_a_slot_with_little_left_is_not_asked_before_it_reports_more():
    found = board(2, slot_0=LEAST_HANDED_MILLIS - 1)
    assert found.idle(1) == []
    assert found.progressed(0, Standing("a", 0.5, 100.0, LEAST_HANDED_MILLIS)) == [(0, Asked())]


def test_a_slot_that_gave_nothing_is_asked_again_after_its_next_report():
    found = board(2, slot_0=1000)
    assert found.idle(1) == [(0, Asked())]
    assert found.answered(0, None) == []
    assert found.progressed(0, Standing("a", 0.6, 200.0, 900.0)) == [(0, Asked())]


def test_work_whose_taker_has_ended_goes_to_the_next_idle_slot():
    found = board(slot_0=1000, slot_1=10)
    assert found.idle(2) == [(0, Asked())]
    assert found.end(2) == []
    assert found.answered(0, HANDOVER) == []
    assert found.idle(1) == [(1, Handed(HANDOVER))]


def test_idle_slots_end_when_no_slot_is_busy():
    found = board(2)
    assert found.idle(0) == []
    assert found.idle(1) == [(0, Dismissed()), (1, Dismissed())]


def test_an_idle_slot_ends_when_the_only_busy_one_is_cut_off():
    found = board(2, slot_0=1000)
    assert found.idle(1) == [(0, Asked())]
    assert found.end(0) == [(1, Dismissed())]


def test_an_idle_slot_ends_while_a_slot_of_its_window_waits_for_a_core():
    found = Board(2)
    found.begin(0)
    assert found.idle(0) == [(0, Dismissed())]


@pytest.mark.parametrize("begins", [False, True])
def test_an_idle_slot_waits_some_time_for_a_slot_that_has_a_core(begins):
    found = Board(2, patience=2)
    found.begin(0)
    assert found.idle(0) == []
    if begins:
        found.begin(1)
        assert found.progressed(1, Standing("a", 0.5, 100.0, 1000.0)) == [(1, Asked())]
    else:
        assert [found.progressed(0, Standing()) for _ in range(2)] == [[], [(0, Dismissed())]]


def test_an_idle_slot_takes_work_first_while_another_window_waits_for_a_core():
    found = board(2, others_wait=True, slot_0=1000)
    assert found.idle(1) == [(0, Asked())]
    assert found.answered(0, None) == [(1, Dismissed())]


def test_a_second_attempt_at_a_task_gets_no_place():
    found = board(2, slot_0=1000)
    found.end(0)
    assert not found.begin(0)


NAME = "in/a\udcff.txt"
"""The name of a file that is not valid UTF-8."""
WORK = replace(item_of("reader.blocks", Block(0, NAME, 0, 9)), reached=datetime(2026, 1, 1, tzinfo=UTC), size=0.5)


@pytest.mark.parametrize(
    "message",
    [
        Hello("a", "b", Address("reader.blocks"), 1),
        Progressed(Standing(NAME, 0.5, 100.0, None)),
        Given(None),
        Handed(replace(HANDOVER, work=(WORK,), cut_from=3)),
    ],
)
def test_a_message_arrives_as_it_was_sent(message):
    line = line_of(message)
    assert line.count(b"\n") == 1
    assert message_in(line) == message


def test_a_message_that_is_nested_too_deeply_is_none():
    with pytest.raises(ValueError, match="nested too deeply"):
        message_in(b"[" * 99999)
