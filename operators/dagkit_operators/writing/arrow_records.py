"""Items as Arrow tables, for operators that write columns."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, get_args, get_origin

from pydantic import PrivateAttr, field_validator
from typing_extensions import TypeVar

from dagkit import Batch, InputPort, Operator
from dagkit.errors import RunFailure, clipped
from dagkit.schema import is_known, spelled
from dagkit_operators.formats.rows import Rows
from dagkit_operators.payloads import Record
from dagkit_operators.values.processed import processed_column, processed_value
from dagkit_operators.values.record_types import arrow_type, checked_fields_of, fields_of, has_fields
from dagkit_operators.writing.content import members_of

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T", default=Any)


def check_columns(record_type: type | None, *, holds_records: bool = False) -> type | None:
    """Return the record type. Raise ValueError if it has no fields, or one whose type no column holds."""
    for name, field in checked_fields_of(record_type).items():
        if arrow_type(field.hint, holds_records=holds_records) is None:
            raise ValueError(f"the field {name} has a type without an Arrow column: {spelled(field.hint)}")
    return record_type


@lru_cache(maxsize=256)
def schema_of(record_type: type) -> "pa.Schema":
    """The columns of a record type."""
    import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

    fields = fields_of(record_type).items()
    kinds = {name: arrow_type(field.hint, holds_records=True) for name, field in fields}
    return pa.schema([pa.field(name, kinds[name], field.is_optional) for name, field in fields])


def _text_unwritable(column: str, text: str) -> RunFailure:
    """A text has bytes that are not UTF-8, which no column of text can hold."""
    return RunFailure(
        f"the column {column} cannot hold {clipped(text)}, which has bytes that are not UTF-8",
        'set undecodable="reject" at the reader, which then sends such lines to `rejected`, or encoding to that of the '
        "file",
        code="text-undecodable",
        caused_by_author=True,
    )


class ArrowRecords:
    """Turns records into tables. Record batches and tables of Arrow pass as they are."""

    def __init__(self, record_type: type | None, rows: int, add: "Callable[[pa.Table], None]") -> None:
        self._record_type = record_type
        self._rows = rows
        """The most records that it gathers."""
        self._add = add
        """Called with each table."""
        self._texts: Sequence[str] = () if record_type is None else _texts_of(record_type)
        """The fields that are text."""
        self._values: list[Any] = []
        """Records that are in no table yet."""

    def take(self, item: Any) -> None:
        self._take(processed_value(item, None))

    def take_batch(self, batch: Batch[Any]) -> None:
        column = processed_column(batch, None)
        if isinstance(column, Rows) and self._record_type is not None:
            import pyarrow as pa  # noqa: PLC0415 - as above

            # Records that came before the batch stay before it.
            self.flush()
            schema = schema_of(self._record_type)
            self._add(pa.Table.from_batches([column.batch]).select(schema.names).cast(schema))
            return
        for value in column.values():
            self._take(value)

    def flush(self) -> None:
        """Make a table of the records that are in none."""
        import pyarrow as pa  # noqa: PLC0415 - as above

        if self._values:
            assert self._record_type is not None, "without a record type, items are of Arrow"
            schema, values = schema_of(self._record_type), self._values
            self._values = []
            self._add(pa.Table.from_arrays([_column(values, field) for field in schema], schema=schema))

    def _take(self, value: Any) -> None:
        import pyarrow as pa  # noqa: PLC0415 - as above

        if isinstance(value, pa.RecordBatch | pa.Table):
            self.flush()
            self._add(pa.Table.from_batches([value]) if isinstance(value, pa.RecordBatch) else value)
            return
        if self._record_type is None:
            raise TypeError(
                f"{clipped(value, 60)} is no Arrow record batch or table; set record_type to the class of records"
            )
        for name in self._texts:
            text = field_of(value, name)
            # Here and not when the table is made, since now the place of the record is known.
            if isinstance(text, str) and not text.isascii():
                _check_text(name, text)
        self._values.append(value)
        if len(self._values) >= self._rows:
            self.flush()


@lru_cache(maxsize=256)
def _texts_of(record_type: type) -> Sequence[str]:
    return tuple(name for name, field in fields_of(record_type).items() if field.hint is str)


def _check_text(column: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _text_unwritable(column, text) from None


def _column(records: Sequence[Any], field: "pa.Field") -> "pa.Array":
    """One field of records. Raise TypeError that shows the first record whose value the column cannot hold."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    is_nested = pa.types.is_nested(field.type)

    def made(some: Sequence[Any]) -> pa.Array:
        values = [field_of(record, field.name) for record in some]
        return pa.array(map(_as_dicts, values) if is_nested else values, type=field.type)

    try:
        return made(records)
    except (ValueError, TypeError, OverflowError):
        # Arrow names neither the record nor its place in the column.
        for record in records:
            try:
                made([record])
            except (ValueError, TypeError, OverflowError) as error:
                problem = f"the column {field.name} is of type {field.type}, and cannot hold that of {clipped(record)}"
                raise TypeError(f"{problem}: {error}") from error
        raise


def _as_dicts(value: Any) -> Any:
    """A value with dicts in the place of the records in it, which are all that Arrow takes for a struct."""
    if isinstance(value, list):
        return [_as_dicts(item) for item in value]
    if isinstance(value, dict):
        return {name: _as_dicts(member) for name, member in value.items()}
    kind: Any = type(value)
    return {name: _as_dicts(getattr(value, name)) for name in fields_of(kind)} if has_fields(kind) else value


def field_of(record: Any, name: str) -> Any:
    """A field of a record, or a value of a dict."""
    return record[name] if isinstance(record, dict) else getattr(record, name)


class RecordTyped(Operator):
    """Writes records of one type. If the type is not set, it is that of the stream."""

    holds_records: ClassVar[bool] = False
    """Whether a column may hold records."""

    record_type: type | None = None
    """A dataclass, pydantic model, TypedDict or NamedTuple, whose fields are the columns; None: that of the stream.

    If the stream sends Arrow record batches or tables, their columns are written.
    """

    @field_validator("record_type")
    @classmethod
    def _has_columns(cls, record_type: type | None) -> type | None:
        return check_columns(record_type, holds_records=cls.holds_records)

    def implied_properties(self, received: Mapping[str, Any]) -> Mapping[str, Any]:
        value = _value_of(received.get("input", Any))
        return {"record_type": value} if self.record_type is None and has_fields(value) else {}

    def refused_payload(self, port: str, payload: Any) -> str | None:  # noqa: ARG002 - there is one input
        value = _value_of(payload)
        if self.record_type is not None or any(map(_may_be_arrow, members_of(value))):
            return None
        return (
            f"{spelled(value)} has no fields that could be columns: set record_type to a class that has, "
            "or put a Map before it that makes records"
        )


class GathersRecords(RecordTyped, Generic[T]):
    """Makes tables of records, or of Arrow record batches and tables. A subclass takes the tables."""

    input = InputPort[T]()

    _records: ArrowRecords | None = PrivateAttr(default=None)

    @abstractmethod
    def _rows_together(self) -> int:
        """The most records of a table that is made of records."""

    @abstractmethod
    def _take_table(self, table: "pa.Table") -> None:
        """Take the next table of the window."""

    def process(self, item: T) -> None:
        self._arrow.take(item)

    def process_batch(self, batch: Batch[T]) -> None:
        self._arrow.take_batch(batch)

    @property
    def _arrow(self) -> ArrowRecords:
        # Made at the first item and not in `setup`, which a subclass of an author may override.
        if self._records is None:
            self._records = ArrowRecords(self.record_type, self._rows_together(), self._take_table)
        return self._records


def _value_of(payload: Any) -> Any:
    """The type of what is written of an item: the value of a record, any other item as a whole."""
    return get_args(payload)[0] if get_origin(payload) is Record else payload


def _may_be_arrow(payload: Any) -> bool:
    """Whether items of a type may be Arrow record batches or tables, found without loading Arrow."""
    return not is_known(payload) or getattr(payload, "__module__", "").partition(".")[0] == "pyarrow"
