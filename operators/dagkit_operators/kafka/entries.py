"""Messages that wait for their transaction: columns, and as bytes the stream format of Arrow."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from dagkit_operators.kafka.messages import Headers

if TYPE_CHECKING:  # compiling must not load Arrow
    import pyarrow as pa


class Outgoing(NamedTuple):
    """A message to be written."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_millis: int | None = None
    """None: the time at which it is sent."""


@cache
def schema() -> "pa.Schema":
    """The columns of messages: the fields of Outgoing. A message without headers has null."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    header = pa.struct([("name", pa.string()), ("value", pa.binary())])
    content = pa.large_binary()
    return pa.schema({"key": content, "value": content, "headers": pa.list_(header), "timestamp_millis": pa.int64()})


def columns_of(messages: Sequence[Outgoing]) -> "pa.RecordBatch":
    """Messages as columns."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    keys, values, headers, times = zip(*messages, strict=True)
    listed = [[{"name": name, "value": value} for name, value in each] or None for each in headers]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip((keys, values, listed, times), schema(), strict=True)],
        schema=schema(),
    )


def columns_without_headers(keys: Any, values: Any, times: Any) -> "pa.RecordBatch":
    """Columns of these keys, values and times: arrays, lists, or None if no message has any."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    def array(column: Any, kind: "pa.DataType") -> "pa.Array":
        if column is None:
            return pa.nulls(len(values), kind)
        return column.cast(kind) if isinstance(column, pa.Array) else pa.array(column, kind)

    columns = [array(column, field.type) for column, field in zip((keys, values, None, times), schema(), strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema())


class OpenEntry:
    """An entry to which messages are added."""

    def __init__(self) -> None:
        import pyarrow as pa  # noqa: PLC0415 - as above

        self._sink = pa.BufferOutputStream()
        self._stream = pa.ipc.new_stream(self._sink, schema())

    def add(self, columns: "pa.RecordBatch") -> None:
        """Copy messages into the entry."""
        self._stream.write_batch(columns)

    def content(self) -> "pa.Buffer":
        """The whole entry. Nothing is added after that."""
        self._stream.close()
        return self._sink.getvalue()


def columns_in(entry: Any) -> "Iterator[pa.RecordBatch]":
    """The messages of an entry."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    for batch in pa.ipc.open_stream(entry):
        yield batch if batch.schema.equals(schema()) else _completed(batch)


def _completed(batch: "pa.RecordBatch") -> "pa.RecordBatch":
    """The columns of an entry that an earlier version staged. It left out those of which no message had a value."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    kept = dict(zip(batch.schema.names, batch.columns, strict=True))
    kept["timestamp_millis"] = kept.pop("timestamp", None)
    columns = [
        pa.nulls(len(batch), field.type) if kept.get(field.name) is None else kept[field.name] for field in schema()
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema())


def messages_in(batch: "pa.RecordBatch") -> Iterator[Outgoing]:
    """The messages of columns, one by one."""
    for key, value, headers, time in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        yield Outgoing(key, value, tuple((pair["name"], pair["value"]) for pair in headers or ()), time)
