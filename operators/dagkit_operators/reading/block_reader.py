"""Reading blocks. However a file is split, each record belongs to exactly one block."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, Self, TypeVar, get_args

from pydantic import NonNegativeInt, PositiveInt, PrivateAttr, field_validator, model_validator

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
from dagkit.ranges import OffsetRange, SequentialRestrictionTracker
from dagkit.scaling import Follower, ScalingSettings
from dagkit.scaling.policy import policy_class, policy_of, refuse_crossed
from dagkit_operators.contexts.reader_context import Tracker
from dagkit_operators.filesystem.access import Seekable
from dagkit_operators.payloads import Record
from dagkit_operators.reading.reader import Reader

T = TypeVar("T")

POLICY_PROPERTIES = ("target_drain_millis", "cool_down_millis", "apex_compat")
"""Properties that a reader passes to its policy if the policy has a setting of this name."""


class BlockReader(Reader[T], SplittableOperator[Block], Partitioner, StatsListener, DataQueueSize, Generic[T]):
    """Reads blocks of files. A reader context turns their bytes into records: see `Reader`.

    The reader is its own partitioner: it starts with `min_readers` partitions, which share one queue of blocks. It is
    also its own stats listener, so the number of partitions follows the length of that queue.

    `blocks_metadata_output` sends each range that was read to its end. If a block was split, between readers or at the
    end of a window, it is sent several times, with the same `block_id` and different bounds. If a reader returned a
    range unfinished, only the rest is sent, after it was read.
    """

    stateless = True
    blocks_metadata_input = InputPort(Block)
    blocks_metadata_output = OutputPort(Block)
    messages = OutputPort[Record[T]](main=True)
    bytes_read = auto_metric(0)

    policy: str = "drain"
    """How the number of partitions follows the backlog. `drain`: as many as finish it soonest. `apex`: one per block.

    Name any other policy by its entry point in `dagkit.policies`, or as `package.module:Class`.
    """
    policy_settings: Mapping[str, Any] = {}
    """Further settings of the policy, by name."""
    min_readers: PositiveInt = 1
    """The minimum and initial number of partitions."""
    max_readers: PositiveInt | None = None
    """The maximum number of partitions; None: 16 for `apex`, as many as the cluster can run at once for `drain`."""
    collect_stats: bool = True
    """Whether the number of partitions follows the backlog; if not, it stays at `min_readers`."""
    interval_millis: NonNegativeInt | None = None
    """The time between two checks of the backlog; None: two minutes for `apex`, every window for `drain`."""
    target_drain_millis: NonNegativeInt = 0
    """The time in which `drain` is to finish a backlog, with no more partitions than needed. 0: as soon as possible."""
    cool_down_millis: NonNegativeInt = 10_000
    """How long fewer partitions must have been enough before `drain` removes some."""
    apex_compat: bool = False
    """Whether `apex` behaves exactly as Malhar's reader: it begins with one, and may go below `min_readers`."""

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

    @model_validator(mode="after")
    def _sends_what_its_context_reads(self) -> Self:
        """Refuse a reader context whose records are not of the type that the reader sends, unless it converts them."""
        reads, sends = self.reader_context.reads, next(iter(get_args(type(self).messages.payload)), Any)
        are_known = all(inspect.isclass(kind) and kind is not Any for kind in (reads, sends))
        if self.converts or not are_known or issubclass(reads, sends):
            return self
        context, reader = type(self.reader_context).__name__, type(self).__name__
        raise ValueError(
            f"reader_context is wrong: {context} reads {reads.__name__}, and {reader} sends {sends.__name__}; write "
            "convert_to_record, or set another reader context"
        )

    @property
    def _settings_of_policy(self) -> dict[str, Any]:
        """The settings for the chosen policy: the reader's properties that it has, and `policy_settings`."""
        known = policy_class(self.policy).model_fields
        own = {name: getattr(self, name) for name in POLICY_PROPERTIES if name in known}
        return {**own, **self.policy_settings}

    def scaling_settings(self) -> ScalingSettings:
        """The settings by which the number of partitions follows the backlog."""
        return ScalingSettings(
            policy=self.policy,
            policy_settings=self._settings_of_policy,
            min_partitions=self.min_readers,
            max_partitions=self.max_readers,
            interval_millis=self.interval_millis,
        )

    def tracker(self, element: Block, restriction: OffsetRange) -> Tracker:
        """Return the tracker for a range of a block. It splits where the reader context and the splitter allow it."""
        tracker = self.tracker_of(element.part(restriction.start, restriction.stop))
        return SequentialRestrictionTracker(tracker) if (element.facts or {}).get("sequential") else tracker

    def process(self, element: Block, tracker: Tracker) -> Iterator[Batch[Record[T]]]:
        """Yield the records of the granted range. Send the block's range if it was read to the block's end."""
        start = tracker.current_restriction().start
        yield from self.read(element, tracker)
        done = tracker.current_restriction()
        self.bytes_read += done.stop - start if done.is_bounded() else 0
        if done.stop == element.end:
            self.blocks_metadata_output.emit(element)

    def opened_content(self, element: Block) -> AbstractContextManager[Seekable]:
        """Open the file of a block; if it is compressed, its content."""
        return self._open_content(element)

    def decompresses(self, element: Block) -> bool:
        """Whether the records of a block have positions of the decompressed content of its file."""
        return self._codec_of(element) is not None

    def process_stats(self, stats: BatchedOperatorStats) -> Response:
        """Return the wanted number of partitions with the last partition's statistics; none without `collect_stats`."""
        if not self.collect_stats:
            return Response()
        return self._follower.answer(self.scaling_settings(), stats)

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        """Return as many as the parallel operator or the policy needs; else the initial, later the current number."""
        begins = len(partitions) == 1 and partitions[0].stats is None
        settings = self.scaling_settings()
        first = settings.chosen.begins_with(settings)
        wanted = context.parallel_count or context.wanted or (first if begins else len(partitions))
        return [*partitions[:wanted], *[Partition(self)] * (wanted - len(partitions))]
