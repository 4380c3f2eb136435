"""A real Kafka broker for tests: `kafka.sh` runs it, and it ends with the process that started it."""

import os
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, Self

import pytest

from dagkit_operators.kafka.client import confluent

SCRIPT = Path(__file__).with_name("kafka.sh")
MISSING = 69
"""The script's exit code if Java or Maven is not installed."""

QUIET = {"log_level": 0}
"""Settings of clients that may live longer than their broker: what they log would follow the summary of the tests."""

_numbers = count()

Sent = tuple[bytes | None, bytes]
"""The key and the value of a message."""


class Broker:
    """A broker with one node, whose data are kept when it is killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports: Sequence[str] = ()
        self._process: subprocess.Popen[str] | None = None
        self._broker = 0

    def start(self) -> Self:
        """Run the broker on its ports, and wait until it answers. Skip the test if Java or Maven is missing."""
        command = [str(SCRIPT), "run", str(self._folder), *self._ports]
        process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        ready = process.stdout.readline().split()
        if not ready:
            _, problem = process.communicate()
            if process.returncode == MISSING:
                pytest.skip(f"{problem.strip()}; then: {SCRIPT} fetch")
            raise AssertionError(problem)
        self._process, self._ports, self._broker = process, ready[1:4], int(ready[4])
        return self

    def kill(self) -> None:
        """Kill the broker, as `kill -9` does."""
        assert self._process is not None
        os.kill(self._broker, signal.SIGKILL)
        self._process.communicate()
        self._process = None

    def stop(self) -> None:
        if self._process is not None:
            self._process.communicate()
            self._process = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._ports[0]}"

    @property
    def login_address(self) -> str:
        """The address of the listener that asks for a user and a password."""
        return f"127.0.0.1:{self._ports[1]}"

    # ---- topics

    @cached_property
    def admin(self) -> Any:
        return confluent().admin.AdminClient({"bootstrap.servers": self.address, **QUIET})

    def topic(self, partitions: int = 1, *, name: str | None = None, **config: str) -> str:
        """Create a topic, and return its name."""
        name = name or f"topic-{next(_numbers)}-{os.getpid()}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        done(self.admin.create_topics([confluent().admin.NewTopic(name, partitions, 1, config=settings)]))
        return name

    def configure(self, topic: str, **config: str) -> None:
        """Change settings of a topic."""
        admin = confluent().admin
        entries = [
            admin.ConfigEntry(key.replace("_", "."), value, incremental_operation=admin.AlterConfigOpType.SET)
            for key, value in config.items()
        ]
        resource = admin.ConfigResource(admin.ResourceType.TOPIC, topic, incremental_configs=entries)
        done(self.admin.incremental_alter_configs([resource]))

    def add_partitions(self, topic: str, total: int) -> None:
        done(self.admin.create_partitions([confluent().admin.NewPartitions(topic, total)]))

    def delete(self, topic: str) -> None:
        done(self.admin.delete_topics([topic], operation_timeout=10))

    def remove_before(self, topic: str, partition: int, offset: int) -> None:
        """Remove the messages before an offset, as retention does."""
        done(self.admin.delete_records([confluent().TopicPartition(topic, partition, offset)]))

    # ---- messages

    def produce(self, topic: str, values: Iterable[Any], partition: int = 0, **properties: Any) -> None:
        """Append values; a pair is a key and a value."""
        producer = self.producer()
        for value in values:
            key, content = value if isinstance(value, tuple) else (None, value)
            producer.produce(topic, as_bytes(content), as_bytes(key), partition=partition, **properties)
        assert producer.flush(60) == 0

    def producer(self, **settings: Any) -> Any:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        return confluent().Producer({"bootstrap.servers": self.address, "linger.ms": 5, **QUIET, **named})

    @contextmanager
    def transaction(self, transactional_id: str) -> Iterator[Any]:
        """A producer in a transaction, which is committed at the end."""
        producer = self.producer(transactional_id=transactional_id)
        producer.init_transactions()
        producer.begin_transaction()
        yield producer
        producer.commit_transaction()

    def committed(self, topic: str, partitions: int = 1) -> list[list[bytes]]:
        """The values of the committed messages of each partition."""
        settings = {"group.id": "test", "enable.partition.eof": True, "isolation.level": "read_committed"}
        consumer = confluent().Consumer(
            {"bootstrap.servers": self.address, "fetch.wait.max.ms": 20, **QUIET, **settings}
        )
        found: list[list[bytes]] = [[] for _ in range(partitions)]
        consumer.assign([confluent().TopicPartition(topic, number, 0) for number in range(partitions)])
        ended: set[int] = set()
        while len(ended) < partitions:
            message = consumer.poll(60)
            assert message is not None, "the broker answers"
            if message.error() is None:
                found[message.partition()].append(message.value())
            else:
                assert message.error().name() == "_PARTITION_EOF", message.error()
                ended.add(message.partition())
        consumer.close()
        return found


def as_bytes(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else str(value).encode()


def done(futures: Any) -> None:
    """Wait for the answers of a request."""
    for future in futures.values():
        future.result(60)


@contextmanager
def running(folder: Path) -> Iterator[Broker]:
    """A broker that is stopped at the end."""
    pytest.importorskip("confluent_kafka", reason="run: pip install 'dagkit[kafka]'")
    broker = Broker(folder)
    try:
        yield broker.start()
    finally:
        broker.stop()
