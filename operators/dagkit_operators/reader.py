"""Reading blocks: each record belongs to exactly one block, however the file was split."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, Self, TypeVar

from pydantic import Field, NonNegativeInt, PositiveInt, PrivateAttr, field_validator, model_validator

from dagkit import (
    Batch,
    BatchedOperatorStats,
    Block,
    DataQueueSize,
    InputPort,
    OutputPort,
    Partition,
    Partitioner,
    PartitioningContext,
    Response,
    SplittableOperator,
    StatsListener,
    auto_metric,
)
from dagkit.ranges import OffsetRange, RestrictionTracker
from dagkit.scaling import Follower, ScalingSettings
from dagkit.scaling.policy import policy_class, policy_of, refuse_crossed
from dagkit_operators.blocks import Record
from dagkit_operators.contexts import FixedLength, ReadAheadLines, ReaderContext
from dagkit_operators.lines import CHUNK_SIZE
from dagkit_operators.seen import as_seen
from dagkit_operators.strides import StrideTracker
from dagkit_operators.text import TextForm

T = TypeVar("T")

POLICY_PROPERTIES = ("target_drain_millis", "cool_down_millis", "apex_compat")
"""Properties of a reader that it passes to its policy, where that has a setting of this name."""


class BlockReader(SplittableOperator[Block], Partitioner, StatsListener, DataQueueSize, Generic[T]):
    """Reads blocks; how their bytes become records is said by a reader context.

    The reader partitions itself: it starts with `min_readers` partitions, which all take from one queue of blocks. It
    is told its statistics, too, and their number follows what waits in that queue.

    `blocks_metadata_output` tells each stretch that was read to its end. A block that was cut, for several readers or
    at the end of a window, is told several times then, by the same `block_id` and other bounds; of a stretch that was
    given back in the middle, only the rest is told, when that was read.
    """

    stateless = True
    blocks_metadata_input = InputPort(Block)
    blocks_metadata_output = OutputPort(Block)
    messages = OutputPort[Record[T]](main=True)
    bytes_read = auto_metric(0)

    policy: str = "drain"
    """How their number follows the backlog. `drain`: as many as work it off soonest. `apex`: one for each block.

    Another policy is named by its entry point in `dagkit.policies`, or as `package.module:Class`.
    """
    policy_settings: Mapping[str, Any] = {}
    """Settings of the policy's own, by name."""
    min_readers: PositiveInt = 1
    """Partitions at least, and to begin with."""
    max_readers: PositiveInt | None = None
    """Partitions at most; none: 16 by `apex`, and as many as the cluster can run at once by `drain`."""
    collect_stats: bool = True
    """Whether the number of partitions follows the backlog; else it stays at `min_readers`."""
    interval_millis: NonNegativeInt | None = None
    """The time between two looks at the backlog; none: two minutes by `apex`, and each window by `drain`."""
    target_drain_millis: NonNegativeInt = 0
    """How soon `drain` is to work a backlog off: it takes no more partitions than that needs. 0: as soon as may be."""
    cool_down_millis: NonNegativeInt = 10_000
    """How long fewer partitions must have been enough before `drain` takes some away."""
    apex_compat: bool = False
    """Whether `apex` does all that Malhar's reader does: begins with one, and may have fewer than `min_readers`."""
    chunk_size: PositiveInt = CHUNK_SIZE
    """Bytes that are read, and handed on, at a time."""

    _follower: Follower = PrivateAttr(default_factory=Follower)

    @field_validator("policy")
    @classmethod
    def _policy_is_known(cls, policy: str) -> str:
        policy_class(policy)
        return policy

    @model_validator(mode="after")
    def _settings_hold(self) -> Self:
        refuse_crossed("min_readers", self.min_readers, "max_readers", self.max_readers)
        policy_of(self.policy, self._settings_of_policy)
        return self

    @property
    def _settings_of_policy(self) -> dict[str, Any]:
        """Of the properties that are settings of a policy, those that the chosen one has."""
        known = policy_class(self.policy).model_fields
        own = {name: getattr(self, name) for name in POLICY_PROPERTIES if name in known}
        return {**own, **self.policy_settings}

    def scaling_settings(self) -> ScalingSettings:
        """How its number of partitions follows the backlog."""
        return ScalingSettings(
            policy=self.policy,
            policy_settings=self._settings_of_policy,
            min_partitions=self.min_readers,
            max_partitions=self.max_readers,
            interval_millis=self.interval_millis,
        )

    @abstractmethod
    def reader_context(self) -> ReaderContext[T]:
        """How the bytes of a block become records."""

    def process(self, element: Block, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[Batch[Record[T]]]:
        """The records of what the tracker grants; the stretch itself follows if it was read to its end."""
        start = tracker.current_restriction().start
        with as_seen(element) as stream:
            yield from self.reader_context().batches(stream, element, tracker)
        done = tracker.current_restriction()
        self.bytes_read += done.stop - start if done.is_bounded() else 0
        if done.stop == element.end:
            self.blocks_metadata_output.emit(element)

    def process_stats(self, stats: BatchedOperatorStats) -> Response:
        """How many partitions there are to be, once the last one was told; nothing where they are not to follow."""
        if not self.collect_stats:
            return Response()
        return self._follower.answer(self.scaling_settings(), stats)

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        """As many as were asked to mirror, or are wanted; else `min_readers` to begin with, and later as there are."""
        begins = len(partitions) == 1 and partitions[0].stats is None
        settings = self.scaling_settings()
        first = settings.chosen.begins_with(settings)
        wanted = context.parallel_count or context.wanted or (first if begins else len(partitions))
        return [*partitions[:wanted], *[Partition(self)] * (wanted - len(partitions))]


class LineReader(TextForm, BlockReader[str]):
    """Reads blocks of text files, a record for each line.

    A line belongs to the block in which it starts. What ends it is no part of the record; the last line of a file need
    not be ended. Bytes that are no UTF-8 come as lone surrogates, and are written as the bytes that they were.

    All else of a line is its value, unless told otherwise: a return before the line's end, a byte order mark, escapes.
    """

    kind = "files.line-reader/1"
    messages = OutputPort[Record[str]](main=True)

    def reader_context(self) -> ReadAheadLines:
        return self.line_context(self.chunk_size)


class FixedLengthReader(BlockReader[bytes]):
    """Reads blocks of records of one length, as bytes.

    Records are counted from where each block starts, and none goes beyond its block: the last may be shorter.
    """

    kind = "files.fixed-length-reader/1"
    messages = OutputPort[Record[bytes]](main=True)

    length: PositiveInt = Field(default=...)
    """Bytes of a record."""

    def tracker(self, element: Block, restriction: OffsetRange) -> StrideTracker:  # noqa: ARG002 - all are alike
        return StrideTracker(restriction, self.length)

    def reader_context(self) -> FixedLength:
        return FixedLength(self.length, self.chunk_size)
