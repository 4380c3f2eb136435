"""The base class of operators that choose a file for each item."""

from abc import abstractmethod
from typing import ClassVar, Generic, TypeVar

from pydantic import PrivateAttr

from dagkit import Batch, InputPort, auto_metric
from dagkit.ground.urls import local_path, name_as_text, name_fault
from dagkit_operators.records.rejecting import ItemsOf, Rejecting
from dagkit_operators.writing.rolled import OpenPart, RolledFiles

T = TypeVar("T")


class FileOutput(Rejecting, RolledFiles, Generic[T]):
    """Writes each item to the file that `file_name` returns, as the bytes that `bytes_for` returns.

    Nothing is added to the bytes, such as a separator. A file without limits has the name that `file_name` returned,
    and is finished when the input is drained; its name cannot be used again after that. A file with a limit is written
    in parts, `<name>.0`, `<name>.1` and so on. With several partitions, each has files of its own:
    `<name>_<partition>`. Names may contain folders.

    The state remembers each name that was used, so that no part replaces an earlier one. An item whose name no file can
    have goes to `rejected`: one with NUL, `..` or more than 255 bytes, and one that is also needed for a folder.
    """

    input = InputPort[T]()
    items_dropped = auto_metric(0, counted="left out")
    """Items for which `file_name` returned no name: they are not written."""

    _limits: ClassVar[tuple[str, ...]] = (
        "max_length",
        "max_count",
        "rotation_windows",
        "max_idle_windows",
        "visible_millis",
    )

    _used: set[str] = PrivateAttr(default_factory=set)
    """The names that files can have, or have."""
    _files: set[str] = PrivateAttr(default_factory=set)
    """The names of the first parts of these files."""
    _folders: set[str] = PrivateAttr(default_factory=set)

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
        if not name:
            self.items_dropped += 1
        elif fault := self._fault_of(name):
            self.reject(item, item, ValueError(fault))
        else:
            content = self.bytes_for(item)
            self._write(name_as_text(name), content, 1, lambda: (len(content),))

    def process_batch(self, batch: Batch[T]) -> None:
        by_name: dict[str, tuple[bytearray, list[int]]] = {}
        for index, item in enumerate(batch.items()):
            name = self.file_name(item)
            if not name:
                self.items_dropped += 1
            elif name not in by_name and (fault := self._fault_of(name)):
                places = next(iter(batch.columns.values())).places()
                start = None if places is None else places[index]
                self.reject(item, item, ValueError(fault), start, ItemsOf(batch).path)
            else:
                content, ends = by_name.setdefault(name, (bytearray(), []))
                content += self.bytes_for(item)
                ends.append(len(content))
        for name, (content, ends) in by_name.items():
            self._write(name_as_text(name), content, len(ends), ends.copy)

    def _fault_of(self, name: str) -> str:
        """Why no file can have this name; "" if one can."""
        if name_as_text(name) in self._used:
            return ""
        part = self._name(name, OpenPart())
        if fault := name_fault(part):
            return fault
        # The state has the names of earlier windows. Without them, `a` and `a/b` could both be committed, and no launch
        # could put both in place.
        if not self._used:
            for used in self.parts:
                self._use(local_path(used))
        folders = _folders_of(part)
        if part in self._folders or not self._files.isdisjoint(folders):
            return f"{name!r} is the name of a file, and of a folder of another one"
        self._use(name)
        return ""

    def _use(self, name: str) -> None:
        self._used.add(name_as_text(name))
        part = self._name(name, OpenPart())
        self._files.add(part)
        self._folders.update(_folders_of(part))

    def _part_name(self, name: str, part: OpenPart) -> str:
        return self.part_name(local_path(name), part.number)  # the state holds names as text


def _folders_of(name: str) -> list[str]:
    return [name[:at] for at, letter in enumerate(name) if letter == "/"]
