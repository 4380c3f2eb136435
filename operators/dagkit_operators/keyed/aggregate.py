"""Aggregating values by key, in each window and over all windows."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal

from pydantic import PrivateAttr
from typing_extensions import TypeVar

from dagkit import Batch, InputPort, KeyedState, Operator, OutputPort, Unifier
from dagkit_operators.values.keys import Key, RoutingKey, first_of, key_of, keys_of, second_of, sorted_by_key

T = TypeVar("T", default=Any)
K = TypeVar("K", default=Any)
V = TypeVar("V", default=Any)

Named = Literal["sum", "min", "max", "count", "mean"]
"""The functions that are known by name."""


@dataclass(frozen=True, slots=True)
class Mean:
    """An arithmetic mean, kept as a total and a count, so that means of parts give the mean of the whole."""

    total: Any
    count: int

    @property
    def value(self) -> Any:
        return self.total / self.count

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of an aggregation. A partial result can be saved as state; a result is what is sent."""

    combine: Callable[[Any, Any], Any]
    """Makes one partial result of two. It must be associative and commutative, as partitions merge in any order."""
    start: Callable[[Any], Any] = lambda value: value
    """The partial result of one value."""
    result: Callable[[Any], Any] = lambda partial: partial
    partial: Callable[[Any], Any] = lambda result: result
    """The partial result that a result was made of."""


NAMED: Final[Mapping[str, Steps]] = {
    "sum": Steps(lambda one, other: one + other),
    "min": Steps(min),
    "max": Steps(max),
    "count": Steps(lambda one, other: one + other, start=lambda value: 1),  # noqa: ARG005 - each value counts one
    "mean": Steps(
        lambda one, other: (one[0] + other[0], one[1] + other[1]),
        start=lambda value: (value, 1),
        result=lambda partial: Mean(*partial),
        partial=lambda mean: (mean.total, mean.count),
    ),
}


def steps_of(function: "Named | Callable[[Any, Any], Any]") -> Steps:
    """The steps of a named function, or of an associative and commutative function of two values."""
    return NAMED[function] if isinstance(function, str) else Steps(function)


class MergeAggregates(Unifier[tuple[K, V]], Generic[K, V]):
    """Merges the results that several partitions have for one key."""

    kind = "records.merge-aggregates/1"
    parts = InputPort[tuple[K, V]](key=first_of)
    unified = OutputPort[tuple[K, V]]()

    function: Named | Callable[[Any, Any], Any] = "sum"
    """The function of the operator before it."""

    _partials: dict[Any, Any] = PrivateAttr(default_factory=dict)

    def process(self, item: tuple[K, V]) -> None:
        steps, (key, result) = steps_of(self.function), item
        partial = steps.partial(result)
        known = key in self._partials
        self._partials[key] = steps.combine(self._partials[key], partial) if known else partial

    def end_window(self) -> None:
        result = steps_of(self.function).result
        self.unified.emit_batch(Batch.of(sorted_by_key((key, result(part)) for key, part in self._partials.items())))
        self._partials.clear()


class Aggregating(Operator, Generic[T, K, V]):
    """What operators share that combine values by key: the function, the key, and the value."""

    function: Named | Callable[[Any, Any], Any] = "sum"
    """`sum`, `min`, `max`, `count` or `mean`, or an associative and commutative function of two values."""
    key: Key = None
    """The key of an item: a function of its value, or a field of it; None: items are pairs that begin with it."""
    of: Key = None
    """What is combined: a function of an item's value, or a field of it; None: the second of a pair, or the value."""

    def routing_key(self) -> Any:
        return RoutingKey(self._key)

    @property
    def _key(self) -> Key:
        return first_of if self.key is None else self.key

    @property
    def _of(self) -> Key:
        return second_of if self.key is None and self.of is None else self.of


class Aggregate(Aggregating[T, K, V], Generic[T, K, V]):
    """Combines the values of each key in a window, and sends a pair of key and result for each, sorted by key.

    Items are pairs of a key and a value, unless `key` is set. The function is known by name, or any associative and
    commutative function of two values. The result of `mean` is a `Mean`. If several partitions have results for one
    key, as those that mirror the partitions upstream, a `MergeAggregates` merges them.

    `totals` sends the results over all windows, each for the keys that occurred in the window; partitions that mirror
    those upstream send results of their own. `finals` sends every key with its result over all windows when the input
    is drained. The state keeps every key if one of these outputs is connected.
    """

    kind = "records.aggregate/1"
    input = InputPort[T](keyed_by="routing_key")
    aggregates = OutputPort[tuple[K, V]](unified_by="merging", main=True)
    totals = OutputPort[tuple[K, V]]()
    finals = OutputPort[tuple[K, V]](unified_by="merging", when_drained=True)

    in_window = KeyedState[Any, Any](lambda: None)
    """The partial result of each key; empty between application windows."""
    so_far = KeyedState[Any, Any](lambda: None)
    """The partial result of each key over all windows, if `totals` or `finals` is connected."""

    def merging(self) -> MergeAggregates[K, V]:
        return MergeAggregates(function=self.function)

    def process(self, item: T) -> None:
        steps = steps_of(self.function)
        self._add(key_of(self._key, item), steps.start(key_of(self._of, item)), steps)

    def process_batch(self, batch: Batch[T]) -> None:
        steps, keys = steps_of(self.function), keys_of(self._key, batch)
        partials: dict[Any, Any] = {}
        # Counter counts in C, and no value is needed.
        if self.function == "count":
            partials = Counter(keys)
        else:
            start, combine = steps.start, steps.combine
            for key, value in zip(keys, keys_of(self._of, batch), strict=True):
                partial = start(value)
                partials[key] = combine(partials[key], partial) if key in partials else partial
        for key, partial in partials.items():
            self._add(key, partial, steps)

    def drained(self) -> None:
        self._end()
        self.finals.emit_batch(self._results(self.so_far, self.so_far))

    def end_window(self) -> None:
        if self.in_window:
            self._end()

    def _end(self) -> None:
        """Send the results of the window, and add them to those over all windows."""
        if self.totals.is_connected or self.finals.is_connected:
            steps = steps_of(self.function)
            for key, partial in self.in_window.items():
                known = key in self.so_far
                whole = steps.combine(self.so_far[key], partial) if known else partial
                # Only an item can add a key to keyed state, and here is none: the code of the key is taken along.
                self.so_far.put(key, whole, self.in_window.codes[key])
            self.totals.emit_batch(self._results(self.so_far, self.in_window))
        self.aggregates.emit_batch(self._results(self.in_window, self.in_window))
        self.in_window.clear()

    def _results(self, partials: Mapping[Any, Any], keys: Iterable[Any]) -> Batch[tuple[K, V]]:
        """The results of these keys, sorted by key."""
        result = steps_of(self.function).result
        return Batch.of(sorted_by_key((key, result(partials[key])) for key in keys))

    def _add(self, key: Any, partial: Any, steps: Steps) -> None:
        known = key in self.in_window
        self.in_window[key] = steps.combine(self.in_window[key], partial) if known else partial
