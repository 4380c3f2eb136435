"""The windows that are in a cluster: a compacted topic with the number of the last window of each writer."""

import time
from collections.abc import Mapping
from typing import Any

from dagkit import Unavailable
from dagkit.ground.clock import patient
from dagkit_operators.kafka.client import Failures, confluent, made
from dagkit_operators.kafka.consumers import DEFAULTS
from dagkit_operators.kafka.topics import Partition, Topics

READ_SECONDS = 30.0
"""How long reading the topic may take without an answer."""
SETTINGS = {"cleanup.policy": "compact", "segment.bytes": "16777216", "min.cleanable.dirty.ratio": "0.1"}


def create_missing(topics: Topics, topic: str) -> None:
    """Create the topic if it does not exist. Its only partition keeps all windows in order."""
    if topic not in topics.partitions():
        topics.create(topic, SETTINGS)


def last_window(topics: Topics, topic: str, writer: str, settings: Mapping[str, Any]) -> int:
    """The last window of a writer whose transaction is committed; 0 if there is none.

    Call it after the transactions of the writer are ended: a consumer does not see past a transaction that is open.
    Such a transaction of another writer, which may be the last one, is waited for.
    """
    only = Partition(topic, 0)
    end, found = topics.ends([only], uncommitted=True)[only], 0
    start = topics.first([only])[only]
    failures = Failures()
    library = confluent()
    consumer = made("Consumer", {**DEFAULTS, **settings, "isolation.level": "read_committed"}, failures)
    try:
        consumer.assign([library.TopicPartition(topic, 0, start)])
        until = time.monotonic() + patient(READ_SECONDS)
        while start < end:
            message = consumer.poll(max(0.0, until - time.monotonic()))
            if message is None or (message.error() is not None and message.error().name() != "_PARTITION_EOF"):
                raise Unavailable(f"the windows in topic {topic} cannot be read: {failures.last or 'no answer'}")
            if message.error() is not None:
                start = message.offset()
                continue
            start, until = message.offset() + 1, time.monotonic() + patient(READ_SECONDS)
            if message.key() == writer.encode():
                found = int(message.value())
    finally:
        consumer.close()
    return found
