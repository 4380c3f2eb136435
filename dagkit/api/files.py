"""Files that a window writes: staged while it runs, visible once it is committed, and never before.

class Writer(Operator):
    files = OutputFiles(lambda writer: writer.file_path)

    def process(self, record: Record[str]) -> None:
        self.files.open(f"{record.block_id:x}", block=record.block_id).write(record.value.encode())
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, Self, overload, runtime_checkable

from dagkit.api.declared import annotation_of
from dagkit.urls import absolute, is_url

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class OutputFile(Protocol):
    """One file as far as this slot writes it in this window."""

    def write(self, content: "ReadableBuffer", /) -> Any:
        """Add bytes to it."""


class Files(Protocol):
    """The files of one operator in one slot."""

    def open(self, name: str, *, block: int | None = None) -> OutputFile:
        """The file of this name, the same one for the same name; it may hold folders, divided by "/".

        A file that belongs to a block is whole once the block is read to its end, however many windows and slots that
        takes. Any other is whole when `finish` says so, or when nothing more comes for now: at the end of a launch
        until "once" or "idle", and where all input operators have ended. A launch that is stopped leaves it to the next
        one. A name is for one operator, and for one block or for none; once its file is whole, it is used up: a window
        that writes to it again is refused, so let names hold something that is new each time.
        """

    def finish(self, name: str) -> None:
        """Nothing more comes into the file of this name after this window."""


class OutputFiles:
    """Declares that an operator writes files, and into which directory."""

    name: str

    def __init__(
        self,
        directory: Callable[[Any], Any],
        *,
        of_blocks: bool = True,
        examples: Callable[[Any], Iterable[str]] = lambda _: ("file",),
    ) -> None:
        self.directory = directory
        self.examples = examples
        """Names that files may have; the compiler asks those who find files whether they would read such a file."""
        self.of_blocks = of_blocks
        """Whether any of them may belong to a block: it then holds what was made of the block in the block's order."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        annotation_of(owner, name)

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Files: ...
    def __get__(self, instance: Any, owner: type) -> "Self | Files":
        if instance is None:
            return self
        # for each item or batch that is written: pydantic's `__getattr__` takes longer than the rest of the way
        files: Files | None = instance.__pydantic_private__["_services"].get(self.name)
        assert files is not None, f"{owner.__name__}.{self.name} is there while a window runs, and at no other time"
        return files


@runtime_checkable
class FileFinder(Protocol):
    """An operator that looks for files by itself."""

    def would_find(self, path: str, items: Sequence[object]) -> bool:
        """Whether it would find a file at an absolute path or URL, given the items that are known to come in."""


@runtime_checkable
class KnownItems(Protocol):
    """An operator that knows before the application runs what it is going to send."""

    def known_items(self) -> Sequence[object]:
        """What it sends."""


def example_files(operator: Any) -> Mapping[str, Sequence[str]]:
    """Paths that files of an operator may have, by the folder that they are written to."""
    found: dict[str, list[str]] = {}
    for declared in output_files(operator.__class__).values():
        folder = absolute(str(declared.directory(operator)))
        path, mark, options = folder.partition("?") if is_url(folder) else (folder, "", "")
        found.setdefault(folder, []).extend(
            f"{path.rstrip('/')}/{name}{mark}{options}" for name in declared.examples(operator)
        )
    return found


@lru_cache(maxsize=1024)
def output_files(component: type) -> Mapping[str, OutputFiles]:
    """The declarations of a class by name, those of its bases first."""
    found: dict[str, OutputFiles] = {}
    for ancestor in reversed(component.__mro__):
        found.update({name: value for name, value in vars(ancestor).items() if isinstance(value, OutputFiles)})
    return found
