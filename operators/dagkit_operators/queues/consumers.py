"""The open connections of this process, so that the operator that acknowledges uses that of the input."""

from collections.abc import Mapping
from typing import Any

from dagkit_operators.queues.consumer import Consumer

_open: dict[tuple[str, str], Consumer] = {}


def opened(url: str, queue: str, most: int, options: Mapping[str, Any]) -> Consumer:
    """Connect to a queue. A connection that a failed run of this process left is closed: its messages come again."""
    if (url, queue) in _open:
        closed(_open[url, queue])
    consumer = Consumer(url, queue, most, options)
    _open[url, queue] = consumer
    return consumer


def closed(consumer: Consumer) -> None:
    """Disconnect."""
    for place, known in list(_open.items()):
        if known is consumer:
            del _open[place]
    consumer.close()


def acknowledge(url: str, queue: str, name: str) -> None:
    """Acknowledge a message, if this process is connected to its queue; if not, the broker delivers it again."""
    consumer = _open.get((url, queue))
    if consumer is not None:
        consumer.acknowledge(name)
