"""Consumers that stay connected between windows, each at an offset of one partition."""

import atexit
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dagkit_operators.kafka.client import Failures, confluent, made

KEPT_CONSUMERS = 8
"""How many unused consumers a process keeps for one cluster. Each may hold 16 MB of messages."""
NOTICED_SECONDS = 0.1
"""How long one wait lasts, before it is checked whether the cluster is away."""
FIRST_SECONDS = 3.0
"""How long to wait for the first messages, if the cluster reports no error."""
IDLE_SECONDS = 0.02
"""How long to wait for new messages at the end of a partition."""

DEFAULTS: Mapping[str, Any] = {
    "group.id": "dagkit",  # required by the library; nothing is committed under it
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": 50,
    "reconnect.backoff.max.ms": 1000,
    "queued.max.messages.kbytes": 16384,
}


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answer to one wait: messages, or the end of the partition, or an error, or nothing."""

    messages: Sequence[Any] = ()
    end: int | None = None
    """The offset at which the partition ends, if there are no messages before it."""
    error: Any = None


@dataclass
class Positioned:
    """A consumer at an offset of one partition."""

    consumer: Any
    failures: Failures
    topic: str = ""
    partition: int = -1
    offset: int = -1
    """Everything before it was fetched and used."""
    _ahead: list[Any] = field(default_factory=list)
    """What was fetched and not used."""
    _end: int | None = None
    """Where the partition ended, if nothing came after that."""

    def is_at(self, topic: str, partition: int, offset: int) -> bool:
        return (self.topic, self.partition, self.offset) == (topic, partition, offset)

    def go_to(self, topic: str, partition: int, offset: int) -> None:
        """Continue at this offset."""
        self.topic, self.partition, self.offset = topic, partition, offset
        self._ahead, self._end = [], None
        self.failures.clear()
        self.consumer.assign([confluent().TopicPartition(topic, partition, offset)])

    def leave(self) -> None:
        """Make the next reader begin again: the cluster failed."""
        self.offset = -1

    def fetch(self, most: int) -> Fetched:
        """Return messages, as soon as there are any. Wait until the partition ends or the cluster fails."""
        if self._ahead:
            events, self._ahead = self._ahead, []
            return self._of(events)
        until = time.monotonic() + (FIRST_SECONDS if self._end is None else IDLE_SECONDS)
        while (left := until - time.monotonic()) > 0 and not self.failures.are_total:
            first = self.consumer.poll(min(NOTICED_SECONDS, left))
            if first is not None:
                self.failures.clear()
                return self._of([first, *self.consumer.consume(most - 1, 0)])
        return Fetched(end=None if self.failures.are_total else self._end)

    def use(self, messages: Sequence[Any], count: int) -> None:
        """Record that so many of the fetched messages were used. The next fetch returns the others."""
        self._ahead = [*messages[count:], *self._ahead]
        if count:
            self.offset = messages[count - 1].offset() + 1

    def _of(self, events: list[Any]) -> Fetched:
        """Divide events of the library into messages and what comes after them."""
        at = next((index for index, event in enumerate(events) if event.error() is not None), len(events))
        if at:
            self._ahead, self._end = events[at:], None
            return Fetched(events[:at])
        event, self._ahead = events[0], events[1:]
        if event.error().name() != "_PARTITION_EOF":
            return Fetched(error=event.error())
        self._end = event.offset()
        return self._of(self._ahead) if self._ahead else Fetched(end=self._end)


class Consumers:
    """The consumers of this process. A consumer serves one reader at a time, and is kept for the next."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, ...], list[Positioned]] = {}
        self._lock = threading.Lock()
        self._process = os.getpid()

    @contextmanager
    def at(self, settings: Mapping[str, Any], topic: str, partition: int, offset: int) -> Iterator[Positioned]:
        """Lend a consumer at an offset: the one that stopped there, if possible."""
        key = tuple(sorted(settings.items()))
        used = self._lent(key, topic, partition, offset) or self._made(settings)
        if not used.is_at(topic, partition, offset):
            used.go_to(topic, partition, offset)
        try:
            yield used
        except BaseException:
            used.consumer.close()
            raise
        for superfluous in self._keep(key, used):
            superfluous.consumer.close()

    def close(self) -> None:
        """Close the unused consumers."""
        with self._lock:
            kept, self._kept = self._kept, {}
        for each in kept.values():
            for one in each:
                one.consumer.close()

    def _lent(self, key: tuple[Any, ...], topic: str, partition: int, offset: int) -> Positioned | None:
        with self._lock:
            if self._process != os.getpid():  # threads of the library do not survive a fork
                self._process, self._kept = os.getpid(), {}
            kept = self._kept.get(key, [])
            exact = (one for one in kept if one.is_at(topic, partition, offset))
            found = next(exact, None) or (kept[0] if len(kept) == KEPT_CONSUMERS else None)
            if found is not None:
                kept.remove(found)
            return found

    def _made(self, settings: Mapping[str, Any]) -> Positioned:
        failures = Failures()
        return Positioned(made("Consumer", settings, failures), failures)

    def _keep(self, key: tuple[Any, ...], used: Positioned) -> list[Positioned]:
        """Keep a consumer, and return those that are too many, the longest unused first."""
        with self._lock:
            kept = self._kept.setdefault(key, [])
            kept.append(used)
            superfluous, kept[:] = kept[:-KEPT_CONSUMERS], kept[-KEPT_CONSUMERS:]
            return superfluous


CONSUMERS = Consumers()
atexit.register(CONSUMERS.close)
