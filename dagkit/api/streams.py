"""Stream codecs, which serialize and route items."""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

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
