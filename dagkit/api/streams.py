"""Stream codecs and keys, which serialize and route items."""

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from dagkit.schema.batch import Batch
from dagkit.schema.columns import Column

T = TypeVar("T")


class StreamCodec(ABC, Generic[T]):
    """Serializes the items of a stream, and gives the routing code of each."""

    @abstractmethod
    def to_bytes(self, item: T) -> bytes:
        """The item as bytes."""

    @abstractmethod
    def from_bytes(self, data: bytes) -> T:
        """The item that `to_bytes` wrote."""

    @abstractmethod
    def get_partition(self, item: T) -> int:
        """The routing code of an item. For equal items it must be equal on every machine and in every run."""


class BatchKey(ABC):
    """A key of items that can also be computed for a whole batch, without making its items."""

    @abstractmethod
    def __call__(self, item: Any) -> Any:
        """The key of an item."""

    @abstractmethod
    def column(self, batch: Batch[Any]) -> Column:
        """The keys of the items of a batch, equal to those of its items one by one."""
