"""The decisions of the board for one input in one window: which busy slot gives work to which idle slot. Pure.

An idle slot waits until a busy one gives it half of its work, or until the driver dismisses it. It is not kept while
other slots wait for its core.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from dagkit.engine.work.handover import LEAST_HANDED_MILLIS, Asked, Dismissed, Handed, Handover, Standing, ToSlot

Move = tuple[int, ToSlot]
"""A slot, and what the driver sends to it."""


@dataclass
class Board:
    """The slots that work on one input in one window. Each method returns what the driver sends then."""

    slots: int
    """How many slots work on the input."""
    patience: int = 0
    """How many reports of idle slots the board waits for slots that have not begun; 0 if they wait for a core."""
    others_wait: Callable[[], bool] = lambda: False
    """Whether slots of other windows wait for a core."""
    begun: set[int] = field(default_factory=set)
    busy: dict[int, Standing] = field(default_factory=dict)
    """The last progress of each busy slot."""
    done: dict[int, int] = field(default_factory=dict)
    """How many positions each slot has processed, as it last reported."""
    _idle: list[int] = field(default_factory=list)
    """The slots that wait for work, the longest waiting first."""
    _waited: int = 0
    """How many reports of idle slots came while a slot had not begun."""
    _asked: set[int] = field(default_factory=set)
    """The busy slots that were asked and have not answered."""
    _refused: set[int] = field(default_factory=set)
    """The busy slots that gave nothing, until they report progress again."""
    _offered: deque[Handover] = field(default_factory=deque)
    """Given work that no slot has taken."""

    def begin(self, slot: int) -> bool:
        """Add a slot. Return False if it was added before: a second attempt at its task gets no place."""
        if slot in self.begun:
            return False
        self.begun.add(slot)
        self.busy[slot] = Standing()
        return True

    def progressed(self, slot: int, standing: Standing) -> list[Move]:
        """Note the progress of a slot."""
        self.done[slot] = standing.done
        if slot in self.busy:
            self.busy[slot] = standing
            self._refused.discard(slot)
        elif len(self.begun) < self.slots:
            self._waited += 1
        return self._moves()

    def answered(self, slot: int, given: Handover | None) -> list[Move]:
        """Note the answer of a slot that was asked."""
        self._asked.discard(slot)
        if given is None:
            self._refused.add(slot)
        else:
            self._offered.append(given)
        return self._moves()

    def idle(self, slot: int) -> list[Move]:
        """Note that a slot has no more work, and waits."""
        if self.busy.pop(slot, None) is not None:
            self._idle.append(slot)
        return self._moves()

    def end(self, slot: int) -> list[Move]:
        """Note that a slot has ended, or that its connection was cut."""
        self.busy.pop(slot, None)
        self._asked.discard(slot)
        if slot in self._idle:
            self._idle.remove(slot)
        return self._moves()

    def _moves(self) -> list[Move]:
        return list(self._decided())

    def _decided(self) -> Iterator[Move]:
        while self._idle and self._offered:
            slot = self._idle.pop(0)
            self.busy[slot] = Standing()
            yield slot, Handed(self._offered.popleft())
        has_all_begun = len(self.begun) == self.slots
        if (not has_all_begun and self._waited >= self.patience) or (has_all_begun and not (self.busy or self._asked)):
            yield from self._dismissed()
        while len(self._asked) < len(self._idle) and (busiest := self._busiest()) is not None:
            self._asked.add(busiest)
            yield busiest, Asked()
        # Not while a slot is asked: the work that it gives would find no slot left.
        if not self._asked and self.others_wait():
            yield from self._dismissed()

    def _dismissed(self) -> Iterator[Move]:
        while self._idle:
            yield self._idle.pop(0), Dismissed()

    def _busiest(self) -> int | None:
        """The slot with the most remaining work, if dividing that may be worth it."""
        left = [
            (standing.left_millis, slot)
            for slot, standing in self.busy.items()
            if standing.left_millis is not None and slot not in self._asked and slot not in self._refused
        ]
        millis, slot = max(left, default=(0.0, 0))
        return slot if millis >= LEAST_HANDED_MILLIS else None
