"""Entries that wait for their transaction, also those that an earlier version staged."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pytest

from dagkit.errors import RunFailure
from dagkit_operators.kafka.messages import OpenEntry, Outgoing, columns_in, columns_of, messages_in
from dagkit_operators.kafka.topics import Partition, Topics, Unanswered
from dagkit_operators.kafka.transactions import TransactionalTopic
from tests.services.broker import QUIET

MESSAGES = [
    Outgoing(b"a", b"1", (("trace", b"x"), ("trace", None)), 5_000),
    Outgoing(None, b"2", (), None),
    Outgoing(b"c", None, (), 7_000),
    Outgoing(b"", b"", (), 8_000),
]


def staged_before(messages: list[Outgoing]) -> bytes:
    """An entry as it was staged before all columns were written: those without a value are missing."""
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
    return sink.getvalue().to_pybytes()


def staged_now(messages: list[Outgoing]) -> bytes:
    entry = OpenEntry()
    for batch in filter(None, (messages[:1], messages[1:])):
        entry.add(columns_of(batch))
    return entry.content().to_pybytes()


@pytest.mark.parametrize("staged", [staged_now, staged_before])
@pytest.mark.parametrize(
    "messages", [MESSAGES, MESSAGES[1:2], MESSAGES[2:3]], ids=["all columns", "a value", "no value"]
)
def test_an_entry_has_the_messages_that_were_staged(staged, messages):
    found = [message for columns in columns_in(staged(messages)) for message in messages_in(columns)]
    assert found == messages


@dataclass
class Window:
    """A committed window with one entry."""

    window_id: int
    entry: bytes

    def entries(self) -> Iterator[bytes]:
        yield self.entry


@dataclass
class Slow(Window):
    """A window whose second entry comes after the cluster has aborted its transaction."""

    cluster: Topics
    only: Partition

    def entries(self) -> Iterator[bytes]:
        yield self.entry
        while not (end := self._end(uncommitted=True)):
            pass
        while self._end() < end:
            pass
        yield self.entry

    def _end(self, *, uncommitted: bool = False) -> int:
        """Where the partition ends; 0 if the cluster does not answer in time."""
        try:
            return self.cluster.ends([self.only], uncommitted=uncommitted)[self.only]
        except Unanswered:
            return 0


def prepared(topic, settings):
    target = TransactionalTopic(settings, topic, "dagkit-windows")
    target.prepare(f"{topic}/writer")
    return target


@pytest.mark.slow
def test_a_transaction_that_is_open_for_too_long_is_reported_and_written_once_by_the_next_launch(kafka):
    topic, at = kafka.topic(), {**QUIET, "bootstrap.servers": kafka.address}
    entry = staged_now([Outgoing(None, b"1")])
    slow = prepared(topic, {**at, "transaction.timeout.ms": 1000})
    with pytest.raises(RunFailure, match=r"was open for longer than transaction\.timeout\.ms=1000") as raised:
        slow.apply(Slow(1, entry, Topics(at), Partition(topic, 0)))
    assert "set `transaction.timeout.ms`" in raised.value.help
    slow.close()
    next_launch = prepared(topic, at)
    next_launch.apply(Window(1, entry))
    next_launch.close()
    assert kafka.committed(topic) == [[b"1"]]


@pytest.mark.slow
def test_a_window_that_an_earlier_version_staged_is_delivered(kafka):
    topic = kafka.topic()
    target = prepared(topic, {**QUIET, "bootstrap.servers": kafka.address})
    target.apply(Window(1, staged_before([Outgoing(None, b"1"), Outgoing(None, b"2")])))
    target.apply(Window(2, staged_before([Outgoing(b"a", b"3", (("h", b"x"),), 5_000)])))
    target.close()
    assert kafka.committed(topic) == [[b"1", b"2", b"3"]]
