"""The broker of the benchmark: topics with messages, and what arrives in others."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # it exports it

PARTITIONS = 4
VALUE_BYTES = 100
READ = {"group.id": "bench", "isolation.level": "read_committed", "fetch.wait.max.ms": 5}


class Cluster:
    """Topics of a broker."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._admin = AdminClient({"bootstrap.servers": address})

    def make(self, topic: str) -> str:
        """Create a topic."""
        for created in self._admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
            created.result()
        return topic

    def remove(self, topic: str) -> None:
        for removed in self._admin.delete_topics([topic]).values():
            removed.result()

    def fill(self, topic: str, messages: int) -> None:
        """Send messages with a key of 11 bytes to all partitions in turn."""
        producer = Producer({"bootstrap.servers": self.address, "linger.ms": 20, "batch.size": 1 << 19})
        for number in range(messages):
            while True:
                try:
                    value = b"%012d" % number + b"x" * (VALUE_BYTES - 12)
                    producer.produce(topic, value, b"key-%07d" % number, partition=number % PARTITIONS)
                    break
                except BufferError:
                    producer.poll(0.05)
        producer.flush()

    def check(self, topic: str, messages: int) -> None:
        """Fail unless the committed messages of a topic are those of the source, each once."""
        seen = bytearray(messages)
        with self._reading(topic) as consumer:
            left = messages
            while left:
                found = [message for message in consumer.consume(10_000, 1.0) if message.error() is None]
                assert found, f"{left} of {messages} messages are not in the topic"
                for message in found:
                    number = int(message.value()[:12])
                    assert message.key() == b"key-%07d" % number, f"message {number} has another key"
                    assert not seen[number], f"message {number} is there twice"
                    seen[number] = 1
                left -= len(found)

    @contextmanager
    def _reading(self, topic: str) -> Iterator[Any]:
        consumer = Consumer({"bootstrap.servers": self.address, **READ})
        consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        try:
            yield consumer
        finally:
            consumer.close()

    def latencies(
        self, source: str, target: str, *, every: float, seconds: float, said: Callable[[], None]
    ) -> list[float]:
        """Send a message every so often. Return the milliseconds until each is visible in the other topic.

        The time begins when the first message has arrived and the contestant is warm, and `said` is called at its end.
        """
        ended = threading.Event()
        sender = threading.Thread(target=self._send, args=(source, every, ended), daemon=True)
        arrived: list[float] = []
        with self._reading(target) as consumer:
            sender.start()
            since: float | None = None
            while since is None or time.monotonic() - since < 2 * seconds:
                message = consumer.poll(0.5)
                if message is None or message.error() is not None:
                    continue
                now = time.monotonic()
                since = now if since is None else since
                if now - since > seconds:  # the first half warms up
                    arrived.append((now - float(message.value())) * 1000)
            ended.set()
            sender.join()
        said()
        return arrived

    def _send(self, topic: str, every: float, ended: threading.Event) -> None:
        producer = Producer({"bootstrap.servers": self.address, "linger.ms": 0})
        number = 0
        while not ended.wait(every):
            producer.produce(topic, b"%.6f" % time.monotonic(), partition=number % PARTITIONS)
            producer.poll(0)
            number += 1
        producer.flush()
