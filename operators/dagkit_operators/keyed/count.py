"""Counting and summing by key, in each window and over all windows."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Generic

from pydantic import PrivateAttr
from typing_extensions import TypeVar

from dagkit import Batch, InputPort, KeyedState, Operator, OutputPort, Unifier
from dagkit.errors import clipped
from dagkit_operators.payloads import Record
from dagkit_operators.values.keys import Key, RoutingKey, first_of, key_of, keys_of, sorted_by_key
from dagkit_operators.values.processed import processed_column, processed_value

K = TypeVar("K", default=Any)


class AddUp(Unifier[tuple[K, int]], Generic[K]):
    """Adds up the pairs of all partitions, and sends one pair for each key of a window."""

    kind = "counts.add-up/1"
    parts = InputPort[tuple[K, int]](key=first_of)
    unified = OutputPort[tuple[K, int]]()
    _sums: Counter[Any] = PrivateAttr(default_factory=Counter)

    def process(self, item: tuple[K, int]) -> None:
        self._sums[item[0]] += item[1]

    def end_window(self) -> None:
        self.unified.emit_batch(Batch.of(sorted_by_key(self._sums.items())))
        self._sums.clear()


class CountByKey(Operator, Generic[K]):
    """Counts how often each key occurs in a window, and sends the counts at the window's end, sorted by key.

    Without `key`, a record is counted by its value, any other item as a whole. If partitions own keys, each counts all
    items of its keys. If partitions mirror those upstream, each counts what its upstream partition sends, and `AddUp`
    adds the counts where they meet.
    """

    kind = "counts.count-by-key/1"
    input = InputPort[Any](keyed_by="routing_key")
    counts = OutputPort[tuple[Any, int]](unifier=AddUp)

    key: Key = None
    """The key: a function of an item's value, or a field of it; None: the value of a record, any other item whole."""

    in_window = KeyedState[Any, int](int)
    """Empty between application windows."""

    def routing_key(self) -> Any:
        return RoutingKey(self.key)

    def process(self, item: Any) -> None:
        self.in_window[key_of(self.key, item)] += 1

    def process_batch(self, batch: Batch[Any]) -> None:
        for key, count in Counter(keys_of(self.key, batch)).items():
            self.in_window[key] += count

    def end_window(self) -> None:
        if self.in_window:
            self.counts.emit_batch(Batch.of(sorted_by_key(self.in_window.items())))
            self.in_window.clear()


class SumByKey(Operator, Generic[K]):
    """Sums the numbers of each key. Items are pairs of a key and a number, or records of such pairs.

    At the end of each window, `sums` sends the sums of that window, and `totals` sends the sums over all windows, each
    for the keys that occurred in the window. `finals` sends every key with its total when the input is drained.
    """

    kind = "counts.sum-by-key/1"
    input = InputPort[tuple[K, int] | Record[tuple[K, int]]](key=RoutingKey(first_of))
    sums = OutputPort[tuple[K, int]](unifier=AddUp)
    totals = OutputPort[tuple[K, int]](main=True)
    finals = OutputPort[tuple[K, int]](when_drained=True)

    in_window = KeyedState[Any, int](int)
    """Empty between application windows."""
    so_far = KeyedState[Any, int](int)

    def process(self, item: tuple[K, int] | Record[tuple[K, int]]) -> None:
        self._add([processed_value(item, None)])

    def process_batch(self, batch: Batch[tuple[K, int] | Record[tuple[K, int]]]) -> None:
        self._add(processed_column(batch, None).values())

    def _add(self, pairs: Sequence[Any]) -> None:
        pair = None
        try:
            for pair in pairs:
                key, number = pair
                self.in_window[key] += number
        except (TypeError, ValueError) as refused:
            problem = f"{clipped(pair)} is no pair of a key and a number ({refused})"
            raise TypeError(f"{problem}: send pairs, as Map(lambda item: (item, 1)) does") from refused

    def drained(self) -> None:
        self._take_over()
        self.finals.emit_batch(Batch.of(sorted_by_key(self.so_far.items())))

    def end_window(self) -> None:
        if self.in_window:
            self._take_over()

    def _take_over(self) -> None:
        """Add the sums of the window to the totals, and send both."""
        for key, number in self.in_window.items():
            # With the code of the key, since only an item can add a key to keyed state.
            self.so_far.put(key, self.so_far.get(key, 0) + number, self.in_window.codes[key])
        self.sums.emit_batch(Batch.of(sorted_by_key(self.in_window.items())))
        self.totals.emit_batch(Batch.of(sorted_by_key((key, self.so_far[key]) for key in self.in_window)))
        self.in_window.clear()
