"""The types of the messages of a topic, by a look at the first of them."""

import importlib
import json
import socket
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from dagkit.cli.making.origin import Origin
from dagkit.cli.making.record_classes import Classes
from dagkit.cli.terminal.output import WrongUsage
from dagkit.errors import did_you_mean, printable
from dagkit.ground.clock import patient

_MESSAGES, _SECONDS, _MOST_OTHERS = 1000, 3.0, 0.1
"""How many messages are looked at, how long a broker may take, and the part of them that need be no JSON object."""
_TEXT_OF = '''

def text_of(message: KafkaMessage) -> str:
    """The value of a message as text. A message for which this raises ValueError is rejected."""
    return (message.value or b"").decode()
'''
_ROW_OF = '''

def row_of(message: KafkaMessage) -> {row}:
    """The value of a message as a record. A message for which this raises ValueError is rejected."""
    return ROWS.validate_json(message.value or b"")


ROWS = TypeAdapter({row})
'''


def origin_of_topic(url: str, row: str) -> Origin:
    """A topic at `kafka://HOST:PORT/TOPIC`. Its messages become records if nearly all of them are objects in JSON."""
    parts = urlsplit(url)
    brokers, topic = parts.netloc, parts.path.strip("/")
    if not brokers or not topic:
        raise WrongUsage(f"{printable(url)!r} names no topic; write kafka://HOST:PORT/TOPIC")
    values, unseen = _first_values(brokers, topic)
    records = [record for record in map(_object, values) if record is not None]
    is_typed = len(records) >= max(1, (1 - _MOST_OTHERS) * len(values))
    classes = Classes(with_defaults=True)
    if is_typed:
        about = f"A record, as {len(records):,} messages looked. Others are rejected: change a type to let them pass."
        classes.add_records(row, records, about)
    return Origin(
        f"the topic {topic} of {brokers}",
        "KafkaSplitter",
        "KafkaReader",
        "ParquetPartWriter()" if is_typed else "PartWriter()",
        settings="parse=row_of" if is_typed else "parse=text_of",
        types=("KafkaMessage",),
        properties={
            "Splitter.prop.bootstrapServers": brokers,
            "Splitter.prop.topics": topic,
            "Reader.prop.bootstrapServers": brokers,
        },
        classes=classes,
        functions=_ROW_OF.format(row=row) if is_typed else _TEXT_OF,
        imports="from pydantic import TypeAdapter\n" if is_typed else "",
        notes=[unseen] if unseen else classes.remarks,
    )


def _first_values(brokers: str, topic: str) -> tuple[Sequence[bytes], str]:
    """The values of the first messages, or why they are unknown."""
    try:
        client: Any = importlib.import_module("confluent_kafka")
    except ImportError:
        return [], "its messages were not looked at; for that: python -m pip install 'dagkit[kafka]'"
    if not _answers(brokers):
        return [], f"its messages were not looked at: {printable(brokers)} does not answer"
    quiet = {"log_level": 0, "error_cb": lambda _: None}
    # The client requires a group. The look assigns partitions itself and commits nothing, so the group leaves no trace.
    settings = {"bootstrap.servers": brokers, "group.id": "dagkit", **quiet}
    # By the last setting, the client reports the end of a partition. Without it, each look would wait there for further
    # messages.
    reading = {"auto.offset.reset": "earliest", "enable.auto.commit": False, "enable.partition.eof": True}
    with closing(client.Consumer({**settings, **reading})) as consumer:
        try:
            known = consumer.list_topics(timeout=patient(_SECONDS)).topics
        except client.KafkaException as refused:
            return [], f"its messages were not looked at: {printable(refused.args[0].str())}"
        if topic not in known:
            raise WrongUsage(f"there is no topic {topic!r} at {printable(brokers)}; {did_you_mean(topic, known)}")
        partitions = [client.TopicPartition(topic, number, 0) for number in known[topic].partitions]
        consumer.assign(partitions)
        messages = list(islice(_messages(consumer, len(partitions)), _MESSAGES))
    return messages, "" if messages else "it has no messages to look at"


def _messages(consumer: Any, partitions: int) -> Iterator[bytes]:
    """The values of messages to the end of each partition. An error of a partition ends the look at it."""
    while partitions and (message := consumer.poll(patient(_SECONDS))) is not None:
        if message.error() is not None:
            partitions -= 1
        elif message.value() is not None:
            yield message.value()


def _answers(brokers: str) -> bool:
    """Whether a broker can be reached. The client would try each of them until its own time is over."""
    for broker in brokers.split(","):
        host, _, port = broker.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), patient(_SECONDS)).close()
        except (OSError, ValueError):
            continue
        return True
    return False


def _object(value: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(value)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
