"""Items as Arrow tables, for operators that write columns."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dagkit import Batch
from dagkit.errors import clipped
from dagkit_operators.formats.record_types import arrow_type, checked_fields_of, fields_of
from dagkit_operators.formats.rows import Rows
from dagkit_operators.values.processed import processed_column, processed_value

if TYPE_CHECKING:
    import pyarrow as pa


def check_columns(record_type: type | None) -> type | None:
    """Return the record type. Raise ValueError if it has no fields, or one whose type no column holds."""
    for name, field in checked_fields_of(record_type).items():
        if arrow_type(field.hint) is None:
            raise ValueError(f"the field {name} has a type without an Arrow column: {field.hint!r}")
    return record_type


def schema_of(record_type: type) -> "pa.Schema":
    """The columns of a record type."""
    import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

    fields = fields_of(record_type).items()
    return pa.schema([pa.field(name, arrow_type(field.hint), field.is_optional) for name, field in fields])


class ArrowRecords:
    """Turns records into tables. Record batches and tables of Arrow pass as they are."""

    def __init__(self, record_type: type | None, rows: int, add: "Callable[[pa.Table], None]") -> None:
        self._record_type = record_type
        self._rows = rows
        """The most records that it gathers."""
        self._add = add
        """Called with each table."""
        self._values: list[Any] = []
        """Records that are in no table yet."""

    def take(self, item: Any) -> None:
        self._take(processed_value(item, None))

    def take_batch(self, batch: Batch[Any]) -> None:
        column = processed_column(batch, None)
        if isinstance(column, Rows) and self._record_type is not None:
            import pyarrow as pa  # noqa: PLC0415 - as above

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
            columns = [
                pa.array([_field(value, field.name) for value in values], type=field.type, from_pandas=False)
                for field in schema
            ]
            self._add(pa.Table.from_arrays(columns, schema=schema))

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
        self._values.append(value)
        if len(self._values) >= self._rows:
            self.flush()


def _field(record: Any, name: str) -> Any:
    return record[name] if isinstance(record, dict) else getattr(record, name)
