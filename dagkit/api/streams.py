"""How items travel: codecs that write and route them."""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

T = TypeVar("T")


class StreamCodec(ABC, Generic[T]):
    """How the items of a stream are written, and which key routes each of them."""

    @abstractmethod
    def to_bytes(self, item: T) -> bytes:
        """The item as bytes."""

    @abstractmethod
    def from_bytes(self, data: bytes) -> T:
        """The item that `to_bytes` wrote."""

    @abstractmethod
    def get_partition(self, item: T) -> int:
        """The item's routing code; equal on every machine and in every run for equal items."""
