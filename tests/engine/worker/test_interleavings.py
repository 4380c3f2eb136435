"""Handovers in every order of events: all work is done once, whatever is cut, killed or run again."""

import secrets
from collections import deque
from dataclasses import dataclass, field, replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagkit import Block
from dagkit.engine.program.failures import WindowLost
from dagkit.engine.record.work_records import settle_handovers, unreported
from dagkit.engine.work.cost import CostEstimate
from dagkit.engine.work.handover import (
    Asked,
    Dismissed,
    Given,
    Handed,
    Handover,
    Idle,
    Progressed,
    Standing,
    line_of,
    message_in,
)
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.record import Recorder
from dagkit.engine.work.schedule import WindowSchedule
from dagkit.engine.work.split import all_in
from dagkit.engine.worker.board import Board, Move
from dagkit.engine.worker.protocol import Answer, Report, WorkDone
from tests.engine.items import item_of
from tests.examples import examples

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
        """One event at one slot."""
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
    """The positions that are done, and those that are left."""
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
