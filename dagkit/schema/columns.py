"""Columns: one field of many items. Each form gives the others when asked, and makes them only then.

A column is good as long as its batch is. What wants to keep values takes them as Python values, which are copies.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

TEXT_ERRORS = "surrogateescape"
"""Bytes that are no UTF-8 become lone surrogates, and come back as the very bytes."""


class Column(ABC):
    """One value for each item of a batch."""

    __slots__ = ()

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def values(self) -> Sequence[Any]:
        """The values as Python has them."""

    @abstractmethod
    def array(self) -> "pa.Array":
        """The values as Arrow has them. Raises `pyarrow.ArrowInvalid` for what Arrow has no type for."""

    @abstractmethod
    def where(self, mask: "pa.BooleanArray") -> "Column":
        """The values at which the mask holds."""

    @abstractmethod
    def sliced(self, start: int, count: int) -> "Column":
        """So many values from one on."""

    def starts(self) -> Sequence[int] | None:
        """The byte at which each value starts in what was read; None where the column does not know."""
        return None


class Constant(Column):
    """The same value for every item."""

    __slots__ = ("count", "value")

    def __init__(self, value: Any, count: int) -> None:
        self.value = value
        self.count = count

    def __len__(self) -> int:
        return self.count

    def values(self) -> Sequence[Any]:
        return [self.value] * self.count

    def array(self) -> "pa.Array":
        import pyarrow as pa  # noqa: PLC0415 - whoever only compiles does not load Arrow

        return pa.repeat(self.value, self.count)

    def where(self, mask: "pa.BooleanArray") -> Column:
        return Constant(self.value, mask.true_count)

    def sliced(self, start: int, count: int) -> Column:
        return Constant(self.value, min(count, self.count - start))


class Listed(Column):
    """Values in a list."""

    __slots__ = ("listed",)

    def __init__(self, listed: Sequence[Any]) -> None:
        self.listed = listed

    def __len__(self) -> int:
        return len(self.listed)

    def values(self) -> Sequence[Any]:
        return self.listed

    def array(self) -> "pa.Array":
        import pyarrow as pa  # noqa: PLC0415 - whoever only compiles does not load Arrow

        return pa.array(self.listed)

    def where(self, mask: "pa.BooleanArray") -> Column:
        import numpy as np  # noqa: PLC0415 - whoever only compiles does not load Arrow

        kept = np.flatnonzero(mask.to_numpy(zero_copy_only=False)).tolist()
        return Listed([self.listed[index] for index in kept])

    def sliced(self, start: int, count: int) -> Column:
        return Listed(self.listed[start : start + count])


class Arrowed(Column):
    """Values in an Arrow array."""

    __slots__ = ("arrow",)

    def __init__(self, arrow: "pa.Array") -> None:
        self.arrow = arrow

    def __len__(self) -> int:
        return len(self.arrow)

    def values(self) -> Sequence[Any]:
        listed: list[Any] = self.arrow.to_pylist()
        return listed

    def array(self) -> "pa.Array":
        return self.arrow

    def where(self, mask: "pa.BooleanArray") -> Column:
        return Arrowed(self.arrow.filter(mask))

    def sliced(self, start: int, count: int) -> Column:
        return Arrowed(self.arrow.slice(start, count))


class Lines(Column):
    """Texts that stand one after the other in bytes, each with the delimiter that ends it.

    So lines that were read are filtered and written again without being decoded, copied or joined.
    """

    __slots__ = ("base", "delimiter", "ended")

    def __init__(
        self, ended: "pa.BinaryArray | pa.LargeBinaryArray", delimiter: bytes = b"\n", base: int | None = None
    ) -> None:
        self.ended = ended
        """The lines as bytes, their delimiters included."""
        self.delimiter = delimiter
        self.base = base
        """Where the first line starts in what was read; unknown once lines were left out."""

    def __len__(self) -> int:
        return len(self.ended)

    def __reduce__(self) -> tuple[Any, ...]:
        return Lines, (self.ended, self.delimiter)

    @property
    def content(self) -> memoryview:
        """All lines as they stand, one after the other."""
        if not len(self.ended):
            return memoryview(b"")
        import pyarrow as pa  # noqa: PLC0415 - whoever only compiles does not load Arrow

        _, places, data = self.ended.buffers()
        flat = memoryview(places).cast("B")
        ends = flat.cast("q" if isinstance(self.ended, pa.LargeBinaryArray) else "i")
        first, last = ends[self.ended.offset], ends[self.ended.offset + len(self.ended)]
        return memoryview(data)[first:last]

    def values(self) -> Sequence[str]:
        if not len(self.ended):
            return []
        texts = str(self.content, "utf-8", TEXT_ERRORS).split(self.delimiter.decode())
        texts.pop()  # what follows the last delimiter: nothing
        return texts

    def array(self) -> "pa.Array":
        """The lines as text without their delimiters."""
        import pyarrow as pa  # noqa: PLC0415 - whoever only compiles does not load Arrow
        import pyarrow.compute as pc  # noqa: PLC0415

        bare = pc.binary_slice(self.ended, 0, -len(self.delimiter))
        return bare.cast(pa.large_string() if pa.types.is_large_binary(bare.type) else pa.string())

    def where(self, mask: "pa.BooleanArray") -> Column:
        return Lines(self.ended.filter(mask), self.delimiter)

    def sliced(self, start: int, count: int) -> Column:
        return Lines(self.ended.slice(start, count), self.delimiter)

    def starts(self) -> Sequence[int] | None:
        if self.base is None or not len(self.ended):
            return None
        import pyarrow.compute as pc  # noqa: PLC0415 - whoever only compiles does not load Arrow

        return list(accumulate(pc.binary_length(self.ended).to_pylist()[:-1], initial=self.base))
