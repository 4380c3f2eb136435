"""Consumers that stay connected between windows, each at an offset of one partition."""

import atexit
import os
import threading
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from dagkit import Arrowed, Column, Constant, Listed
from dagkit.ground.forks import over_forks
from dagkit_operators.kafka.client import Failures, confluent, create_client
from dagkit_operators.native.librdkafka import Event, MessageColumns, PartitionQueue, handle_of, native

KEPT_CONSUMERS = 8
"""How many unused consumers a process keeps for one cluster. Each may hold 4 MB of messages, and one answer more."""
NOTICED_SECONDS = 0.1
"""How long one wait lasts, before it is checked whether the cluster is away."""
FIRST_SECONDS = 3.0
"""How long to wait for an answer, if the cluster reports no error."""
IDLE_SECONDS = 0.02
"""How long to wait for new messages at the end of a partition, before the cluster is asked whether it is the end."""
SKIPPED_MESSAGES = 10_000
"""How many messages a consumer skips at most. Beyond them, it is quicker to fetch from another offset."""

DEFAULTS: Mapping[str, Any] = {
    # The library requires it. Nothing is committed under it.
    "group.id": "dagkit",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    # The last offsets may be ends of transactions, which no fetch brings: only this event shows that nothing follows.
    "enable.partition.eof": True,
    # Any other value skips removed messages without a report.
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": 50,
    "reconnect.backoff.max.ms": 1000,
    # What is fetched beyond a range is lost if another process reads the next one.
    "queued.max.messages.kbytes": 4096,
    # A full queue lasts for some milliseconds, and the library would wait for a second.
    "fetch.queue.backoff.ms": 10,
}


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages that follow each other in a partition, as columns."""

    offsets: Sequence[int]
    times: Column
    key: Column
    value: Column
    headers: Column

    def __len__(self) -> int:
        return len(self.offsets)

    def sliced(self, start: int, count: int) -> "Messages":
        """The messages from `start` on, at most `count`."""
        columns = (column.sliced(start, count) for column in (self.times, self.key, self.value, self.headers))
        return Messages(self.offsets[start : start + count], *columns)


NO_MESSAGES = Messages((), Listed(()), Listed(()), Listed(()), Listed(()))


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answer to one wait: messages, or the end of the partition, or an error, or nothing."""

    messages: Messages = NO_MESSAGES
    end: int | None = None
    """The offset at which the partition ends, if there are no messages before it."""
    error: Any = None

    def since(self, offset: int) -> "Fetched | None":
        """What of it concerns an offset and later ones; None if nothing does."""
        # The client noticed this end before the partition grew to the offset.
        if self.end is not None and self.end < offset:
            return None
        before = bisect_left(self.messages.offsets, offset)
        if not before:
            return self
        left = len(self.messages) - before
        return Fetched(self.messages.sliced(before, left)) if left else None


@dataclass
class Positioned:
    """A consumer at an offset of one partition."""

    consumer: Any
    failures: Failures
    topic: str = ""
    partition: int = -1
    offset: int = -1
    """Everything before it was fetched and used."""
    _ahead: list[Fetched] = field(default_factory=list)
    """What was fetched and not used."""
    _end: int | None = None
    """Where the partition ended, if nothing came after that."""
    _queue: PartitionQueue | None = None
    """Brings the messages as columns; None without compiled C."""

    def is_of(self, topic: str, partition: int) -> bool:
        return (self.topic, self.partition) == (topic, partition)

    def is_near(self, topic: str, partition: int, offset: int) -> bool:
        """Whether it reaches this offset after a few messages. It may have fetched them already."""
        is_there = self.is_of(topic, partition) and self.offset >= 0
        return is_there and 0 <= offset - self.offset <= SKIPPED_MESSAGES

    def skip_to(self, offset: int) -> None:
        """Continue at this offset, to which it is near."""
        if self.offset < offset:
            self.offset, self._end = offset, None
            self._ahead = self._still_wanted(self._ahead)

    def go_to(self, topic: str, partition: int, offset: int, most: int) -> None:
        """Continue at this offset, with at most so many messages in one fetch."""
        self.topic, self.partition, self.offset = topic, partition, offset
        self._ahead, self._end = [], None
        # Otherwise an earlier outage, which may be over, would end the first wait at once.
        self.failures.clear()
        self._release()
        # Before the assignment, since librdkafka uses the queue from the first message on.
        functions, handle = native(), handle_of(self.consumer)
        if functions is not None and handle is not None:
            self._queue = PartitionQueue(functions, handle, topic, partition, most)
        self.consumer.assign([confluent().TopicPartition(topic, partition, offset)])

    def leave(self) -> None:
        """Make the next reader begin again: the cluster failed."""
        self.offset = -1

    def close(self) -> None:
        """Disconnect."""
        self._release()
        self.consumer.close()

    def fetch(self, most: int) -> Fetched:
        """Return messages, as soon as there are any. Wait until the partition ends or the cluster fails."""
        known, self._end = self._end, None
        self._wait(most, FIRST_SECONDS if known is None else IDLE_SECONDS)
        # The client reports the end of a partition once. If it did so before this call, that no message arrived may
        # also mean that the cluster does not answer, so it is asked for the end.
        if known is not None and not self._ahead and not self.failures.are_total:
            if self.ask_end(FIRST_SECONDS) == known:
                self._end = known
                return Fetched(end=known)
            self._wait(most, FIRST_SECONDS)
        while self._ahead:
            fetched = self._ahead.pop(0)
            self._end = fetched.end
            # An end with messages behind it is no end any more: they were written after the client had noticed it.
            if fetched.end is None or not self._ahead:
                return fetched
        return Fetched()

    def use(self, messages: Messages, count: int) -> None:
        """Record that so many of the fetched messages were used. The next fetch returns the others."""
        if count < len(messages):
            self._ahead.insert(0, Fetched(messages.sliced(count, len(messages) - count)))
        if count:
            self.offset = messages.offsets[count - 1] + 1

    def _wait(self, most: int, seconds: float) -> None:
        """Wait until something is fetched or the cluster fails, but not longer than this."""
        until = time.monotonic() + seconds
        while not self._ahead and (left := until - time.monotonic()) > 0 and not self.failures.are_total:
            self._ahead = self._still_wanted(self._take(most, min(NOTICED_SECONDS, left)))
            if self._ahead:
                self.failures.clear()

    def ask_end(self, within: float) -> int | None:
        """The present end of the partition, from the cluster; None if it does not answer."""
        library = confluent()
        place = library.TopicPartition(self.topic, self.partition)
        try:
            _, end = self.consumer.get_watermark_offsets(place, timeout=within)
        except library.KafkaException as failed:
            self.failures.note(failed.args[0])
            return None
        return int(end)

    @property
    def last_known_end(self) -> int:
        """The end of the partition in the last answer of the cluster to a fetch."""
        place = confluent().TopicPartition(self.topic, self.partition)
        _, end = self.consumer.get_watermark_offsets(place, cached=True)
        return max(int(end), self.offset)  # it is negative if there was no answer yet

    def _still_wanted(self, fetched: Iterable[Fetched]) -> list[Fetched]:
        """What was fetched and concerns the present offset or later ones."""
        return [wanted for event in fetched if (wanted := event.since(self.offset)) is not None]

    def _take(self, most: int, seconds: float) -> list[Fetched]:
        """What has arrived, or arrives within this time."""
        if self._queue is None:
            first = self.consumer.poll(seconds)
            # Only the first message is waited for: `consume` would wait until all of them are there, or the time is
            # over.
            return [] if first is None else list(_of_objects([first, *self.consumer.consume(most - 1, 0)]))
        # Messages come by the queue of the partition. This poll reports failures of connections.
        self.consumer.poll(0)
        return [_of_columns(taken) for taken in self._queue.take(seconds)]

    def _release(self) -> None:
        if self._queue is not None:
            self._queue.close()
            self._queue = None


def _of_columns(taken: MessageColumns | Event) -> Fetched:
    if isinstance(taken, Event):
        return _of_event(confluent().KafkaError(taken.code), taken.offset)
    headers = Constant((), len(taken.offsets)) if taken.headers is None else Listed(taken.headers)
    times, keys, values = map(Arrowed, (taken.times, taken.keys, taken.values))
    return Fetched(Messages(taken.offsets.tolist(), times, keys, values, headers))


def _of_objects(events: list[Any]) -> Iterator[Fetched]:
    """Divide events of the library into messages and other events."""
    for are_messages, some in groupby(events, key=lambda event: event.error() is None):
        if not are_messages:
            yield from (_of_event(event.error(), event.offset()) for event in some)
            continue
        messages = list(some)
        yield Fetched(
            Messages(
                [message.offset() for message in messages],
                Listed([message.timestamp()[1] for message in messages]),
                Listed([message.key() for message in messages]),
                Listed([message.value() for message in messages]),
                Listed([tuple(message.headers() or ()) for message in messages]),
            )
        )


def _of_event(error: Any, offset: int) -> Fetched:
    return Fetched(end=offset) if error.name() == "_PARTITION_EOF" else Fetched(error=error)


class Consumers:
    """The consumers of this process. A consumer serves one reader at a time, and is kept for the next."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, ...], list[Positioned]] = {}
        self._inherited: list[Any] = []
        """Consumers of the process that forked this one. They are neither used nor released: without its threads, the
        library ends the process."""
        self._lock = over_forks(threading.Lock())
        self._process = os.getpid()

    @contextmanager
    def at(
        self, settings: Mapping[str, Any], topic: str, partition: int, offset: int, most: int
    ) -> Iterator[Positioned]:
        """Lend a consumer at an offset, if possible one that is near. A fetch brings at most `most`."""
        key = tuple(sorted(settings.items()))
        used = self._lend(key, topic, partition, offset) or self._create(settings)
        try:
            if used.is_near(topic, partition, offset):
                used.skip_to(offset)
            else:
                used.go_to(topic, partition, offset, most)
            yield used
        # Its position is unknown now, and a consumer that could not be positioned fails again.
        except BaseException:
            used.close()
            raise
        for superfluous in self._keep(key, used):
            superfluous.close()

    def close(self) -> None:
        """Close the unused consumers of this process."""
        # Closing needs the threads of the library, which do not exist in a fork.
        if self._process != os.getpid():
            return
        with self._lock:
            kept, self._kept = self._kept, {}
        for consumers in kept.values():
            for consumer in consumers:
                consumer.close()

    def _lend(self, key: tuple[Any, ...], topic: str, partition: int, offset: int) -> Positioned | None:
        with self._lock:
            # Threads of the library do not survive a fork.
            if self._process != os.getpid():
                self._inherited.append(self._kept)
                self._process, self._kept = os.getpid(), {}
            kept = self._kept.get(key, [])
            # One consumer for each partition, up to the most: a range that follows another one finds its messages
            # fetched. Half of the readers of short ranges waited for a new consumer or a new assignment.
            there = [consumer for consumer in kept if consumer.is_of(topic, partition)]
            near = [consumer for consumer in there if consumer.is_near(topic, partition, offset)]
            candidates = [*near, *there, *(kept if len(kept) == KEPT_CONSUMERS else [])]
            if not candidates:
                return None
            kept.remove(candidates[0])
            return candidates[0]

    def _create(self, settings: Mapping[str, Any]) -> Positioned:
        failures = Failures()
        return Positioned(create_client("Consumer", settings, failures), failures)

    def _keep(self, key: tuple[Any, ...], used: Positioned) -> list[Positioned]:
        """Keep a consumer, and return those that are too many, the longest unused first."""
        with self._lock:
            kept = self._kept.setdefault(key, [])
            kept.append(used)
            superfluous, kept[:] = kept[:-KEPT_CONSUMERS], kept[-KEPT_CONSUMERS:]
            return superfluous


CONSUMERS = Consumers()
atexit.register(CONSUMERS.close)
