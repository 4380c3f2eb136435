"""Windows as transactions of Kafka: each is written once, by one writer at a time."""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from dagkit import StagedWindow, Unavailable
from dagkit.errors import RunFailure, did_you_mean
from dagkit.ground.clock import patient
from dagkit_operators.kafka import consumers
from dagkit_operators.kafka.client import (
    Failures,
    confluent,
    create_client,
    kafka_refused,
    text_of,
    topic_missing,
    transaction_fenced,
)
from dagkit_operators.kafka.messages import Outgoing, columns_in, messages_in
from dagkit_operators.kafka.topics import PASSING, Partition, Topics, Unanswered
from dagkit_operators.native.librdkafka import QUEUE_IS_FULL, TopicSender, handle_of, native

if TYPE_CHECKING:
    import pyarrow as pa


READ_SECONDS = 30.0
"""How long reading the topic may take without an answer."""
# Compaction keeps the last window of each writer. It leaves out the segment that is written, so segments are small.
SETTINGS = {"cleanup.policy": "compact", "segment.bytes": "16777216", "min.cleanable.dirty.ratio": "0.1"}


def last_window(topics: Topics, topic: str, writer: str, settings: Mapping[str, Any]) -> int:
    """The last window of a writer whose transaction is committed; 0 if there is none.

    Call it after the transactions of the writer are ended: a consumer does not see past a transaction that is open.
    Such a transaction of another writer, which may be the last one, is waited for.
    """
    only = Partition(topic, 0)
    end, last = topics.ends([only], uncommitted=True)[only], 0
    start = topics.first([only])[only]
    failures = Failures()
    library = confluent()
    consumer = create_client(
        "Consumer", {**consumers.DEFAULTS, **settings, "isolation.level": "read_committed"}, failures
    )
    try:
        consumer.assign([library.TopicPartition(topic, 0, start)])
        until = time.monotonic() + patient(READ_SECONDS)
        while start < end:
            message = consumer.poll(max(0.0, until - time.monotonic()))
            if message is None or (message.error() is not None and message.error().name() != "_PARTITION_EOF"):
                raise Unavailable(f"the windows in topic {topic} cannot be read: {failures.last or 'no answer'}")
            # The end of the partition. The offsets before it that brought no message are ends of transactions.
            if message.error() is not None:
                start = message.offset()
                continue
            start, until = message.offset() + 1, time.monotonic() + patient(READ_SECONDS)
            if message.key() == writer.encode():
                last = int(message.value())
    finally:
        consumer.close()
    return last


DEFAULT_TIMEOUT_MILLIS = 60_000
"""How long a transaction may be open by default."""
ANSWER_SECONDS = 30.0
"""How long Kafka may take to begin or to end transactions."""
ROOM_SECONDS = 0.005
"""How long to wait for room in the producer's queue, before it is tried again."""
DEFAULTS: Mapping[str, Any] = {
    # A message that a broker refuses fails its transaction, so no message needs a report of its own.
    "delivery.report.only.error": True,
    "linger.ms": 5,
    # As clients in Java choose partitions.
    "partitioner": "murmur2_random",
    # Several batches for each broker. A million messages take 340 MB.
    "queue.buffering.max.messages": 100_000,
}
_FENCED = frozenset(("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "TRANSACTION_COORDINATOR_FENCED"))
_ENDED = frozenset(
    (
        "CONCURRENT_TRANSACTIONS",
        "DUPLICATE_SEQUENCE_NUMBER",
        "INVALID_PRODUCER_ID_MAPPING",
        "INVALID_TXN_STATE",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "TRANSACTION_ABORTABLE",
        "UNKNOWN_PRODUCER_ID",
        "_PURGE_INFLIGHT",
        "_PURGE_QUEUE",
        "_STATE",
    )
)
"""Errors of a transaction whose state is unknown here: a new producer finds out."""


class TransactionalTopic:
    """A topic to which each window is written in one transaction, with its number in the topic of windows.

    The transactional ID is the name of the writer, after a prefix. So a new driver fences the producer of an older one,
    and Kafka ends the transaction that the older one left: it is committed or aborted before the number of the last
    window is read.
    """

    def __init__(self, settings: Mapping[str, Any], topic: str, windows_topic: str, id_prefix: str = "") -> None:
        self._settings = settings
        self._address = str(settings["bootstrap.servers"])
        self._topic = topic
        self._windows_topic = windows_topic
        self._id_prefix = id_prefix
        self._failures = Failures()
        self._producer: Any = None
        self._sender: TopicSender | None = None
        """Sends columns; None without compiled C."""
        self._writer = ""
        self._last = 0
        # Before the first transaction, no timeout explains that the cluster refuses the producer.
        self._began = math.inf
        """When the last transaction began."""

    def prepare(self, writer: str) -> None:
        """Fence older producers of the writer, and find the last window that is in the topic."""
        self._writer = writer
        topics = Topics(self._settings)
        with self._answering():
            there = topics.partitions()
            if self._topic not in there:
                raise topic_missing(
                    f"there is no topic {self._topic!r} at {self._address}",
                    did_you_mean(self._topic, there, "create it, or correct the property `topic`"),
                )
            if self._windows_topic not in there:
                topics.create(self._windows_topic, SETTINGS)
            identified = {"transactional.id": f"{self._id_prefix}{writer}"}
            self._producer = create_client("Producer", {**DEFAULTS, **self._settings, **identified}, self._failures)
            # Here Kafka fences an older producer of this writer, and commits or aborts the transaction that it left.
            # Only after that the last window is known.
            self._producer.init_transactions(patient(ANSWER_SECONDS))
            functions, handle = native(), handle_of(self._producer)
            if functions is not None and handle is not None:
                self._sender = TopicSender(functions, handle, self._topic)
            self._last = last_window(topics, self._windows_topic, writer, self._settings)

    def apply(self, window: StagedWindow) -> None:
        """Write a window, unless it is in the topic."""
        if window.window_id <= self._last:
            return
        self._began = time.monotonic()
        with self._answering():
            self._producer.begin_transaction()
            for entry in window.entries():
                for columns in columns_in(entry):
                    self._send(columns)
            # In the same transaction, so that the number is there exactly if the messages are. It is no offset of a
            # consumer group: brokers remove those of a group without members after a week.
            self._enqueue(self._windows_topic, str(window.window_id).encode(), self._writer.encode(), partition=0)
            self._producer.commit_transaction()
        self._last = window.window_id

    def close(self) -> None:
        """Abort the transaction that may be open, so that readers need not wait for its timeout."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        if self._sender is not None:
            self._sender.close()
            self._sender = None
        producer.purge()
        # None is open, or the next producer of the writer aborts it.
        with suppress(confluent().KafkaException):
            producer.abort_transaction(1.0)

    def _send(self, columns: "pa.RecordBatch") -> None:
        """Give messages to the producer, and wait while its queue is full."""
        keys, values, headers, times = columns.columns
        # The compiled function sends no headers.
        if self._sender is None or headers.null_count < len(headers):
            for message in messages_in(columns):
                self._produce(message)
            return
        reached = 0
        while reached < len(columns):
            reached, error = self._sender.send(reached, keys, values, times)
            if error == QUEUE_IS_FULL:
                self._wait_for_room()
            elif error:
                raise confluent().KafkaException(confluent().KafkaError(error))
        # Errors of connections arrive only with a poll.
        self._producer.poll(0)

    def _wait_for_room(self) -> None:
        # Nothing that makes room ends a poll earlier, so it is short.
        self._producer.poll(ROOM_SECONDS)
        self._failures.check(self._address)

    def _produce(self, message: Outgoing) -> None:
        more: dict[str, Any] = {}
        if message.headers:
            more["headers"] = list(message.headers)
        if message.timestamp_millis is not None:
            more["timestamp"] = message.timestamp_millis
        self._enqueue(self._topic, message.value, message.key, **more)

    def _enqueue(self, *message: Any, **more: Any) -> None:
        """Give a message to the producer, and wait while its queue is full."""
        while True:
            try:
                self._producer.produce(*message, **more)
            except BufferError:
                self._wait_for_room()
            else:
                return

    def _fenced(self) -> RunFailure:
        """Why the cluster refuses the transaction."""
        # The error is the same after a timeout and after a new producer of the writer: the time decides between them.
        millis = int(self._settings.get("transaction.timeout.ms", DEFAULT_TIMEOUT_MILLIS))
        if (time.monotonic() - self._began) * 1000 >= millis:
            return transaction_fenced(
                f"a transaction with messages for topic {self._topic} was open for longer than transaction.timeout.ms="
                f"{millis}, and the cluster aborted it: nothing of its window is in the topic, and nothing is lost",
                "set `transaction.timeout.ms` in `settings` to more than the messages of a window take, then launch "
                "again",
            )
        return transaction_fenced(
            f"another launch writes to topic {self._topic} as {self._writer}, and fenced this one: this launch wrote "
            "nothing since",
            "let one launch of an application run at a time; a new launch continues after the last window of both",
        )

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Raise what the errors of the client mean."""
        try:
            yield
        except Unanswered as failure:
            raise Unavailable(f"Kafka at {self._address} does not answer: {failure}") from failure
        except confluent().KafkaException as failed:
            error = failed.args[0]
            if error.name() in _FENCED:
                raise self._fenced() from failed
            if error.name() == "TOPIC_AUTHORIZATION_FAILED":
                topics = f"{self._topic} and {self._windows_topic}"
                raise kafka_refused(
                    f"Kafka at {self._address} does not let the client write to {topics}: {text_of(error)}"
                ) from failed
            self._failures.note(error)
            self._failures.check(self._address)
            if error.retriable() or error.name() in PASSING or error.name() in _ENDED:
                raise Unavailable(f"Kafka at {self._address} did not end a transaction: {text_of(error)}") from failed
            if error.txn_requires_abort():
                raise RunFailure(
                    f"a broker refuses a message: {text_of(error)}",
                    "nothing of the window is in the topic, and nothing is lost: change the topic, then launch again",
                    code="write-refused",
                ) from failed
            raise kafka_refused(f"Kafka at {self._address} refuses a transaction: {text_of(error)}") from failed
