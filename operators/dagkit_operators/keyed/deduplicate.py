"""Dropping items whose key has occurred before."""

from collections.abc import Iterator, Sequence
from typing import Any, Generic

from pydantic import PositiveInt, PrivateAttr
from typing_extensions import TypeVar

from dagkit import Batch, Context, InputPort, KeyedState, Operator, OperatorContext, OutputPort, Rows, auto_metric
from dagkit_operators.values.keys import Key, RoutingKey, key_of, keys_of

T = TypeVar("T", default=Any)

SLACK = 8
"""An eighth more keys than `most_keys` may be kept, so that keys are forgotten many at a time."""


class Deduplicate(Operator, Generic[T]):
    """Passes on the first item of each key, and drops later ones within the horizon.

    The horizon bounds the memory: a partition knows the `most_keys` keys that occurred last, and with `most_windows`
    only those that occurred in so many windows up to the present one. A key beyond the horizon is forgotten: its next
    item is passed on as if it were the first. The metric `keys_forgotten` counts forgotten keys, and
    `duplicates_dropped` the dropped items.
    """

    kind = "records.deduplicate/1"
    rows = Rows.FILTERED
    input = InputPort[T](keyed_by="routing_key")
    output = OutputPort[T](main=True)
    duplicates = OutputPort[T]()
    """The dropped items."""
    duplicates_dropped = auto_metric(0)
    """Items that were not sent, because their key was known."""
    keys_forgotten = auto_metric(0)
    """Keys that were forgotten."""
    keys_over_limit = auto_metric(
        0,
        warning="{keys_over_limit:,} keys were forgotten, since more than most_keys occurred: if they occur again, "
        "their items are passed on as if they were the first\n  help: raise most_keys; if duplicates only come within "
        "some windows, set most_windows",
    )
    """Those of them that were forgotten because of `most_keys`."""

    key: Key = None
    """The key: a function of an item's value, or a field of it; None: the value of a record, any other item whole."""
    most_keys: PositiveInt = 100_000
    """How many keys each partition remembers, and up to an eighth more. They are saved with each window."""
    most_windows: PositiveInt | None = None
    """In how many windows a key must occur again in order to be remembered; None: any number."""

    last_seen = KeyedState[Any, int](int)
    """The window in which each key occurred last."""
    _window_id: int = PrivateAttr(default=0)
    _window_count: int = PrivateAttr(default=1)
    """Streaming windows in one window of the operator."""

    def routing_key(self) -> Any:
        return RoutingKey(self.key)

    def setup(self, context: Context) -> None:
        # `begin_window` is called in the first streaming window of an application window only.
        self._window_id = context.window_id
        self._window_count = context.value(OperatorContext.APPLICATION_WINDOW_COUNT)

    def begin_window(self, window_id: int) -> None:
        self._window_id = window_id
        if self.most_windows is not None:
            oldest = window_id - (self.most_windows - 1) * self._window_count
            self._forget([key for key in self.last_seen.due(oldest - 1, int) if self.last_seen[key] < oldest])

    def process(self, item: T) -> Iterator[T]:
        if self._is_first(key_of(self.key, item)):
            yield item
        else:
            self.duplicates_dropped += 1
            self.duplicates.emit(item)

    def process_batch(self, batch: Batch[T]) -> Batch[T]:
        are_first = [self._is_first(key) for key in keys_of(self.key, batch)]
        if all(are_first):
            return batch
        import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling
        import pyarrow.compute as pc  # noqa: PLC0415

        mask = pa.array(are_first)
        self.duplicates_dropped += len(batch) - mask.true_count
        if self.duplicates.is_connected:
            self.duplicates.emit_batch(batch.where(pc.invert(mask)))
        return batch.where(mask)

    def _is_first(self, key: Any) -> bool:
        """Whether the key is not remembered. It is from now on."""
        is_first = key not in self.last_seen
        self.last_seen[key] = self._window_id
        # Sorting all keys for each new one would take quadratic time, so many are forgotten at a time.
        if is_first and len(self.last_seen) > self.most_keys + self.most_keys // SLACK:
            self._forget_oldest()
        return is_first

    def _forget_oldest(self) -> None:
        """Forget the keys that occurred longest ago, by window; in one window, those that were new first."""
        beyond = len(self.last_seen) - self.most_keys
        self._forget(sorted(self.last_seen, key=self.last_seen.__getitem__)[:beyond])
        self.keys_over_limit += beyond

    def _forget(self, keys: Sequence[Any]) -> None:
        for key in keys:
            del self.last_seen[key]
        self.keys_forgotten += len(keys)
