"""Joining two streams by key, whatever the windows in which items arrive."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar, Generic

from pydantic import PositiveInt, PrivateAttr
from typing_extensions import TypeVar

from dagkit import Batch, Context, InputPort, KeyedState, Operator, OperatorContext, Outlet, OutputPort, auto_metric
from dagkit.api.keyed import Keyed
from dagkit.api.ports import output_ports
from dagkit.api.tagged import member
from dagkit_operators.values.keys import Key, RoutingKey, first_of, key_of, keys_of, sorted_by_key

L = TypeVar("L", default=Any)
R = TypeVar("R", default=Any)

Kept = tuple[int, bool, Any]
"""The window in which an item arrived, `NEW` in that window; whether it was sent in a pair; the item."""
NEW = 0
MOST_PAIRS = 8192
"""The most pairs of a batch."""


class _TwoSides(Operator, Generic[L, R]):
    """Keeps items by key and sends pairs at the end of each window. A subclass declares the output `joined`."""

    left = InputPort[L](keyed_by="left_routing_key", main=True)
    right = InputPort[R](keyed_by="right_routing_key", keys_of="left")
    items_kept = auto_metric(0)
    """Items that wait for their partner."""
    unpaired_forgotten = auto_metric(0)
    """Items that were forgotten and never sent."""

    left_key: Key = None
    """The key of an item on the left: a function of its value, or a field of it; None: the first of a pair."""
    right_key: Key = None
    """The key of an item on the right."""
    most_windows: PositiveInt | None = None
    """In how many windows, counting its own, an item is paired; None: in its own and all later ones."""

    lefts = KeyedState[Any, list[tuple[int, bool, L]]](list)
    rights = KeyedState[Any, list[tuple[int, bool, R]]](list)

    sends_left: ClassVar[bool] = False
    """Whether an item on the left without a partner is sent, with None as its partner."""
    sends_right: ClassVar[bool] = False

    _window_id: int = PrivateAttr(default=0)
    _horizon: int | None = PrivateAttr(default=None)
    """For how many streaming windows an item is kept after its own."""
    _is_drained: bool = PrivateAttr(default=False)

    def left_routing_key(self) -> Any:
        return RoutingKey(self._left_key)

    def right_routing_key(self) -> Any:
        return RoutingKey(self._right_key)

    def windows_joined(self) -> int | None:
        return self.most_windows

    def setup(self, context: Context) -> None:
        # `begin_window` is called in the first streaming window of an application window only.
        self._window_id = context.window_id
        if self.most_windows is not None:
            self._horizon = (self.most_windows - 1) * context.value(OperatorContext.APPLICATION_WINDOW_COUNT)

    def begin_window(self, window_id: int) -> None:
        self._window_id = window_id

    @left.process
    def take_left(self, item: L) -> None:
        self.lefts[key_of(self._left_key, item)].append((NEW, False, item))

    @left.process_batch
    def take_lefts(self, batch: Batch[L]) -> None:
        for key, item in zip(keys_of(self._left_key, batch), batch.items(), strict=True):
            self.lefts[key].append((NEW, False, item))

    @right.process
    def take_right(self, item: R) -> None:
        self.rights[key_of(self._right_key, item)].append((NEW, False, item))

    @right.process_batch
    def take_rights(self, batch: Batch[R]) -> None:
        for key, item in zip(keys_of(self._right_key, batch), batch.items(), strict=True):
            self.rights[key].append((NEW, False, item))

    def end_window(self) -> None:
        # The output is declared by the subclasses, since the type of its pairs differs.
        joined: Outlet[Any] = Outlet(self, output_ports(type(self))["joined"])
        pairs = self._pairs()
        while some := list(islice(pairs, MOST_PAIRS)):
            joined.emit_batch(Batch.of(some))
        self.items_kept = self.lefts.total(len) + self.rights.total(len)

    def _pairs(self) -> Iterator[tuple[Any, Any]]:
        """The pairs with a new item, and items that are sent alone: keys in their order, items as they arrived."""
        for key, _ in sorted_by_key((key, None) for key in self._due()):
            # To read a key that is missing would create it.
            lefts, rights = (list(side[key]) if key in side else [] for side in (self.lefts, self.rights))
            yield from _new_pairs(lefts, rights)
            alone = self._forget(self.lefts, key, rights, is_sent=self.sends_left)
            alone_right = self._forget(self.rights, key, lefts, is_sent=self.sends_right)
            yield from ((item, None) for item in alone)
            yield from ((None, item) for item in alone_right)

    def _due(self) -> dict[Any, None]:
        """The keys with items that are to be paired, sent alone or forgotten."""
        oldest = -1 if self._horizon is None else self._window_id - self._horizon
        due = {}
        for side in (self.lefts, self.rights):
            keys = list(side) if self._is_drained else side.due(oldest, _first_arrived)
            due.update(dict.fromkeys(key for key in keys if self._is_due(side[key])))
        return due

    def _is_due(self, kept: list[Kept]) -> bool:
        """Whether the items of a key on one side are to be paired, sent alone or forgotten. New items are the last."""
        return kept[-1][0] == NEW or self._is_drained or self._is_over(kept[0][0])

    def _is_over(self, arrived: int) -> bool:
        """Whether an item that arrived in this window cannot be paired later."""
        return self._horizon is not None and self._window_id - arrived >= self._horizon

    def _forget(self, side: Keyed[Any, list[Kept]], key: Any, others: list[Kept], *, is_sent: bool) -> list[Any]:
        """Keep the items of a key that may still find partners. Return those that are to be sent alone."""
        if key not in side:
            return []
        # Whether an item was in a pair is kept with it: an outer join sends it in pairs or alone, never both.
        has_new_partner = any(window == NEW for window, _, _ in others)
        kept, alone = list[Kept](), list[Any]()
        for window, was_paired, item in side[key]:
            arrived = window or self._window_id
            is_paired = was_paired or has_new_partner or (window == NEW and bool(others))
            if not self._is_over(arrived) and not (is_sent and self._is_drained and not is_paired):
                kept.append((arrived, is_paired, item))
            elif is_sent and not is_paired:
                alone.append(item)
            else:
                self.unpaired_forgotten += not is_paired
        if kept:
            side[key] = kept
        else:
            del side[key]
        return alone

    @property
    def _left_key(self) -> Key:
        return first_of if self.left_key is None else self.left_key

    @property
    def _right_key(self) -> Key:
        return first_of if self.right_key is None else self.right_key


def _first_arrived(saved: Sequence[Any]) -> int:
    """The window in which the first of these saved items arrived."""
    return int(member(saved[0], 0))


def _new_pairs(lefts: Iterable[Kept], rights: Iterable[Kept]) -> Iterator[tuple[Any, Any]]:
    """The pairs of which at least one item is new."""
    new_rights = [kept for kept in rights if kept[0] == NEW]
    for window, _, left in lefts:
        for _, _, right in rights if window == NEW else new_rights:
            yield left, right


class _SendsUnpaired(_TwoSides[L, R], Generic[L, R]):
    """Sends an item without a partner once it can find none: after `most_windows`, and when the input is drained."""

    def drained(self) -> None:
        self._is_drained = True


class Join(_TwoSides[L, R], Generic[L, R]):
    """Sends every pair of a left and a right item with the same key, in the window in which the later one arrives.

    Items are kept until their `most_windows` are over, by default for ever: however input is divided into windows and
    launches, the pairs are the same. What is kept is saved with each window, so set `most_windows` for endless input.
    At the end of a window, keys are sorted; the items of a key keep their order.
    """

    kind = "records.join/2"
    joined = OutputPort[tuple[L, R]]()


class LeftJoin(_SendsUnpaired[L, R], Generic[L, R]):
    """As `Join`; a left item without a partner is paired with None and forgotten.

    That happens at the end of its `most_windows`, and when the input is drained, as at the end of `launch --once`.
    """

    kind = "records.left-join/2"
    joined = OutputPort[tuple[L, R | None]]()
    sends_left = True


class OuterJoin(_SendsUnpaired[L, R], Generic[L, R]):
    """As `LeftJoin`, for items on either side."""

    kind = "records.outer-join/2"
    joined = OutputPort[tuple[L | None, R | None]]()
    sends_left = sends_right = True
