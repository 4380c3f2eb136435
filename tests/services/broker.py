"""A real Kafka broker for tests: `kafka.sh` runs it, and it ends with the process that started it."""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dagkit_operators.kafka.client import confluent
from dagkit_operators.kafka.topics import Partition, Topics, Unanswered
from tests.patience import within
from tests.services.scripted import ScriptedServer

QUIET = {"log_level": 0}
"""Settings of clients that may live longer than their broker: what they log would follow the summary of the tests."""

_numbers = count()

Sent = tuple[bytes | None, bytes]
"""The key and the value of a message."""


class Broker(ScriptedServer):
    """A broker with one node."""

    script = Path(__file__).with_name("kafka.sh")
    is_fetched = True

    @property
    def login_address(self) -> str:
        """The address of the listener that asks for a user and a password."""
        return f"127.0.0.1:{self._ports[1]}"

    @property
    def tls_address(self) -> str:
        """The address of the listener with TLS, which exists if the folder has a certificate."""
        return f"127.0.0.1:{self._ports[3]}"

    @property
    def tls_login_address(self) -> str:
        """The address of the listener with TLS that asks for a user and a password."""
        return f"127.0.0.1:{self._ports[4]}"

    # ---- topics

    @cached_property
    def admin(self) -> Any:
        return confluent().admin.AdminClient({"bootstrap.servers": self.address, **QUIET})

    def topic(self, partitions: int = 1, *, name: str | None = None, **config: str) -> str:
        name = name or f"topic-{next(_numbers)}-{os.getpid()}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        done(self.admin.create_topics([confluent().admin.NewTopic(name, partitions, 1, config=settings)]))
        return name

    def configure(self, topic: str, **config: str) -> None:
        admin = confluent().admin
        entries = [
            admin.ConfigEntry(key.replace("_", "."), value, incremental_operation=admin.AlterConfigOpType.SET)
            for key, value in config.items()
        ]
        resource = admin.ConfigResource(admin.ResourceType.TOPIC, topic, incremental_configs=entries)
        done(self.admin.incremental_alter_configs([resource]))

    def add_partitions(self, topic: str, total: int) -> None:
        """Add partitions, and wait until clients see them: the broker answers before it knows them itself."""
        done(self.admin.create_partitions([confluent().admin.NewPartitions(topic, total)]))
        until = time.monotonic() + within(60)
        while len(self.admin.list_topics(topic, timeout=within(60)).topics[topic].partitions) < total:
            assert time.monotonic() < until, f"topic {topic} does not get {total} partitions"

    def delete(self, topic: str, *, missing_ok: bool = False) -> None:
        if missing_ok and topic not in self.admin.list_topics(timeout=within(60)).topics:
            return
        done(self.admin.delete_topics([topic], operation_timeout=within(10)))

    def remove_before(self, topic: str, partition: int, offset: int) -> None:
        """Remove the messages before an offset, as retention does."""
        done(self.admin.delete_records([confluent().TopicPartition(topic, partition, offset)]))

    def forbid(self, topic: str) -> None:
        """Let the user with a password do nothing with a topic."""
        done(self.admin.create_acls([confluent().admin.AclBinding(*_forbidding(topic))]))

    def allow(self, topic: str) -> None:
        """Let the user with a password do everything with a topic again."""
        done(self.admin.delete_acls([confluent().admin.AclBindingFilter(*_forbidding(topic))]))

    def allow_reading(self, topic: str) -> None:
        """Let the user with a password read messages of a topic, and do nothing else with it."""
        admin = confluent().admin
        rule = (*_forbidding(topic)[:-2], admin.AclOperation.READ, admin.AclPermissionType.ALLOW)
        done(self.admin.create_acls([admin.AclBinding(*rule)]))

    # ---- messages

    def produce(self, topic: str, values: Iterable[Any], partition: int = 0, **properties: Any) -> None:
        producer, lost = self.producer(), list[Any]()
        for value in values:
            key, content = value if isinstance(value, tuple) else (None, value)
            properties["on_delivery"] = lambda error, _: lost.append(error) if error is not None else None
            producer.produce(topic, as_bytes(content), as_bytes(key), partition=partition, **properties)
        assert producer.flush(within(60)) == 0
        assert lost == []

    def producer(self, **settings: Any) -> Any:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        return confluent().Producer({"bootstrap.servers": self.address, "linger.ms": 5, **QUIET, **named})

    @contextmanager
    def transaction(self, transactional_id: str) -> Iterator[Any]:
        """A producer in a transaction, which is committed at the end."""
        producer = self.producer(transactional_id=transactional_id)
        producer.init_transactions(within(60))
        producer.begin_transaction()
        yield producer
        producer.commit_transaction(within(60))

    def settle(self, topic: str, partitions: int = 1) -> None:
        """Wait until consumers see the ends of all transactions: a broker answers a commit before it records it."""
        each = [Partition(topic, number) for number in range(partitions)]
        topics, until = Topics({"bootstrap.servers": self.address, **QUIET}), time.monotonic() + within(60)
        while True:
            with suppress(Unanswered):
                topics.partitions()
                if topics.ends(each) == topics.ends(each, uncommitted=True):
                    return
            assert time.monotonic() < until, f"a transaction in topic {topic} does not end"
            time.sleep(0.005)  # sleeps: between two questions to the broker

    def committed(self, topic: str, partitions: int = 1) -> list[list[bytes]]:
        """The values of the committed messages of each partition, in which no transaction may be open."""
        self.settle(topic, partitions)
        settings = {"group.id": "test", "enable.partition.eof": True, "isolation.level": "read_committed"}
        consumer = confluent().Consumer(
            {"bootstrap.servers": self.address, "fetch.wait.max.ms": 20, **QUIET, **settings}
        )
        found: list[list[bytes]] = [[] for _ in range(partitions)]
        consumer.assign([confluent().TopicPartition(topic, number, 0) for number in range(partitions)])
        ended: set[int] = set()
        while len(ended) < partitions:
            message = consumer.poll(within(60))
            assert message is not None, "the broker answers"
            if message.error() is None:
                found[message.partition()].append(message.value())
            else:
                assert message.error().name() == "_PARTITION_EOF", message.error()
                ended.add(message.partition())
        consumer.close()
        return found


def _forbidding(topic: str) -> tuple[Any, ...]:
    """The fields of a rule that takes all rights on a topic from the user with a password."""
    admin = confluent().admin
    literal, every, deny = admin.ResourcePatternType.LITERAL, admin.AclOperation.ALL, admin.AclPermissionType.DENY
    return admin.ResourceType.TOPIC, topic, literal, "User:alice", "*", every, deny


def as_bytes(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else str(value).encode()


def done(futures: Any) -> None:
    for future in futures.values():
        future.result(within(60))


@contextmanager
def running(folder: Path) -> Iterator[Broker]:
    """A broker that is stopped at the end."""
    pytest.importorskip("confluent_kafka", reason="run: pip install 'dagkit[kafka]'")
    with Broker(folder) as broker:
        yield broker
