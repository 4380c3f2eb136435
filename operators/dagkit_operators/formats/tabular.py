"""The base of formats with columns: which columns and rows are read, and how they become records."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Self

from pydantic import field_validator, model_validator
from typing_extensions import TypeVar

from dagkit import Batch, Block, Column, Listed, OutputPort
from dagkit.errors import did_you_mean
from dagkit.ground.urls import shown
from dagkit_operators.contexts.reader_context import Dropped, ReaderContext, Unsent, records_of
from dagkit_operators.filesystem.access import BadFile
from dagkit_operators.formats.rows import Rows
from dagkit_operators.formats.selection import check_where, is_arrow, names_in, selected
from dagkit_operators.payloads import Record, Rejected
from dagkit_operators.reading.block_reader import BlockReader
from dagkit_operators.reading.conversion import as_text
from dagkit_operators.values.record_types import (
    FieldType,
    Ignored,
    Maker,
    arrow_type,
    checked_fields_of,
    leaves_others,
    maker_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

V = TypeVar("V", default=Any)
Made = Batch[Record[Any]] | Unsent
NUMBER = "dagkit row number"
"""The name of the column that numbers the rows while some are dropped."""


class ColumnsMismatched(BadFile):
    """A file lacks columns that are to be read, or a column has another type."""

    code = "columns-mismatched"
    usual_help = "name the columns as the file does, and give them its types"

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{shown(path)}: {reason}")


@dataclass(frozen=True, slots=True)
class Places:
    """Where the rows of a batch lie in their file."""

    starts: Callable[[], Sequence[int] | None]
    """Computes the position of each row; None if rows have no positions of their own."""
    texts: Sequence[bytes] | None = None
    """The bytes of each row; None: the values of a row are shown."""
    start: int | None = None
    """The position of the part that holds the rows, if they have none."""


class TabularContext(ReaderContext[Any]):
    """Reads rows with named columns as records.

    A record is a `record_type`, or a dict without one. `columns` selects columns and `where` rows while they are read.
    A row that lacks a value for a field that may not be None is rejected, and so is one that the type refuses.
    """

    record_type: type | None = None
    """A dataclass, a pydantic model, a TypedDict or a NamedTuple: its fields are the columns. None: dicts."""
    types: Mapping[str, str] = {}
    """Arrow types of columns by name, such as `int64` or `timestamp[us]`, if `record_type` does not give them."""
    columns: tuple[str, ...] = ()
    """The columns of a record; none named: all. With a `record_type`, these are its fields."""
    where: Any = None
    """Which rows are read: a condition on fields, as `value.field("price") > 3`, or an expression of pyarrow."""
    sends: Literal["records", "batches"] = "records"
    """Whether each record is sent, or Arrow record batches of the records, which count as one item each."""

    @field_validator("where")
    @classmethod
    def _where_is_a_condition(cls, where: Any) -> Any:
        return check_where(where)

    @field_validator("record_type")
    @classmethod
    def _record_type_has_fields(cls, record_type: type | None) -> type | None:
        checked_fields_of(record_type)
        return record_type

    @model_validator(mode="after")
    def _columns_agree(self) -> Self:
        if self.columns and self.record_type is not None and set(self.columns) != set(self.fields):
            raise ValueError(f"columns differ from the fields of {self.record_type.__name__}; leave columns away")
        if len(set(self.columns)) < len(self.columns):
            raise ValueError("columns names a column twice")
        return self

    @model_validator(mode="after")
    def _batches_have_types(self) -> Self:
        if self.sends == "batches":
            for name, field in self.fields.items():
                if arrow_type(field.hint) is None:
                    raise ValueError(f"sends is 'batches', and Arrow has no type for the field {name}")
            if not self.is_typed:
                raise ValueError("sends is 'batches', and not every column has a type: set record_type")
        return self

    @property
    def sent_type(self) -> Any:
        return Any if self.record_type is None or self.sends == "batches" else self.record_type

    @property
    def is_typed(self) -> bool:
        """Whether each column has an Arrow type, so that each block gives the same types; here, files state them."""
        return True

    def records(self, block: Block, values: Column) -> Batch[Record[Any]]:
        """The records of a block, or one record whose value is an Arrow record batch of them."""
        if self.sends == "records":
            return records_of(block, values)
        return records_of(block, Listed([self._arrow(values)], lambda: _first(values.starts()), values.part_start()))

    def _arrow(self, values: Column) -> "pa.RecordBatch":
        """Records as an Arrow record batch."""
        import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

        if isinstance(values, Rows):
            return values.batch
        records, types = values.values(), self.declared()
        columns = {
            name: pa.array(
                [record[name] if isinstance(record, dict) else getattr(record, name) for record in records], types[name]
            )
            for name in self.wanted
        }
        return pa.RecordBatch.from_pydict(columns)

    def items(self, values: Column) -> Batch[Any]:
        return values.as_batch() if isinstance(values, Rows) else super().items(values)

    @property
    def fields(self) -> Mapping[str, FieldType]:
        """The fields of the record type; empty without one."""
        return checked_fields_of(self.record_type)

    @property
    def wanted(self) -> tuple[str, ...]:
        """The columns of a record; empty: all."""
        return self.columns or tuple(self.fields)

    @property
    def tested(self) -> tuple[str, ...]:
        """The columns that only `where` needs. An expression of Arrow does not name its columns."""
        return tuple(name for name in dict.fromkeys(names_in(self.where)) if name and name not in self.wanted)

    def needed(self, available: Sequence[str], path: str) -> list[str]:
        """The columns to read of those that a file has. Raise ColumnsMismatched if one is missing."""
        if not self.wanted:
            self._require([*self.tested, *self.types], available, path)
            return list(available)
        required = [name for name in self.wanted if name not in self.fields or not self.fields[name].is_optional]
        self._require([*required, *self.tested], available, path)
        if is_arrow(self.where):
            return list(available)
        names = {*self.wanted, *self.tested}
        return [name for name in available if name in names]

    @property
    def leaves_others(self) -> bool:
        """Whether other fields are left out on purpose: `columns` selects the fields, or the type is to ignore them."""
        return bool(self.columns) or leaves_others(self.record_type)

    def ignored(self, values: int, names: Sequence[str]) -> Ignored | None:
        """Fields that were not read, unless they are left out on purpose."""
        return Ignored(values, names) if values and not self.leaves_others else None

    def ignored_columns(self, rows: int, available: Sequence[str]) -> Ignored | None:
        """The columns of a file, which has them in each row, that `record_type` does not name."""
        others = [name for name in available if name not in self.fields and name not in self.tested]
        return self.ignored(rows * len(others), others) if self.fields else None

    def declared(self) -> "dict[str, pa.DataType | None]":
        """The Arrow type of each declared column; None if it is declared with a type that Arrow lacks."""
        import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

        own = {name: arrow_type(field.hint) for name, field in self.fields.items()}
        return {**own, **{name: pa.type_for_alias(alias) for name, alias in self.types.items()}}

    def maker(self) -> Maker:
        """How records are made of rows."""
        return maker_of(self.record_type)

    def made(self, block: Block, batch: "pa.RecordBatch", places: Places) -> Iterator[Made]:
        """The records of rows that were read, those that `where` keeps; each row that makes no record as rejected."""
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling
        import pyarrow as pa  # noqa: PLC0415

        maker = self.maker()
        order: Any = None
        if self.where is not None:
            # A filter forgets which rows it keeps. Their numbers lead to the place of a row that is rejected later.
            numbered = batch.append_column(NUMBER, pa.array(np.arange(batch.num_rows)))
            rows = batch.num_rows
            batch, order = _without_order(selected(self.where, numbered))
            yield from dropped(rows - batch.num_rows)
        batch, order, refused = self._without_missing(self._shaped(batch), order)
        for reason, index, values in refused:
            yield self._rejected(block, places, index, values, reason)
        if not batch.num_rows:
            return
        if maker.validated is None:
            yield self.records(block, Rows(batch, maker, lambda: _picked(places.starts(), order), places.start))
            return
        rows = batch.to_pylist()
        yield from self._checked(block, maker, rows, order, places)

    def _checked(
        self, block: Block, maker: Maker, rows: Sequence[Any], order: Sequence[int] | None, places: Places
    ) -> Iterator[Made]:
        """Rows as records, checked one by one."""
        records, indices = [], []
        for index, (row, (record, reason)) in enumerate(zip(rows, maker.checked(rows), strict=True)):
            place = index if order is None else int(order[index])
            if reason is not None:
                yield self._rejected(block, places, place, row, reason)
            else:
                records.append(record)
                indices.append(place)
        if records:
            yield self.records(block, Listed(records, lambda: _picked(places.starts(), indices), places.start))

    def _shaped(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        """The columns of a record, in order. A column that the file lacks, and that may be None, is null."""
        import pyarrow as pa  # noqa: PLC0415 - as above

        if not self.wanted:
            return batch
        arrays = [
            batch.column(name)
            if name in batch.schema.names
            else pa.nulls(batch.num_rows, arrow_type(self.fields[name].hint) or pa.null())
            for name in self.wanted
        ]
        return pa.RecordBatch.from_arrays(arrays, names=list(self.wanted))

    def _without_missing(
        self, batch: "pa.RecordBatch", order: Any
    ) -> "tuple[pa.RecordBatch, Any, list[tuple[str, int, Any]]]":
        """The rows that have a value where a field may not be None, and why each other one is refused."""
        import numpy as np  # noqa: PLC0415 - as above
        import pyarrow as pa  # noqa: PLC0415

        lacking = [
            name for name, field in self.fields.items() if not field.is_optional and batch.column(name).null_count
        ]
        if not lacking:
            return batch, order, []
        order = np.arange(batch.num_rows) if order is None else order
        bad = np.zeros(batch.num_rows, np.bool_)
        for name in lacking:
            bad |= batch.column(name).is_null().to_numpy(zero_copy_only=False)
        refused = []
        for index in np.flatnonzero(bad).tolist():
            row = batch.slice(index, 1).to_pylist()[0]
            missing = ", ".join(name for name in lacking if row[name] is None)
            refused.append((f"no value for {missing}", int(order[index]), row))
        return batch.filter(pa.array(~bad)), order[~bad], refused

    def _rejected(self, block: Block, places: Places, index: int, values: Any, reason: str) -> Rejected:
        text = repr(values) if places.texts is None else text_of_row(places.texts[index])
        starts = places.starts()
        return Rejected(block.path, places.start if starts is None else starts[index], text, reason)

    def _require(self, names: Sequence[str], available: Sequence[str], path: str) -> None:
        missing = [name for name in names if name not in available]
        if missing:
            hint = did_you_mean(missing[0], available)
            raise ColumnsMismatched(path, f"the file has no column {missing[0]!r}; {hint}")


class RecordsReader(BlockReader[Any], Generic[V]):
    """Reads records whose type is that of its reader context, if it has one."""

    messages = OutputPort[Record[V]](main=True)


def dropped(rows: int) -> Iterator[Dropped]:
    """Rows for which `where` does not hold, if there are any."""
    if rows:
        yield Dropped(rows)


def _without_order(batch: "pa.RecordBatch") -> "tuple[pa.RecordBatch, Any]":
    """A batch without its last column, the numbers of its rows, and these numbers."""
    last = batch.num_columns - 1
    return batch.remove_column(last), batch.column(last).to_numpy()


def _first(starts: Sequence[int] | None) -> Sequence[int] | None:
    return None if starts is None else starts[:1]


def _picked(starts: Sequence[int] | None, order: Any) -> Sequence[int] | None:
    return starts if starts is None or order is None else [starts[index] for index in order]


def text_of_row(content: bytes) -> str:
    """The text of a row in messages, without its end."""
    return as_text(content).rstrip("\r\n")
