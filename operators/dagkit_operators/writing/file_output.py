"""The base class of operators that choose a file for each item."""

from abc import abstractmethod
from typing import ClassVar, Generic, TypeVar

from dagkit import Batch, InputPort, auto_metric
from dagkit.urls import local_path, name_as_text
from dagkit_operators.writing.rolled import OpenPart, RolledFiles

T = TypeVar("T")


class FileOutput(RolledFiles, Generic[T]):
    """Writes each item to the file that `file_name` returns, as the bytes that `bytes_for` returns.

    Nothing is added to the bytes, such as a separator. A file without limits has the name that `file_name` returned,
    and is finished when the input is drained; its name cannot be used again after that. A file with a limit is written
    in parts, `<name>.0`, `<name>.1` and so on. With several partitions, each has files of its own:
    `<name>_<partition>`. Names may contain folders.

    The state remembers each name that was used, so that no part replaces an earlier one.
    """

    input = InputPort[T]()
    items_dropped = auto_metric(0)
    """Items for which `file_name` returned no name: they are not written."""

    _limits: ClassVar[tuple[str, ...]] = (
        "max_length",
        "max_count",
        "rotation_windows",
        "max_idle_windows",
        "visible_millis",
    )

    @abstractmethod
    def file_name(self, item: T) -> str | None:
        """The name of the file for an item; None or an empty text: the item is dropped, and counted."""

    @abstractmethod
    def bytes_for(self, item: T) -> bytes:
        """The bytes of an item."""

    def part_name(self, name: str, number: int) -> str:
        """The name of a part of a file. Return another name for each name, number and partition."""
        own = f"{name}_{self._partition}" if self._partitions > 1 else name
        return f"{own}.{number}" if any(getattr(self, limit) for limit in self._limits) else own

    def process(self, item: T) -> None:
        name = self.file_name(item)
        if name:
            content = self.bytes_for(item)
            self._write(name_as_text(name), content, 1, lambda: (len(content),))
        else:
            self.items_dropped += 1

    def process_batch(self, batch: Batch[T]) -> None:
        by_name: dict[str, tuple[bytearray, list[int]]] = {}
        for item in batch.items():
            name = self.file_name(item)
            if name:
                content, ends = by_name.setdefault(name, (bytearray(), []))
                content += self.bytes_for(item)
                ends.append(len(content))
            else:
                self.items_dropped += 1
        for name, (content, ends) in by_name.items():
            self._write(name_as_text(name), content, len(ends), ends.copy)

    def _part_name(self, name: str, part: OpenPart) -> str:
        return self.part_name(local_path(name), part.number)  # the state holds names as text
