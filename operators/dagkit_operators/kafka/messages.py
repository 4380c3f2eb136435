"""The payloads of Kafka: ranges of offsets, and messages, which wait as Arrow columns for their transaction."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import Field

from dagkit.ranges import OFFSET_INFINITY

if TYPE_CHECKING:
    import pyarrow as pa


Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class KafkaRange:
    """Offsets of one partition of a topic: from `start` up to, not including, `end`."""

    number: int
    """The ID of the range, which is unique among all ranges of a splitter."""
    topic: str
    partition: int
    start: int
    end: int
    """OFFSET_INFINITY if the range has no end."""
    uncommitted: Annotated[bool, Field(exclude_if=lambda uncommitted: not uncommitted)] = False
    """Whether messages of transactions that are aborted, or not committed yet, are read, too."""

    @property
    def source(self) -> str:
        """The topic and partition. The ledger records it."""
        return source_of(self.topic, self.partition)

    @property
    def source_size(self) -> int | None:
        """None: partitions grow."""
        return None

    def place(self, position: int | None) -> str:
        """The topic, the partition and an offset as text; for None, the range of offsets."""
        if position is not None:
            return place_of(self.topic, self.partition, position)
        end = "inf" if self.end == OFFSET_INFINITY else self.end
        return f"{self.topic}/{self.partition}, offsets [{self.start}, {end})"

    def part(self, start: int, end: int) -> "KafkaRange":
        """The range, reduced to some of its offsets."""
        return replace(self, start=start, end=end)


@dataclass(frozen=True, slots=True)
class KafkaMessage:
    """A message of a topic."""

    topic: str
    partition: int
    offset: int
    timestamp_millis: int
    """When it was created or appended, as the topic is configured, in milliseconds since 1970; -1 if unknown."""
    key: bytes | None
    value: bytes | None
    """The content; None in a compacted topic if the key was deleted."""
    headers: Headers = ()
    """Names and values, in their order. A name may recur."""

    @property
    def place(self) -> str:
        """The topic, the partition and the offset as text."""
        return place_of(self.topic, self.partition, self.offset)


def source_of(topic: str, partition: int) -> str:
    """The name of a partition in the ledger."""
    return f"kafka:{topic}/{partition}"


def place_of(topic: str, partition: int, offset: int) -> str:
    """A place in a topic, as all messages name it."""
    return f"{topic}/{partition}, offset {offset}"


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
    import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

    header = pa.struct([("name", pa.string()), ("value", pa.binary())])
    # Large, since the compiled functions address keys and values by 64 bits.
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
