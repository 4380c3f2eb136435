"""Counting, and adding up, by key: in each window, and over all of them."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Generic

from pydantic import PrivateAttr
from typing_extensions import TypeVar

from dagkit import Batch, InputPort, KeyedState, Operator, OutputPort, Unifier
from dagkit_operators.looking import seen, seen_column

K = TypeVar("K", default=Any)


def counted(item: Any) -> Any:
    """What of an item is counted: the value of a record, and any other item as a whole."""
    return seen(item, None)


def key_of(pair: tuple[Any, Any]) -> Any:
    """By what a pair is told apart from others."""
    return pair[0]


class AddUp(Unifier[tuple[K, int]], Generic[K]):
    """One pair for each key of a window, however many partitions told of it."""

    kind = "counts.add-up/1"
    parts = InputPort[tuple[K, int]](key=key_of)
    unified = OutputPort[tuple[K, int]]()
    _sums: Counter[Any] = PrivateAttr(default_factory=Counter)

    def process(self, item: tuple[K, int]) -> None:
        self._sums[item[0]] += item[1]

    def end_window(self) -> None:
        self.unified.emit_batch(Batch.of(in_order(self._sums.items())))
        self._sums.clear()


class CountByKey(Operator, Generic[K]):
    """How often each value came in a window, told at its end: keys in order, none that did not come.

    Counted are the values of records, and other items as a whole. Partitions that own keys count all of theirs; those
    that mirror others count what these send, and the counts are added up by whatever takes them in one place.
    """

    kind = "counts.count-by-key/1"
    input = InputPort[Any](key=counted)
    counts = OutputPort[tuple[Any, int]](unifier=AddUp)

    in_window = KeyedState[Any, int](int)
    """Empty between application windows."""

    def process(self, item: Any) -> None:
        self.in_window[counted(item)] += 1

    def process_batch(self, batch: Batch[Any]) -> None:
        for key, count in Counter(seen_column(batch, None).values()).items():
            self.in_window[key] += count

    def end_window(self) -> None:
        if self.in_window:
            self.counts.emit_batch(Batch.of(in_order(self.in_window.items())))
            self.in_window.clear()


class SumByKey(Operator, Generic[K]):
    """The sum of the numbers that came with each key.

    `totals` tells, at the end of each window, the sums over all windows of the keys that came in this one; `sums` tells
    what came in the window alone. `finals` tells every key with its sum once, when nothing more comes for now.
    """

    kind = "counts.sum-by-key/1"
    input = InputPort[tuple[K, int]](key=key_of)
    sums = OutputPort[tuple[K, int]](unifier=AddUp)
    totals = OutputPort[tuple[K, int]](main=True)
    finals = OutputPort[tuple[K, int]]()

    in_window = KeyedState[Any, int](int)
    """Empty between application windows."""
    so_far = KeyedState[Any, int](int)

    def process(self, item: tuple[K, int]) -> None:
        self.in_window[item[0]] += item[1]

    def process_batch(self, batch: Batch[tuple[K, int]]) -> None:
        for key, number in batch.items():
            self.in_window[key] += number

    def drained(self) -> None:
        self._take_over()
        self.finals.emit_batch(Batch.of(in_order(self.so_far.items())))

    def end_window(self) -> None:
        if self.in_window:
            self._take_over()

    def _take_over(self) -> None:
        """Add what came in the window to what came before."""
        for key, number in self.in_window.items():
            self.so_far.put(key, self.so_far.get(key, 0) + number, self.in_window.codes[key])
        self.sums.emit_batch(Batch.of(in_order(self.in_window.items())))
        self.totals.emit_batch(Batch.of(in_order((key, self.so_far[key]) for key in self.in_window)))
        self.in_window.clear()


def in_order(pairs: Iterable[tuple[K, int]]) -> list[tuple[K, int]]:
    """By key, where keys have an order."""
    listed = list(pairs)
    try:
        return sorted(listed)
    except TypeError:
        return listed
