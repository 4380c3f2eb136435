"""The payloads of Kafka: ranges of offsets, and messages."""

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from dagkit.ranges import OFFSET_INFINITY

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class KafkaRange:
    """Offsets of one partition of a topic: from `start` up to, not including, `end`."""

    number: int
    """The ID of the range, which is unique among all ranges of a splitter."""
    topic: str
    partition: int
    start: int
    end: int
    """OFFSET_INFINITY if the range has no end."""
    uncommitted: Annotated[bool, Field(exclude_if=lambda uncommitted: not uncommitted)] = False
    """Whether messages of transactions that are aborted, or not committed yet, are read, too."""

    @property
    def source(self) -> str:
        """The topic and partition. The ledger records it."""
        return f"kafka:{self.topic}/{self.partition}"

    @property
    def source_size(self) -> int | None:
        """None: partitions grow."""
        return None

    def place(self, position: int | None) -> str:
        """The topic, the partition and an offset as text; for None, the range of offsets."""
        if position is not None:
            return place_of(self.topic, self.partition, position)
        end = "inf" if self.end == OFFSET_INFINITY else self.end
        return f"{self.topic}/{self.partition}, offsets [{self.start}, {end})"

    def part(self, start: int, end: int) -> "KafkaRange":
        """The range, reduced to some of its offsets."""
        return replace(self, start=start, end=end)


@dataclass(frozen=True, slots=True)
class KafkaMessage:
    """A message of a topic."""

    topic: str
    partition: int
    offset: int
    timestamp_millis: int
    """When it was created or appended, as the topic is configured, in milliseconds since 1970; -1 if unknown."""
    key: bytes | None
    value: bytes | None
    """The content; None in a compacted topic if the key was deleted."""
    headers: Headers = ()
    """Names and values, in their order. A name may recur."""

    @property
    def place(self) -> str:
        """The topic, the partition and the offset as text."""
        return place_of(self.topic, self.partition, self.offset)


def place_of(topic: str, partition: int, offset: int) -> str:
    """A place in a topic, as all messages name it."""
    return f"{topic}/{partition}, offset {offset}"
