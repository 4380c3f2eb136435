"""A stream of Structured Streaming over what an input operator finds.

The ledger records each discovery before Spark learns of it, so that a micro-batch that Spark repeats reads the same
elements. An offset of the stream is an offset of the input operator's chain: the number of elements found before it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from dagkit.api.operators import Operator
from dagkit.api.work import is_sourced
from dagkit.dataframes.element_rows import rows_of
from dagkit.dataframes.found_elements import FoundElements
from dagkit.dataframes.source_options import PARTITION_BYTES, StreamOptions

if TYPE_CHECKING:
    import pyarrow as pa

# Spark may ask for the elements between two offsets again, in another process and after days, and its checkpoint holds
# small values only. Rejected: the list of elements as an offset, which Spark writes again for each batch; finding them
# again by a scan, since the files have changed. The cost: two folders of state, and a new checkpoint with an old ledger
# reads everything again.
OFFSET = "elements"


class ElementsTask(InputPartition):
    """Elements for one task, with the operator that reads them."""

    def __init__(self, reader: Operator, elements: Sequence[Any]) -> None:
        super().__init__(None)
        self._pickled: bytes = cloudpickle.dumps((reader, elements))  # type: ignore[no-untyped-call]

    def work(self) -> tuple[Any, Sequence[Any]]:
        """The reader and the elements."""
        reader, elements = cloudpickle.loads(self._pickled)
        return reader, elements


@dataclass
class FoundStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Finds elements on the driver, and reads them in tasks."""

    options: StreamOptions
    schema: StructType

    def __post_init__(self) -> None:
        self._found: FoundElements | None = None
        """Opened when Spark first asks for it: a copy of this reader goes to each task."""
        self._last: int | None = None
        """The end of a query that reads what is available now; None for one without an end."""

    @property
    def found(self) -> FoundElements:
        if self._found is None:
            self._found = FoundElements(self.options)
        return self._found

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark calls it so, as the names below
        return {OFFSET: 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return self.options.limit

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Find everything that is there; what is found later is left to a later query."""
        self.found.look(for_everything=True)
        self._last = self.found.count

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """The offset up to which the next micro-batch reads."""
        if self._last is None:
            self.found.look()
        end = self.found.count if self._last is None else self._last
        return {OFFSET: _limited(self.found, start[OFFSET], end, limit)}

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        return {OFFSET: self.found.count}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """The elements between two offsets, grouped into partitions of about 64 MiB."""
        elements = self.found.between(start[OFFSET], end[OFFSET])
        return [ElementsTask(self.found.reader, group) for group in _grouped(elements)]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """The rows of the elements of one partition."""
        assert isinstance(partition, ElementsTask), "Spark returns what `partitions` made"
        return rows_of(*partition.work(), self.schema)

    def commit(self, end: dict[str, int]) -> None:
        """Drop from memory what Spark will not ask for again."""
        self.found.forget_before(end[OFFSET])

    def stop(self) -> None:
        if self._found is not None:
            self._found.close()


def _limited(found: FoundElements, start: int, end: int, limit: ReadLimit) -> int:
    """The end of a micro-batch that reads as much as the limit allows, and at least one element."""
    if isinstance(limit, ReadAllAvailable) or start >= end:
        return max(start, end)
    sources: set[Any] = set()
    read = 0
    for number, element in enumerate(found.between(start, end)):
        # Any other element counts as a file by itself.
        sources.add(element.source if is_sourced(element) else number)
        read += length_of(element)
        too_many = isinstance(limit, ReadMaxFiles) and len(sources) > limit.max_files
        too_long = isinstance(limit, ReadMaxBytes) and read > limit.max_bytes
        if number and (too_many or too_long):
            return start + number
    return end


def _grouped(elements: Iterator[Any]) -> Iterator[list[Any]]:
    group: list[Any] = []
    together = 0
    for element in elements:
        if group and together + length_of(element) > PARTITION_BYTES:
            yield group
            group, together = [], 0
        group.append(element)
        together += length_of(element)
    if group:
        yield group


def length_of(element: Any) -> int:
    """The positions of a stretch of a source; 0 for any other element."""
    return int(element.end - element.start) if is_sourced(element) else 0
