"""Messages that pass between librdkafka and columns, in compiled C and in Python: both give the same."""

import ctypes

import pyarrow.compute as pc
import pytest

from dagkit_operators import KafkaMessage, KafkaReader, KafkaSplitter, KafkaWriter, Map
from dagkit_operators.kafka import consumers, transactions
from dagkit_operators.kafka.client import confluent
from dagkit_operators.kafka.consumers import Consumers
from dagkit_operators.native import librdkafka
from dagkit_operators.native.compiled import KAFKA_LIBRARY, KAFKA_SOURCE, kafka_columns
from dagkit_operators.native.librdkafka import handle_of
from hatch_build import MISSING, can_compile, compile_library
from tests.engine.cast import Desk, chain
from tests.operators.kafka.topics_cast import copied, messages, transact
from tests.services.broker import as_bytes

pytestmark = pytest.mark.slow

CONTENTS = [("a", "1"), (None, "2"), ("c", None), ("", ""), (None, None), ("f", "6" * 300)]


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    """The functions of librdkafka and those of a library that is compiled from the present source."""
    if not can_compile():
        pytest.skip(MISSING)
    library = tmp_path_factory.mktemp("compiled") / KAFKA_LIBRARY.name
    assert compile_library(KAFKA_SOURCE, library) is None
    return librdkafka.Native(kafka_columns(library), ctypes.CDLL(confluent().cimpl.__file__))


@pytest.fixture(params=["compiled C", "Python"])
def way(request, monkeypatch):
    found = None if request.param == "Python" else request.getfixturevalue("functions")
    for module in (consumers, transactions):
        monkeypatch.setattr(module, "native", lambda: found)
    own = Consumers()
    monkeypatch.setattr("dagkit_operators.kafka.reader.CONSUMERS", own)
    yield request.param
    assert {kept._queue is None for some in own._kept.values() for kept in some} <= {request.param == "Python"}
    own.close()


@pytest.mark.gate(1)
@pytest.mark.usefixtures("way")
def test_keys_values_headers_and_times_are_copied(kafka, tmp_path):
    source, target = kafka.topic(), kafka.topic()
    kafka.produce(source, CONTENTS[:3], timestamp=5_000)
    kafka.produce(source, CONTENTS[3:], timestamp=6_000, headers=[("trace", b"x"), ("trace", None), ("é", b"")])
    kafka.produce(source, CONTENTS, timestamp=7_000)
    in_one_window = {"dt.attr.STREAMING_WINDOW_SIZE_MILLIS": 60_000}  # the end of a transaction takes an offset
    Desk(tmp_path / "copy", copied(kafka, source, target, reader={"batch_size": 4}), conf=in_one_window).run()
    headers = (("trace", b"x"), ("trace", None), ("é", b""))
    sent = [(5_000, one, ()) for one in CONTENTS[:3]]
    sent += [(6_000, one, headers) for one in CONTENTS[3:]]
    sent += [(7_000, one, ()) for one in CONTENTS]
    assert messages(kafka, target, tmp_path / "read") == [
        repr(KafkaMessage(target, 0, offset, time, as_bytes(key), as_bytes(value), all_headers))
        for offset, (time, (key, value), all_headers) in enumerate(sent)
    ]


@pytest.mark.usefixtures("way")
def test_messages_between_those_of_aborted_transactions_are_read(kafka, tmp_path):
    source, target = kafka.topic(), kafka.topic()
    transact(kafka, source, b"1")
    transact(kafka, source, b"2", commits=False)
    kafka.produce(source, ["3", "4"])
    kafka.settle(source)
    Desk(tmp_path, copied(kafka, source, target)).run()
    assert kafka.committed(target) == [[b"1", b"3", b"4"]]


@pytest.mark.usefixtures("way")
def test_contents_are_changed_as_a_column(kafka, tmp_path):
    source, target = kafka.topic(), kafka.topic()
    kafka.produce(source, [("a", "12345"), ("b", None), ("c", "")])
    at = {"bootstrap_servers": kafka.address}
    shorten = Map(batch=lambda contents: pc.binary_slice(contents.array().cast("large_binary"), 0, 3), on="value")
    split, write = KafkaSplitter(topics=[source], **at), KafkaWriter(topic=target, **at)
    Desk(tmp_path, chain(splitter=split, reader=KafkaReader(**at), shorten=shorten, writer=write)).run()
    assert kafka.committed(target) == [[b"123", None, b""]]


@pytest.mark.gate(1)
@pytest.mark.usefixtures("way")
def test_a_producer_without_room_takes_the_rest_later(kafka, tmp_path, monkeypatch):
    source, target = kafka.topic(), kafka.topic()
    kafka.produce(source, range(500))
    little = {**transactions.DEFAULTS, "queue.buffering.max.messages": 7, "linger.ms": 0}
    monkeypatch.setattr(transactions, "DEFAULTS", little)
    Desk(tmp_path, copied(kafka, source, target)).run()
    assert kafka.committed(target) == [[b"%d" % number for number in range(500)]]


def test_a_handle_is_found_in_clients_only():
    """If this fails, confluent-kafka keeps its handle elsewhere, and messages pass through Python."""
    clients = confluent()
    producer, consumer = clients.Producer({}), clients.Consumer({"group.id": "x"})
    assert handle_of(producer) not in (None, handle_of(consumer))
    assert handle_of(consumer) is not None
    consumer.close()
    assert [handle_of(other) for other in ([1, 2, 3], "#producer-", {})] == [None] * 3
