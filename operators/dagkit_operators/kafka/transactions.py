"""Windows as transactions of Kafka: each is written once, by one writer at a time."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dagkit import StagedWindow, Unavailable
from dagkit.errors import did_you_mean
from dagkit_operators.kafka.client import Failures, confluent, made, text_of
from dagkit_operators.kafka.entries import Outgoing, messages_in
from dagkit_operators.kafka.faults import KafkaRefused, TopicMissing, TransactionFenced, WriteRefused
from dagkit_operators.kafka.topics import PASSING, Topics, Unanswered
from dagkit_operators.kafka.windows import create_missing, last_window

ANSWER_SECONDS = 30.0
"""How long Kafka may take to begin or to end transactions."""
DEFAULTS: Mapping[str, Any] = {
    "delivery.report.only.error": True,
    "linger.ms": 5,
    "partitioner": "murmur2_random",  # as clients in Java choose partitions
    "queue.buffering.max.messages": 1_000_000,
}
_FENCED = frozenset(("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "TRANSACTION_COORDINATOR_FENCED"))
_ENDED = frozenset(("CONCURRENT_TRANSACTIONS", "_STATE", "INVALID_PRODUCER_ID_MAPPING", "_PURGE_QUEUE"))
"""Errors of a transaction whose state is unknown here: a new producer finds out."""


class TransactionalTopic:
    """A topic to which each window is written in one transaction, with its number in the topic of windows.

    The transactional ID is the name of the writer. So a new driver fences the producer of an older one, and Kafka ends
    the transaction that the older one left: it is committed or aborted before the number of the last window is read.
    """

    def __init__(self, settings: Mapping[str, Any], topic: str, windows_topic: str) -> None:
        self._settings = settings
        self._address = str(settings["bootstrap.servers"])
        self._topic = topic
        self._windows_topic = windows_topic
        self._failures = Failures()
        self._producer: Any = None
        self._writer = ""
        self._last = 0
        self._refused: str | None = None
        """What a broker answered to the first message that it refused in this transaction."""

    def prepare(self, writer: str) -> None:
        """Fence older producers of the writer, and find the last window that is in the topic."""
        self._writer = writer
        topics = Topics(self._settings)
        with self._answering():
            there = topics.partitions()
            if self._topic not in there:
                raise TopicMissing(
                    f"there is no topic {self._topic!r} at {self._address}",
                    did_you_mean(self._topic, there, "create it, or correct the property `topic`"),
                )
            create_missing(topics, self._windows_topic)
            self._producer = made(
                "Producer", {**DEFAULTS, **self._settings, "transactional.id": writer}, self._failures
            )
            self._producer.init_transactions(ANSWER_SECONDS)
            self._last = last_window(topics, self._windows_topic, writer, self._settings)

    def apply(self, window: StagedWindow) -> None:
        """Write a window, unless it is in the topic."""
        if window.window_id <= self._last:
            return
        self._refused = None
        with self._answering():
            self._producer.begin_transaction()
            for entry in window.entries():
                for message in messages_in(entry):
                    self._produce(message)
            self._queued(self._windows_topic, str(window.window_id).encode(), self._writer.encode(), partition=0)
            self._producer.commit_transaction()
        self._last = window.window_id

    def close(self) -> None:
        """Abort the transaction that may be open, so that readers need not wait for its timeout."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        producer.purge()
        try:
            producer.abort_transaction(1.0)
        except confluent().KafkaException as error:
            self._failures.note(error.args[0])  # there is none, or the next producer of the writer aborts it

    def _produce(self, message: Outgoing) -> None:
        more: dict[str, Any] = {}
        if message.headers:
            more["headers"] = list(message.headers)
        if message.timestamp_millis is not None:
            more["timestamp"] = message.timestamp_millis
        self._queued(self._topic, message.value, message.key, **more)

    def _queued(self, *message: Any, **more: Any) -> None:
        """Give a message to the producer, and wait while its queue is full."""
        while True:
            try:
                self._producer.produce(*message, on_delivery=self._note_refused, **more)
            except BufferError:
                self._producer.poll(0.1)
                self._failures.check(self._address)
            else:
                return

    def _note_refused(self, error: Any, message: Any) -> None:
        if error is not None and self._refused is None and error.name() not in PASSING:
            self._refused = f"{message.topic()}/{message.partition()}: {text_of(error)}"

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
                raise TransactionFenced(self._topic, self._writer) from failed
            self._failures.note(error)
            self._failures.check(self._address)
            if self._refused is not None:
                raise WriteRefused(f"a broker refuses a message: {self._refused}") from failed
            if error.retriable() or error.name() in PASSING or error.name() in _ENDED or error.txn_requires_abort():
                raise Unavailable(f"Kafka at {self._address} did not end a transaction: {text_of(error)}") from failed
            raise KafkaRefused(f"Kafka at {self._address} refuses a transaction: {text_of(error)}") from failed
