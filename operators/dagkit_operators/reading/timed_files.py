"""Watermarks of files, from the event times of their records or from the times of their last change."""

from abc import abstractmethod
from datetime import datetime
from typing import Self, TypeVar

from pydantic import model_validator

from dagkit import Batch, Block, Column
from dagkit.ranges import ManualWatermarkEstimator
from dagkit_operators.payloads import FileInfo, Rejected, why_invalid
from dagkit_operators.reading.conversion import as_text
from dagkit_operators.values.masks import only
from dagkit_operators.values.processed import processed_value
from dagkit_operators.values.timed_elements import TimedElements, instant_of

T = TypeVar("T")


class TimedFiles(TimedElements):
    """A reader that can estimate a watermark for each file that it reads, or for each block."""

    times_by_change: bool = False
    """Whether the event time of all records of a file is the time of its last change."""

    @model_validator(mode="after")
    def _have_one_event_time(self) -> Self:
        if self.times_by_change and self.event_time is not None:
            raise ValueError(
                "event_time and times_by_change are set; records have one event time, so set only one of them"
            )
        return self

    @property
    def estimates_watermark(self) -> bool:
        return self.times_by_change or super().estimates_watermark

    def earliest(self, element: Block | FileInfo) -> datetime | None:
        """The time of the last change of a file, if that is the event time of its records."""
        if not self.times_by_change:
            return None
        facts = {} if isinstance(element, FileInfo) else element.facts or {}
        millis = element.modified_millis if isinstance(element, FileInfo) else facts.get("modified_millis", 0)
        return instant_of((millis - self.out_of_order_millis) * 1000) if millis else None

    def watermark(self, element: Block | FileInfo, reached: datetime | None) -> ManualWatermarkEstimator | None:
        times = super().watermark(element, reached)
        earliest = self.earliest(element)
        if earliest is not None:
            self.reach(earliest)
        return times

    def timed(self, path: str, batch: Batch[T], values: Column) -> Batch[T]:
        """Observe the event times of the records of a file, whose values are given. Reject records that have none."""
        if self.event_time is None:
            return batch
        try:
            self.observe(self.times_of(batch))
        except ValueError:  # find the records without an event time
            return self._timed_one_by_one(path, batch, values)
        return batch

    def _timed_one_by_one(self, path: str, batch: Batch[T], values: Column) -> Batch[T]:
        places, taken = values.places(), []
        for index, item in enumerate(batch.items()):
            try:
                self.observe([self.time_of(item)])
            except ValueError as fault:
                text = as_text(processed_value(item, None))
                start = None if places is None else places[index]
                self.reject(Rejected(path, start, text, why_invalid(fault), item), fault)
            else:
                taken.append(index)
        return only(batch, taken)

    @abstractmethod
    def reject(self, rejected: Rejected, fault: Exception | None = None) -> None:
        """Send a record to the output for rejected ones, or raise if that is not connected."""
