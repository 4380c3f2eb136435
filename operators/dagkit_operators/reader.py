"""Reading blocks: each line belongs to exactly one block, however the file was split."""

from collections.abc import Sequence
from typing import Self

from pydantic import NonNegativeInt, PositiveInt, model_validator

from dagkit import InputPort, Operator, OutputPort, Partition, Partitioner, PartitioningContext
from dagkit_operators.blocks import Block, Record


class LineReader(Operator, Partitioner):
    """Reads blocks of text files, a record for each line.

    The reader partitions itself: it starts with `min_readers` partitions, which all take from one queue of blocks.
    """

    kind = "files.line-reader/1"
    served_by_engine = True
    blocks_metadata_input = InputPort(Block)
    blocks_metadata_output = OutputPort(Block)
    messages = OutputPort[Record[str]](main=True)

    min_readers: PositiveInt = 1
    """Partitions at least."""
    max_readers: PositiveInt = 16
    """Partitions at most."""
    collect_stats: bool = True
    """Whether the number of partitions follows the backlog."""
    interval_millis: NonNegativeInt = 120_000
    """The time between two looks at the backlog."""

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        if self.min_readers > self.max_readers:
            raise ValueError(f"min_readers {self.min_readers} is greater than max_readers {self.max_readers}")
        return self

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        """As many as were asked to mirror, else `min_readers` to begin with; later as many as there are."""
        wanted = context.parallel_count or (self.min_readers if len(partitions) == 1 else len(partitions))
        return [*partitions[:wanted], *[Partition(self)] * (wanted - len(partitions))]
