"""Rows: a column of records that are kept as Arrow columns until they are needed as objects."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dagkit import Arrowed, Batch, Column
from dagkit.schema.columns import Placed, Starts, unknown
from dagkit_operators.values.record_types import Maker

if TYPE_CHECKING:
    import pyarrow as pa


class Rows(Placed):
    """Records in an Arrow record batch, each made on demand."""

    __slots__ = ("batch", "maker")

    def __init__(
        self,
        batch: "pa.RecordBatch",
        maker: Maker,
        starts: Starts = unknown,
        part_start: int | None = None,
    ) -> None:
        self.batch = batch
        """The columns of the records."""
        self.maker = maker
        self._starts = starts
        self._part_start = part_start

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return Rows, (self.batch, self.maker)

    def values(self) -> Sequence[Any]:
        return self.maker.of(self.batch.column_names, [column.to_pylist() for column in self.batch.columns])

    def array(self) -> "pa.StructArray":
        return self.batch.to_struct_array()

    def where(self, mask: "pa.BooleanArray") -> Column:
        return Rows(self.batch.filter(mask), self.maker, self._starts_where(mask), self._part_start)

    def sliced(self, start: int, count: int) -> Column:
        return Rows(self.batch.slice(start, count), self.maker, self._starts_in(start, count), self._part_start)

    def as_batch(self) -> Batch[Any]:
        """The records as a batch of columns, if each record is an object with a field for each column."""
        if self.maker.made_by is None:
            return Batch.of_column(self)
        columns: dict[str, Column] = {
            name: Arrowed(column) for name, column in zip(self.batch.column_names, self.batch.columns, strict=True)
        }
        return Batch(columns, self.maker.made_by)
