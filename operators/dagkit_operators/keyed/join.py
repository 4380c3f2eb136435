"""Joining two streams by key, in each window."""

from collections.abc import Iterator
from itertools import product
from typing import Any, ClassVar, Generic

from typing_extensions import TypeVar

from dagkit import Batch, InputPort, KeyedState, Operator, Outlet, OutputPort
from dagkit.api.ports import output_ports
from dagkit_operators.keyed.keys import Key, first_of, key_of, keys_of, routed_by, sorted_by_key

L = TypeVar("L", default=Any)
R = TypeVar("R", default=Any)


class _TwoSides(Operator, Generic[L, R]):
    """Keeps the items of a window by key and sends pairs at its end. A subclass declares the output `joined`."""

    left = InputPort[L](keyed_by="left_routing_key", main=True)
    right = InputPort[R](keyed_by="right_routing_key")

    left_key: Key = None
    """The key of an item on the left: a function of its value, or a field; None: items are pairs with their key."""
    right_key: Key = None
    """The key of an item on the right."""

    lefts = KeyedState[Any, list[Any]](list)
    """The items of the window by key; empty between application windows."""
    rights = KeyedState[Any, list[Any]](list)

    keeps_left: ClassVar[bool] = False
    """Whether an item on the left without a partner is sent, with None as its partner."""
    keeps_right: ClassVar[bool] = False

    def left_routing_key(self) -> Any:
        return routed_by(self._left_key)

    def right_routing_key(self) -> Any:
        return routed_by(self._right_key)

    @left.process
    def take_left(self, item: L) -> None:
        self.lefts[key_of(self._left_key, item)].append(item)

    @left.process_batch
    def take_lefts(self, batch: Batch[L]) -> None:
        for key, item in zip(keys_of(self._left_key, batch), batch.items(), strict=True):
            self.lefts[key].append(item)

    @right.process
    def take_right(self, item: R) -> None:
        self.rights[key_of(self._right_key, item)].append(item)

    @right.process_batch
    def take_rights(self, batch: Batch[R]) -> None:
        for key, item in zip(keys_of(self._right_key, batch), batch.items(), strict=True):
            self.rights[key].append(item)

    def pairs(self) -> Iterator[tuple[Any, Any]]:
        """The pairs of the window: keys in their order, and the items of a key in the order in which they arrived."""
        lefts, rights = dict(self.lefts), dict(self.rights)
        nothing_left, nothing_right = [None] * self.keeps_right, [None] * self.keeps_left
        for key, _ in sorted_by_key((key, None) for key in {**lefts, **rights}):
            yield from product(lefts.get(key, nothing_left), rights.get(key, nothing_right))

    def end_window(self) -> None:
        pairs = list(self.pairs())
        if pairs:
            joined: Outlet[Any] = Outlet(self, output_ports(type(self))["joined"])
            joined.emit_batch(Batch.of(pairs))
        self.lefts.clear()
        self.rights.clear()

    @property
    def _left_key(self) -> Key:
        return first_of if self.left_key is None else self.left_key

    @property
    def _right_key(self) -> Key:
        return first_of if self.right_key is None else self.right_key


class Join(_TwoSides[L, R], Generic[L, R]):
    """Sends every pair of a left and a right item with the same key in a window, when the window ends.

    The items of a window are kept in memory until then. Keys are sorted; the items of a key keep their order.
    """

    kind = "records.join/1"
    joined = OutputPort[tuple[L, R]]()


class LeftJoin(_TwoSides[L, R], Generic[L, R]):
    """As `Join`; a left item without a partner in its window is paired with None."""

    kind = "records.left-join/1"
    joined = OutputPort[tuple[L, R | None]]()
    keeps_left = True


class OuterJoin(_TwoSides[L, R], Generic[L, R]):
    """As `Join`; an item of either side without a partner in its window is paired with None."""

    kind = "records.outer-join/1"
    joined = OutputPort[tuple[L | None, R | None]]()
    keeps_left = keeps_right = True
