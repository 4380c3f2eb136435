"""Columns: one field of many items. Each form converts to the others, on demand.

A column is valid as long as its batch. To keep values longer, take them as Python values, which are copies.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, compress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

TEXT_ERRORS = "surrogateescape"
"""Bytes that are not UTF-8 become lone surrogates, and encode back to the same bytes."""

Starts = Callable[[], Sequence[int] | None]
"""Computes the byte offset of each value of a column; None if they are unknown."""


def unknown() -> None:
    """Return None: the offsets of these values are unknown."""


class Column(ABC):
    """One value for each item of a batch."""

    __slots__ = ()

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def values(self) -> Sequence[Any]:
        """The values as Python objects."""

    @abstractmethod
    def array(self) -> "pa.Array":
        """The values as an Arrow array. Raise `pyarrow.ArrowInvalid` if Arrow has no type for them."""

    @abstractmethod
    def where(self, mask: "pa.BooleanArray") -> "Column":
        """The values for which the mask is true."""

    @abstractmethod
    def sliced(self, start: int, count: int) -> "Column":
        """The values from `start` on, at most `count`."""

    def starts(self) -> Sequence[int] | None:
        """The byte offset of each value in the input that was read; None if the column does not know it."""
        return None

    def part_start(self) -> int | None:
        """The byte offset of the part of the input, such as a row group, that holds the values; None: unknown."""
        return None

    def places(self) -> Sequence[int] | None:
        """The byte offset of each value, or of the part of the input that holds it; None: unknown."""
        starts, part = self.starts(), self.part_start()
        return [part] * len(self) if starts is None and part is not None else starts

    def placed(self, starts: "Starts", part_start: int | None = None) -> "Column":
        """The same values, read from elsewhere. `starts` computes the offset of each, when they are needed."""
        return Listed(self.values(), starts, part_start)


class Constant(Column):
    """The same value for every item."""

    __slots__ = ("count", "path", "value")

    def __init__(self, value: Any, count: int, path: str = "") -> None:
        self.value = value
        self.count = count
        self.path = path
        """The file from which the items were read; empty if it is unknown."""

    def __len__(self) -> int:
        return self.count

    def values(self) -> Sequence[Any]:
        return [self.value] * self.count

    def array(self) -> "pa.Array":
        import pyarrow as pa  # noqa: PLC0415 - compiling must not load Arrow

        return pa.repeat(self.value, self.count)

    def where(self, mask: "pa.BooleanArray") -> Column:
        return self.of_length(mask.true_count)

    def sliced(self, start: int, count: int) -> Column:
        return self.of_length(min(count, self.count - start))

    def of_length(self, count: int) -> "Constant":
        """The same value for another number of items."""
        return Constant(self.value, count, self.path)


class Placed(Column):
    """Values that may know where they were read."""

    __slots__ = ("_part_start", "_starts")

    _starts: Starts
    _part_start: int | None

    def starts(self) -> Sequence[int] | None:
        return self._starts()

    def part_start(self) -> int | None:
        return self._part_start

    def _starts_where(self, mask: "pa.BooleanArray") -> Starts:
        return unknown if self._starts is unknown else partial(kept_of, self._starts, mask)

    def _starts_in(self, start: int, count: int) -> Starts:
        return unknown if self._starts is unknown else partial(sliced_of, self._starts, start, count)


class Listed(Placed):
    """Values in a list."""

    __slots__ = ("listed",)

    def __init__(self, listed: Sequence[Any], starts: Starts = unknown, part_start: int | None = None) -> None:
        self.listed = listed
        self._starts = starts
        self._part_start = part_start

    def __reduce__(self) -> tuple[Any, ...]:
        return Listed, (self.listed,)

    def __len__(self) -> int:
        return len(self.listed)

    def values(self) -> Sequence[Any]:
        return self.listed

    def array(self) -> "pa.Array":
        import pyarrow as pa  # noqa: PLC0415 - compiling must not load Arrow

        return pa.array(self.listed)

    def where(self, mask: "pa.BooleanArray") -> Column:
        import numpy as np  # noqa: PLC0415 - compiling must not load Arrow

        kept = np.flatnonzero(mask.to_numpy(zero_copy_only=False)).tolist()
        return Listed([self.listed[index] for index in kept], self._starts_where(mask), self._part_start)

    def sliced(self, start: int, count: int) -> Column:
        return Listed(self.listed[start : start + count], self._starts_in(start, count), self._part_start)


class Arrowed(Placed):
    """Values in an Arrow array."""

    __slots__ = ("arrow",)

    def __init__(self, arrow: "pa.Array", starts: Starts = unknown, part_start: int | None = None) -> None:
        self.arrow = arrow
        self._starts = starts
        self._part_start = part_start

    def __reduce__(self) -> tuple[Any, ...]:
        return Arrowed, (self.arrow,)

    def __len__(self) -> int:
        return len(self.arrow)

    def values(self) -> Sequence[Any]:
        listed: list[Any] = self.arrow.to_pylist()
        return listed

    def array(self) -> "pa.Array":
        return self.arrow

    def where(self, mask: "pa.BooleanArray") -> Column:
        return Arrowed(self.arrow.filter(mask), self._starts_where(mask), self._part_start)

    def sliced(self, start: int, count: int) -> Column:
        return Arrowed(self.arrow.slice(start, count), self._starts_in(start, count), self._part_start)

    def placed(self, starts: Starts, part_start: int | None = None) -> Column:
        return Arrowed(self.arrow, starts, part_start)


class Lines(Placed):
    """Texts stored one after the other as bytes, each ended by the delimiter.

    Lines that were read are filtered and written without being decoded, copied or joined.
    """

    __slots__ = ("base", "delimiter", "ended")

    def __init__(
        self,
        ended: "pa.BinaryArray | pa.LargeBinaryArray",
        delimiter: bytes = b"\n",
        base: int | None = None,
        starts: Starts = unknown,
        part_start: int | None = None,
    ) -> None:
        self.ended = ended
        """The lines as bytes, delimiters included."""
        self.delimiter = delimiter
        self.base = base
        """The byte offset of the first line in the input that was read; None once lines were filtered out."""
        self._starts = starts
        self._part_start = part_start

    def __len__(self) -> int:
        return len(self.ended)

    def __reduce__(self) -> tuple[Any, ...]:
        return Lines, (self.ended, self.delimiter)

    @property
    def content(self) -> memoryview:
        """The bytes of all lines, delimiters included."""
        if not len(self.ended):
            return memoryview(b"")
        import pyarrow as pa  # noqa: PLC0415 - compiling must not load Arrow

        _, places, data = self.ended.buffers()
        flat = memoryview(places).cast("B")
        ends = flat.cast("q" if isinstance(self.ended, pa.LargeBinaryArray) else "i")
        # A slice shares the buffers of the whole array.
        first, last = ends[self.ended.offset], ends[self.ended.offset + len(self.ended)]
        return memoryview(data)[first:last]

    def values(self) -> Sequence[str]:
        if not len(self.ended):
            return []
        texts = str(self.content, "utf-8", TEXT_ERRORS).split(self.delimiter.decode())
        texts.pop()  # the text after the last delimiter, which is empty
        return texts

    def array(self) -> "pa.Array":
        """The lines as text without their delimiters."""
        import pyarrow as pa  # noqa: PLC0415 - compiling must not load Arrow
        import pyarrow.compute as pc  # noqa: PLC0415

        bare = pc.binary_slice(self.ended, 0, -len(self.delimiter))
        return bare.cast(pa.large_string() if pa.types.is_large_binary(bare.type) else pa.string())

    def where(self, mask: "pa.BooleanArray") -> Column:
        starts = partial(kept_of, self.starts, mask)
        return Lines(self.ended.filter(mask), self.delimiter, None, starts, self._part_start)

    def sliced(self, start: int, count: int) -> Column:
        starts = partial(sliced_of, self.starts, start, count)
        return Lines(self.ended.slice(start, count), self.delimiter, None, starts, self._part_start)

    def placed(self, starts: Starts, part_start: int | None = None) -> Column:
        return Lines(self.ended, self.delimiter, None, starts, part_start)

    def starts(self) -> Sequence[int] | None:
        if self.base is None:
            return self._starts()
        if not len(self.ended):
            return None
        import pyarrow.compute as pc  # noqa: PLC0415 - compiling must not load Arrow

        return list(accumulate(pc.binary_length(self.ended).to_pylist()[:-1], initial=self.base))


def kept_of(starts: Starts, mask: "pa.BooleanArray") -> Sequence[int] | None:
    """The offsets of the values for which the mask is true."""
    known = starts()
    return None if known is None else list(compress(known, mask.to_pylist()))


def sliced_of(starts: Starts, start: int, count: int) -> Sequence[int] | None:
    """The offsets of so many values from one on."""
    known = starts()
    return None if known is None else known[start : start + count]
