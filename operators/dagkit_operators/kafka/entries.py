"""Messages that wait for their transaction, as bytes: columns in the stream format of Arrow."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from dagkit_operators.kafka.messages import Headers


class Outgoing(NamedTuple):
    """A message to be written."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_millis: int | None = None
    """None: the time at which it is sent."""


def entry_of(messages: Sequence[Outgoing]) -> bytes:
    """Messages as one entry. Columns of which no message has a value are left out."""
    import pyarrow as pa  # noqa: PLC0415 - compiling must not load Arrow

    keys, values, headers, times = zip(*messages, strict=True)
    columns = {"value": pa.array(values, pa.large_binary())}
    if any(key is not None for key in keys):
        columns["key"] = pa.array(keys, pa.large_binary())
    if any(headers):
        pair = pa.struct([("name", pa.string()), ("value", pa.binary())])
        listed = [[{"name": name, "value": value} for name, value in each] for each in headers]
        columns["headers"] = pa.array(listed, pa.list_(pair))
    if any(time is not None for time in times):
        columns["timestamp"] = pa.array(times, pa.int64())
    batch = pa.record_batch(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def messages_in(entry: bytes) -> Iterator[Outgoing]:
    """The messages of an entry."""
    import pyarrow as pa  # noqa: PLC0415 - compiling must not load Arrow

    batch = pa.ipc.open_stream(entry).read_next_batch()
    none: list[Any] = [None] * batch.num_rows

    def column(name: str) -> list[Any]:
        return batch.column(name).to_pylist() if name in batch.schema.names else none

    for key, value, headers, time in zip(
        column("key"), column("value"), column("headers"), column("timestamp"), strict=True
    ):
        listed = tuple((pair["name"], pair["value"]) for pair in headers or ())
        yield Outgoing(key, value, listed, time)
