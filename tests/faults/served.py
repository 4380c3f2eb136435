"""Applications whose input comes from a broker: Kafka to Kafka, and files that messages of a queue name."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from pydantic import SecretStr

from apps.message_ingest.app import MessageIngest
from tests.faults.applications import Result, Tried, lines_in, write_lines
from tests.operators.kafka.copying import Copy
from tests.services.broker import running as running_kafka
from tests.services.rabbitmq import RabbitMQ

_services: dict[str, Any] = {}
"""The brokers that run, by the name of what they serve."""


@contextmanager
def _kafka_in(folder: Path) -> Iterator[None]:
    with running_kafka(folder) as _services["kafka"]:
        yield


@contextmanager
def _rabbitmq_in(folder: Path) -> Iterator[None]:
    with RabbitMQ(folder) as _services["rabbitmq"]:
        yield


def _of_trial(name: str) -> str:
    """A name that only the trial in the working directory uses."""
    return f"{name}-{Path.cwd().name}"


def _copy() -> Copy:
    return Copy(
        address=_services["kafka"].address, source=_of_trial("source"), target=_of_trial("target"), out="output"
    )


def _send_to_topic(chance: Random) -> None:
    broker, sent = _services["kafka"], 0
    for name, partitions in (("source", 3), ("target", 2)):
        broker.topic(partitions, name=_of_trial(name))
    for partition in range(3):
        count = chance.randint(20, 40)
        broker.produce(_of_trial("source"), range(sent, sent + count), partition)
        sent += count


def _copied(topic: str, partitions: int) -> list[str]:
    return sorted(
        value.decode() for values in _services["kafka"].committed(_of_trial(topic), partitions) for value in values
    )


def _send_paths(chance: Random) -> None:
    write_lines(chance, lambda number: f"line {number} {'x' * chance.randrange(30)}")
    paths = [*map(str, sorted(Path("input").absolute().iterdir())), str(Path("missing").absolute()), ""]
    _services["rabbitmq"].send(_of_trial("files"), paths)


def _ingested() -> Result:
    """The lines, the dead letters, and how many messages are left."""
    letters = [os.path.relpath(path, "dead-letters").partition("/")[0] for path in Path("dead-letters").rglob("part-*")]
    return sorted(lines_in("output")), sorted(letters), _services["rabbitmq"].left(_of_trial("files"))


SERVED = {
    "kafka_to_kafka": Tried(
        _copy,
        _send_to_topic,
        lambda: (_copied("source", 3), _copied("source", 3)),
        lambda: (_copied("target", 2), sorted(lines_in("output"))),
        service=_kafka_in,
    ),
    "message_ingest": Tried(
        lambda: MessageIngest(url=SecretStr(_services["rabbitmq"].url)),
        _send_paths,
        lambda: (sorted(lines_in("input")), ["no-files", "no-paths"], 0),
        _ingested,
        {
            "application.MessageIngest.prop.queue": lambda: _of_trial("files"),
            "operator.Splitter.prop.blockSize": 300,
            "operator.Block-reader.attr.PARTITIONER": "StatelessPartitioner:2",
        },
        service=_rabbitmq_in,
    ),
}
