"""Keeping a share of the items, the same in every run."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Generic, Self

from pydantic import Field, PositiveInt, model_validator
from typing_extensions import TypeVar

from dagkit import Batch, InputPort, OutputPort, RowOperator, Rows, State
from dagkit.schema.routing import column_codes, routing_code
from dagkit_operators.values.keys import Key, key_column, key_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

T = TypeVar("T", default=Any)

_ALL = 1 << 32
_LOW = _ALL - 1


class Sample(RowOperator, Generic[T]):
    """Passes on a share of the items, chosen by their content or by their position, and drops the others.

    With `fraction`, a hash of the key decides. The choice depends on nothing else: it is the same in every run, for
    every order, split and number of partitions, and items with equal keys are all passed on or all dropped. With
    `every`, each partition passes on the first of so many items, counted over all windows; the choice depends on the
    order of the items.
    """

    kind = "records.sample/1"
    rows = Rows.FILTERED
    input = InputPort[T]()
    output = OutputPort[T]()

    fraction: Annotated[float, Field(ge=0, le=1)] | None = None
    """The share of keys that is kept."""
    every: PositiveInt | None = None
    """One item of so many is kept."""
    key: Key = None
    """What is hashed: a function of an item's value, or a field of it; None: the value of a record, any other item."""
    seed: int = 0
    """Another seed makes another choice of the same size."""

    passed = State(0)
    """The items since the last one that `every` kept, plus that one."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.fraction is None) == (self.every is None):
            raise ValueError("it needs a fraction, or every, and not both")
        return self

    def process(self, item: T) -> Iterator[T]:
        if self.every is not None:
            is_kept = self.passed % self.every == 0
            self.passed = (self.passed + 1) % self.every
        else:
            is_kept = mixed(routing_code(key_of(self.key, item)) & _LOW, self.seed) < self._limit
        if is_kept:
            yield item

    def process_batch(self, batch: Batch[T]) -> Batch[T]:
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling
        import pyarrow as pa  # noqa: PLC0415

        if self.every is not None:
            kept = (np.arange(len(batch)) + self.passed) % self.every == 0
            self.passed = (self.passed + len(batch)) % self.every
        else:
            kept = mixed_codes(column_codes(key_column(self.key, batch)), self.seed) < np.uint64(self._limit)
        return batch.where(pa.array(kept))

    @property
    def _limit(self) -> int:
        assert self.fraction is not None, "the validator refuses a sample without a fraction"
        return round(self.fraction * _ALL)


# The last steps of MurmurHash3, after a multiple of the golden ratio for the seed.
_FIRST, _SECOND = 0x85EBCA6B, 0xC2B2AE35
_GOLDEN = 0x9E3779B9


def mixed(code: int, seed: int) -> int:
    """A number below 2**32 whose bits all depend on all bits of the code: neighbouring codes are spread evenly."""
    code = (code + (seed + 1) * _GOLDEN) & _LOW
    code = ((code ^ (code >> 16)) * _FIRST) & _LOW
    code = ((code ^ (code >> 13)) * _SECOND) & _LOW
    return code ^ (code >> 16)


def mixed_codes(codes: "npt.NDArray[np.int64]", seed: int) -> "npt.NDArray[np.uint64]":
    """The same as `mixed`, for many codes."""
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling

    low = np.uint64(_LOW)
    mixing = (codes.astype(np.uint64) + np.uint64(((seed + 1) * _GOLDEN) & _LOW)) & low
    mixing = ((mixing ^ (mixing >> np.uint64(16))) * np.uint64(_FIRST)) & low
    mixing = ((mixing ^ (mixing >> np.uint64(13))) * np.uint64(_SECOND)) & low
    return mixing ^ (mixing >> np.uint64(16))
