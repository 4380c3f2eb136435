"""The slots of one simulated window that hand work over, by the engine's board, on a clock that only counts."""

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

from dagkit.engine.work.handover import LEAST_HANDED_MILLIS, Asked, Handed, Handover, Standing
from dagkit.engine.work.item import WorkItem
from dagkit.engine.worker.board import Board, Move
from dagkit.engine.worker.protocol import Report, WorkDone
from dagkit.simulation import INTO

BEAT_MILLIS = 100.0
"""How often a slot reports its progress."""
HANDED_MILLIS = 2.0
"""The time that a handover takes."""


class Cost(Protocol):
    """The cost of positions."""

    def between(self, start: int, end: int) -> float: ...
    def reached(self, start: int, millis: float) -> int: ...


@dataclass
class SimulatedSlot:
    """A slot that processes positions; it knows its progress at any time."""

    slot: int
    now: float
    """Up to when its progress is computed."""
    ends: float
    """When its time is over."""
    waiting: deque[WorkItem]
    cost: Cost
    slower: float
    claim: int
    item: WorkItem | None = None
    at: int = 0
    """The next position that it claims."""
    busy_millis: float = 0.0
    positions: int = 0
    left: list[WorkItem] = field(default_factory=list)
    gave: list[Handover] = field(default_factory=list)
    took: list[str] = field(default_factory=list)

    def advance(self, until: float) -> None:
        """Work until a time, and until the end of the claim in which it lies."""
        while self.now < until and (self.item is not None or self.waiting):
            if self.item is None:
                if self.busy_millis and self.now >= self.ends:
                    break
                self.item = self.waiting.popleft()
                self.at = self.item.start
            self._work(self.item, min(until, self.ends))

    def idle_from(self) -> float:
        """When it has no more work."""
        rest = [] if self.item is None else [self.cost.between(self.at, self.item.end)]
        rest += [self.cost.between(item.start, item.end) for item in self.waiting]
        return self.now + sum(rest) * self.slower

    def standing(self) -> Standing:
        """Its progress, with the estimate that a slot makes: by the slower of its usual and its recent speed."""
        if self.item is None or self.at == self.item.start:
            return Standing()
        amount = self.item.end - self.at + sum(item.length for item in self.waiting)
        recent = self.cost.between(max(self.item.start, self.at - self.claim), self.at) * self.slower
        usual = self.busy_millis / max(1, self.positions + self.at - self.item.start)
        each = max(usual, recent / min(self.claim, self.at - self.item.start))
        return Standing(str(self.item.source), 0.5, 1.0, amount * each)

    def give(self, token: str) -> Handover | None:
        """Give half of the rest away, as a slot does."""
        left, item = self.standing().left_millis, self.item
        if left is None or left < LEAST_HANDED_MILLIS or item is None:
            return None
        if self.waiting:
            work = [self.waiting.pop() for _ in range((len(self.waiting) + 1) // 2)][::-1]
            self.gave.append(Handover(token, item.into, self.slot, tuple(work)))
            return self.gave[-1]
        middle = (self.at + item.end) // 2
        if not self.at < middle < item.end:
            return None
        self.item = item.part(item.start, middle)
        self.gave.append(Handover(token, item.into, self.slot, (item.part(middle, item.end),), item.start))
        return self.gave[-1]

    def end(self) -> Report:
        """Return what it did. The rest is left."""
        if self.item is not None:
            done = self.at - self.item.start
            millis = self.cost.between(self.item.start, self.at) * self.slower
            self.positions += done
            self.left.append(self.item.part(self.at, self.item.end).measured(done, millis, 0))
        self.left += self.waiting
        work_done = WorkDone(left=self.left, amount=self.positions, gave=self.gave, took=self.took, is_linked=True)
        return Report(0, self.slot, done={INTO: work_done}, busy_millis=self.busy_millis)

    def _work(self, item: WorkItem, until: float) -> None:
        reached = self.cost.reached(self.at, max(0.0, until - self.now) / self.slower)
        stop = min(item.end, self.at + ((reached - self.at) // self.claim + 1) * self.claim)
        takes = self.cost.between(self.at, stop) * self.slower
        self.now += takes
        self.busy_millis += takes
        self.at = stop
        if stop == item.end:
            self.positions += item.length
            self.item = None


def worked_together(slots: Sequence[SimulatedSlot]) -> list[Report]:
    """Let slots work on one input with a board, and return their reports."""
    board, number, events = Board(len(slots)), count(), list[tuple[float, int, int]]()
    for one in slots:
        board.begin(one.slot)
        heapq.heappush(events, (one.now, next(number), one.slot))

    def perform(moves: Sequence[Move], now: float) -> None:
        for slot, message in moves:
            one = slots[slot]
            match message:
                case Asked():
                    one.advance(now)
                    perform(board.answered(slot, one.give(f"{next(number)}")), now)
                case Handed(handover):
                    one.took.append(handover.token)
                    one.waiting.extend(handover.work)
                    one.now = max(one.now, now + HANDED_MILLIS)
                    heapq.heappush(events, (one.now, next(number), one.slot))

    while events:
        now, _, slot = heapq.heappop(events)
        one = slots[slot]
        one.advance(now)
        if now >= one.ends:
            continue
        if one.item is None and not one.waiting:
            perform(board.idle(slot), max(now, one.now))
        else:
            perform(board.progressed(slot, one.standing()), now)
            heapq.heappush(
                events, (max(one.now, min(now + BEAT_MILLIS, one.idle_from(), one.ends)), next(number), slot)
            )
    return [one.end() for one in slots]
