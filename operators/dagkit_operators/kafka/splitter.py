"""Finding topics and their partitions, and dividing their messages into ranges of offsets."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Literal, Self

from pydantic import AwareDatetime, NonNegativeInt, PositiveInt, PrivateAttr, model_validator

from dagkit import Context, OutputPort, State, Until
from dagkit.errors import RunFailure, did_you_mean
from dagkit.ground.patterns import HELP, is_whole, refusal
from dagkit.ranges import OFFSET_INFINITY
from dagkit_operators.kafka.client import KafkaClient, offsets_removed, topic_missing
from dagkit_operators.kafka.consumers import CONSUMERS
from dagkit_operators.kafka.messages import KafkaRange, source_of
from dagkit_operators.kafka.topics import Partition, Topics, Unanswered
from dagkit_operators.looks import LooksForInput

LEAST_FOLLOWED_MILLIS = 20
"""The least time between two questions for the ends of partitions whose ranges have no end."""
FOLLOWER_SECONDS = 1.0
"""How long a launch that ends waits for an answer about these ends."""
RANGES_AT_ONCE = 1000
"""How many ranges one look sends at most; the next look continues."""

_AGAIN = "read the new topic with a new application folder; a topic that is created again begins at offset 0"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer of a cluster."""

    starts: Mapping[Partition, int]
    """Where to begin with partitions that are new."""
    ends: Mapping[Partition, int]
    """Where partitions end now; empty if ranges have no end."""
    ids: Mapping[str, str] = field(default_factory=dict)
    """The IDs of topics, if they were listed."""


def _by_source(ends: Mapping[Partition, int]) -> Mapping[str, int]:
    """The ends of partitions, by the source of their ranges."""
    return {source_of(*partition): end for partition, end in ends.items()}


class KafkaSplitter(KafkaClient, LooksForInput):
    """Finds the partitions of topics, and sends their messages as ranges of offsets to a `KafkaReader`.

    Each look sends what was produced since the last one. The next launch continues where the last one stopped, as the
    ledger has it; no offsets are committed to a consumer group. Partitions and topics that appear while it runs are
    read from their first message. Ranges of one partition may be read at the same time; with `endless`, one reader at
    a time reads a partition, in the order of its offsets.
    """

    kind = "kafka.splitter/1"
    checkpointable_within_app_window = False
    ranges = OutputPort(KafkaRange)

    topics: tuple[str, ...] = ()
    """The names of topics to read."""
    pattern: str | None = None
    """Further topics: those whose whole name matches this regular expression of RE2. Internal topics never match."""
    start: Literal["earliest", "latest"] | AwareDatetime = "earliest"
    """Where the first look begins in each partition: at the first message, after the last, or at an instant.

    An instant has a time zone, as in `2026-01-31T12:00:00Z`.
    """
    endless: bool = False
    """Whether a partition is sent once, as a range without an end, which one reader reads in order.

    Otherwise each look sends the messages since the last one as ranges, which readers may read at the same time.
    """
    range_size: PositiveInt = 100_000
    """The most offsets of one range."""
    uncommitted: bool = False
    """Whether messages of transactions that are aborted, or not committed yet, are read, too."""
    interval_millis: NonNegativeInt = 100
    """The time between two looks for new messages."""
    topics_interval_millis: NonNegativeInt = 5000
    """The time between two looks for new topics and partitions."""

    offsets = State[dict[str, dict[str, int]]](dict)
    """The offset after the last range that was sent, by topic and partition."""
    topic_ids = State[dict[str, str]](dict)
    """The ID of each topic. A topic that is created later with the same name has another one."""
    next_id = State(0)
    looked = State(False)
    """Whether any look succeeded: partitions that appear later are read from their first message."""

    _client: Topics | None = PrivateAttr(default=None)
    _ends: dict[Partition, int] = PrivateAttr(default_factory=dict)
    """Where the last look saw partitions end."""
    _seen_ends: Mapping[str, int] = PrivateAttr(default_factory=dict)
    """Where partitions end whose ranges have no end, by their names in the ledger."""
    _follower: threading.Thread | None = PrivateAttr(default=None)
    _marked: dict[Partition, int] = PrivateAttr(default_factory=dict)
    """Partitions whose start is to be recorded, although nothing is to be read yet."""
    _listed: dict[Partition, None] = PrivateAttr(default_factory=dict)
    """The partitions of the wanted topics that the last listing found. Others may be known from earlier launches."""
    _next_listing: datetime | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _names_topics(self) -> Self:
        if not self.topics and self.pattern is None:
            raise ValueError("neither topics nor pattern is set, so there is nothing to read")
        if self.pattern is not None and (why := refusal(self.pattern)) is not None:
            raise ValueError(f"pattern {self.pattern!r} is no regular expression: {why}; {HELP}")
        return self

    def setup(self, context: Context) -> None:
        super().setup(context)
        self._client = Topics(self.client_settings())
        self._next_listing = None
        self._ends = {}
        if self.endless and context.until in {Until.IDLE, Until.STOPPED}:
            self._follower = threading.Thread(
                target=self._follow_ends, args=(self.looks.abandoned,), name="kafka-ends", daemon=True
            )
            self._follower.start()

    def teardown(self) -> None:
        """Disconnect, also the consumers that readers left in this process: they would fetch messages until it ends."""
        super().teardown()
        self._client = None
        if self._follower is not None:
            self._follower.join(FOLLOWER_SECONDS)
            self._follower = None
        CONSUMERS.close()

    def emit_tuples(self) -> None:
        """Send the ranges of the last look. Look again if all are sent and a look is due."""
        looks, client = self.looks, self._client
        assert client is not None, "an operator is set up before it runs"
        if not looks.are_on and not self._is_behind() and looks.are_due():
            server, see = f"Kafka at {self.bootstrap_servers}", partial(self._look, client, looks.now)
            looks.begin(partial(looks.ask, server, see, Unanswered))
        answer: _Answer | None = looks.take(self.interval_millis)
        if answer is not None:
            self._take(answer)
        for range_ in self._next_ranges():
            self.ranges.emit(range_)

    def _is_behind(self) -> bool:
        return any(self._reached(partition) < end for partition, end in self._ends.items())

    def _reached(self, partition: Partition) -> int:
        return self.offsets[partition.topic][str(partition.number)]

    def _look(self, client: Topics, now: Callable[[], datetime]) -> _Answer:
        """Ask the cluster. It runs on another thread."""
        known = [Partition(topic, int(number)) for topic, offsets in self.offsets.items() for number in offsets]
        new: list[Partition] = []
        ids: Mapping[str, str] = {}
        lists = self._next_listing is None or now() >= self._next_listing
        if lists:
            self._listed = dict.fromkeys(self._wanted(client.partitions()))
            before = set(known)
            new = [partition for partition in self._listed if partition not in before]
            ids = client.ids({partition.topic for partition in self._listed}) if self._listed else {}
        # A topic that is no longer named must not be read further, and one that is deleted would delay each answer.
        known = [partition for partition in known if partition in self._listed]
        starts = self._starts(client, new)
        ends = {} if self.endless else client.ends([*known, *new], uncommitted=self.uncommitted)
        if self.endless:
            self._see_ends(client, known, new)
        # After the last question, so that a look without an answer lists again.
        if lists:
            self._next_listing = now() + timedelta(milliseconds=self.topics_interval_millis)
        return _Answer(starts, ends, ids)

    def _wanted(self, there: Mapping[str, list[int]]) -> list[Partition]:
        """The partitions of the wanted topics. Raise `topic-missing` if a topic that is named does not exist."""
        for topic in self.topics:
            if topic not in there:
                raise topic_missing(
                    f"there is no topic {topic!r} at {self.bootstrap_servers}",
                    did_you_mean(topic, there, "create it, or correct the property `topics`"),
                )
        matching = [topic for topic in there if self._matches(topic)]
        return [
            Partition(topic, number) for topic in dict.fromkeys([*self.topics, *matching]) for number in there[topic]
        ]

    def _matches(self, topic: str) -> bool:
        return self.pattern is not None and not topic.startswith("__") and is_whole(self.pattern, topic)

    def _starts(self, client: Topics, new: list[Partition]) -> Mapping[Partition, int]:
        """Where to begin with new partitions."""
        if self.looked or self.start == "earliest":
            return client.first(new)
        ends = client.ends(new, uncommitted=self.uncommitted)
        if self.start == "latest":
            return ends
        since = client.since(new, int(self.start.timestamp() * 1000))
        return {
            partition: end if since[partition] < 0 else min(since[partition], end) for partition, end in ends.items()
        }

    @property
    def seen_ends(self) -> Mapping[str, int]:
        return self._seen_ends

    def _follow_ends(self, abandoned: threading.Event) -> None:
        """Ask where partitions end, on a thread of its own: while a window runs, no look takes place."""
        client = Topics(self.client_settings())
        while not abandoned.wait(max(self.topics_interval_millis, LEAST_FOLLOWED_MILLIS) / 1000):
            with suppress(Unanswered, RunFailure):  # the looks report it
                self._seen_ends = _by_source(client.ends(list(self._listed), uncommitted=self.uncommitted))

    def _see_ends(self, client: Topics, known: list[Partition], new: list[Partition]) -> None:
        """Ask where partitions end whose ranges have no end: known ones only as long as the follower has not asked."""
        with suppress(Unanswered):  # a figure must not delay the discovery of other partitions
            ends = client.ends(new if self._seen_ends else [*known, *new], uncommitted=self.uncommitted)
            self._seen_ends = {**self._seen_ends, **_by_source(ends)}

    def _take(self, answer: _Answer) -> None:
        """Take over the answer of the cluster."""
        self._refuse_created_again(answer.ids)
        # Topics that appear after a first look without any are read from their start, also by the next launch: a range
        # without offsets lets the ledger record that look.
        if not self.looked and not answer.starts and self.pattern is not None and self.start != "earliest":
            self._marked[Partition(self.pattern, 0)] = 0
        for partition, start in answer.starts.items():
            if self.looked:
                _log.info("topic %s has a new partition %d, which is read from offset %d", *partition, start)
            offsets = self.offsets.setdefault(partition.topic, {})
            offsets[str(partition.number)] = start
            if self.endless:
                self._ends[partition] = OFFSET_INFINITY
            elif not self.looked and self.start != "earliest":
                self._marked[partition] = start
        for partition, end in answer.ends.items():
            if end < self._reached(partition):
                self._refuse_shorter(partition, end)
            self._ends[partition] = end
        self.looked = True

    def _refuse_created_again(self, ids: Mapping[str, str]) -> None:
        """Raise if a topic has another ID than before."""
        # A topic that was deleted, created again and filled beyond the offset that was read looks like the old one, and
        # its first messages would be lost.
        for topic, number in ids.items():
            if self.topic_ids.setdefault(topic, number) != number:
                raise offsets_removed(f"topic {topic} was deleted and created again", _AGAIN)

    def _refuse_shorter(self, partition: Partition, end: int) -> None:
        raise offsets_removed(
            f"{partition} ends at offset {end}, and was read up to {self._reached(partition)} before: the topic "
            "was deleted and created again, or its brokers lost messages",
            _AGAIN,
        )

    def _next_ranges(self) -> Iterator[KafkaRange]:
        """The next ranges of all partitions in turn, at most RANGES_AT_ONCE.

        A range without offsets is sent where reading begins after the last message. It has the effect that the ledger
        records the state: a look that sends nothing is not recorded.
        """
        for partition, start in self._marked.items():
            yield KafkaRange(self.next_id, partition.topic, partition.number, start, start, self.uncommitted)
            self.next_id += 1
        self._marked = {}
        sent = 0
        behind = [partition for partition, end in self._ends.items() if self._reached(partition) < end]
        while behind and sent < RANGES_AT_ONCE:
            for partition in behind[: RANGES_AT_ONCE - sent]:
                start, end = self._reached(partition), self._ends[partition]
                stop = end if self.endless else min(end, start + self.range_size)
                yield KafkaRange(self.next_id, partition.topic, partition.number, start, stop, self.uncommitted)
                self.next_id += 1
                self.offsets[partition.topic][str(partition.number)] = stop
                sent += 1
            behind = [partition for partition in behind if self._reached(partition) < self._ends[partition]]
