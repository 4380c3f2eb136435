"""Handovers in every order of events: all work is done once, whatever is cut, killed or run again."""

import secrets
from collections import deque
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagkit import Block
from dagkit.engine.program.address import Address
from dagkit.engine.program.failures import WindowLost
from dagkit.engine.record.work_records import settle_handovers, unreported
from dagkit.engine.work.cost import CostEstimate
from dagkit.engine.work.handover import (
    LEAST_HANDED_MILLIS,
    Asked,
    Dismissed,
    Given,
    Handed,
    Handover,
    Hello,
    Idle,
    Progressed,
    Standing,
    line_of,
    message_in,
)
from dagkit.engine.work.item import ItemTimes, WorkItem
from dagkit.engine.work.record import Recorder
from dagkit.engine.work.schedule import WindowSchedule
from dagkit.engine.work.split import all_in
from dagkit.engine.worker.board import Board, Move
from dagkit.engine.worker.protocol import Answer, Report, WorkDone
from tests.engine.items import item_of
from tests.examples import examples

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
WORK = replace(
    item_of("reader.blocks", Block(0, NAME, 0, 9)), times=ItemTimes(reached=datetime(2026, 1, 1, tzinfo=UTC)), size=0.5
)


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


INTO = "reader.blocks_metadata_input"
LENGTH = 9
EVENTS = 150
CUT, KILL = 9, 10
"""Rare events: a connection is cut, and a task is killed and runs again."""
RARELY = 0.02
SEEDS = st.integers(0, 2**32)
"""Hypothesis does not draw each event itself: most of its draws are alike, and hand nothing over."""


@dataclass
class Attempt:
    """One attempt at the task of a slot: it claims position after position, and gives half of the rest away."""

    slot: int
    waiting: list[WorkItem]
    gave: list[Handover] = field(default_factory=list)
    took: list[str] = field(default_factory=list)
    recorder: Recorder = field(default_factory=Recorder)
    item: WorkItem | None = None
    at: int = 0
    is_idle: bool = False
    has_ended: bool = False
    inbox: deque[bytes] = field(default_factory=deque)
    outbox: deque[bytes] = field(default_factory=deque)
    is_linked: bool = True

    def step(self) -> None:
        """Claim a position, or begin or end an item; without work, wait at the board, or end without one."""
        if self.has_ended or (self.is_idle and self.is_linked):
            return
        if self.item is None and self.waiting:
            self.item = self.waiting.pop(0)
            self.at = self.item.start
        elif self.item is None:
            self.has_ended, self.is_idle = not self.is_linked, self.is_linked
            self._send(Idle())
        elif self.at < self.item.end:
            self.at += 1
        else:
            self.recorder.do(self.item, self.item.end)
            self.item = None
        self._send(Progressed(Standing("a", 0.5, 1.0, 1000.0)))

    def receive(self) -> None:
        """Take the next message of the driver."""
        match message_in(self.inbox.popleft()):
            case Asked():
                self._send(Given(self._give()))
            case Handed(handover) if self.is_idle and not self.has_ended:
                self.took.append(handover.token)
                self.waiting += handover.work
                self.is_idle = False
            case Dismissed():
                self.has_ended = self.has_ended or self.is_idle

    def cut(self) -> None:
        """Lose the connection, and all messages under way."""
        self.is_linked = False
        self.inbox.clear()
        self.outbox.clear()

    def report(self) -> Report:
        assert self.has_ended
        return Report(
            0, self.slot, done={INTO: WorkDone(record=self.recorder.record(), gave=self.gave, took=self.took)}
        )

    def _give(self) -> Handover | None:
        half = len(self.waiting) // 2
        if self.waiting:
            self.waiting, work, cut_from = self.waiting[:half], tuple(self.waiting[half:]), None
        elif self.item is not None and self.item.end - self.at > 1:
            middle = (self.at + self.item.end) // 2
            work, cut_from = (self.item.part(middle, self.item.end),), self.item.start
            self.item = self.item.part(self.item.start, middle)
        else:
            return None
        self.gave.append(Handover(secrets.token_hex(4), INTO, self.slot, work, cut_from))
        return self.gave[-1]

    def _send(self, message: Idle | Progressed | Given) -> None:
        if self.is_linked:
            self.outbox.append(line_of(message))


class Window:
    """A window with a board, in which the test chooses what happens next."""

    def __init__(self, slots: int, blocks: int) -> None:
        work = [item_of(INTO, Block(n, "a", n * LENGTH, (n + 1) * LENGTH)) for n in range(blocks)]
        self.allocation = {INTO: [work[slot::slots] for slot in range(slots)]}
        self.board = Board(slots)
        self.attempts = [self._attempt(slot) for slot in range(slots)]
        self.has_lost = False
        """Whether an attempt was lost that had given work away."""

    def act(self, kind: int, slot: int) -> None:
        one = self.attempts[slot]
        if kind <= 3:
            one.step()
        elif kind <= 6:
            if one.outbox:
                self._take(one)
        elif kind <= 8:
            if one.inbox:
                one.receive()
        elif kind == CUT:
            self._cut(one)
        else:
            self.has_lost = self.has_lost or bool(one.gave)
            self._cut(one)
            self.attempts[slot] = replace(self._attempt(slot), is_linked=False)

    def drain(self) -> None:
        """Let everything happen that still can."""
        for _ in range(10_000):
            busy = [each for each in self.attempts if not each.has_ended]
            if not busy:
                return
            for one in busy:
                one.step()
                while one.outbox:
                    self._take(one)
                while one.inbox:
                    one.receive()
        raise AssertionError("a slot waits for ever")

    def answer(self) -> Answer:
        return Answer(tuple(one.report() for one in self.attempts))

    def _attempt(self, slot: int) -> Attempt:
        return Attempt(slot, list(self.allocation[INTO][slot]), is_linked=self.board.begin(slot))

    def _take(self, one: Attempt) -> None:
        match message_in(one.outbox.popleft()):
            case Progressed(standing):
                self._send(self.board.progressed(one.slot, standing))
            case Idle():
                self._send(self.board.idle(one.slot))
            case Given(handover):
                self._send(self.board.answered(one.slot, handover))

    def _cut(self, one: Attempt) -> None:
        if one.is_linked:
            one.cut()
            self._send(self.board.end(one.slot))

    def _send(self, moves: list[Move]) -> None:
        for slot, message in moves:
            one = self.attempts[slot]
            if one.is_linked:
                one.inbox.append(line_of(message))


def played(slots: int, blocks: int, seed: int, rare: int | None = None) -> Window:
    """A window in which events happen in any order, and seldom a rare one."""
    window, chance = Window(slots, blocks), Random(seed)  # noqa: S311 - it chooses events
    for _ in range(EVENTS):
        kind = rare if rare is not None and chance.random() < RARELY else chance.randrange(CUT)
        window.act(kind, chance.randrange(slots))
    window.drain()
    return window


def schedule_of(window: Window) -> WindowSchedule:
    return WindowSchedule(window.allocation, 1.0, CostEstimate())


def done_or_left(answer: Answer) -> list[int]:
    done = [(one.start, one.end) for report in answer.reports for one in report.done[INTO].record.done]
    left = [(item.start, item.end) for item in answer.left]
    return sorted(position for start, end in [*done, *left] for position in range(start, end))


DRAWN = given(st.integers(1, 4), st.integers(0, 6), SEEDS)


@DRAWN
@settings(max_examples=examples(200), deadline=None)
def test_without_a_cut_the_window_does_all_its_work(slots, blocks, seed):
    window = played(slots, blocks, seed)
    _, answer = settle_handovers(1, schedule_of(window), window.answer())
    assert answer.left == []
    assert unreported(all_in(window.allocation), answer.reports) == ""


@DRAWN
@settings(max_examples=examples(300), deadline=None)
def test_what_is_cut_off_is_done_or_left_once(slots, blocks, seed):
    window = played(slots, blocks, seed, CUT)
    after, answer = settle_handovers(1, schedule_of(window), window.answer())
    assert done_or_left(answer) == list(range(blocks * LENGTH))
    assert unreported(all_in(after.allocation), answer.reports) == ""


@DRAWN
@settings(max_examples=examples(300), deadline=None)
def test_a_task_that_runs_again_loses_the_window_or_nothing(slots, blocks, seed):
    window = played(slots, blocks, seed, KILL)
    try:
        _, answer = settle_handovers(1, schedule_of(window), window.answer())
    except WindowLost:
        assert window.has_lost, "the window is lost only if a lost attempt had given work away"
    else:
        assert done_or_left(answer) == list(range(blocks * LENGTH))


def test_work_that_a_repeated_task_did_besides_its_taker_loses_the_window():
    window = Window(2, 1)
    giver, taker = window.attempts
    for _ in range(3):
        giver.step()
    taker.step()
    while giver.outbox or taker.outbox or giver.inbox or taker.inbox:
        for slot in (0, 1):
            window.act(4, slot)
            window.act(7, slot)
    assert taker.took, "the taker has work of the giver"
    window.act(10, 0)
    window.drain()
    with pytest.raises(WindowLost, match="ran again after it had handed work over"):
        settle_handovers(1, schedule_of(window), window.answer())
