"""Output files: written to a staging folder while a window runs, and visible only after it is committed.

class Writer(Operator):
    files = OutputFiles(lambda writer: writer.file_path)

    def process(self, record: Record[str]) -> None:
        self.files.open(f"{record.block_id:x}", block=record.block_id).write(record.value.encode())
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from dagkit.api.declared import Service, declarations
from dagkit.ground.urls import absolute, is_url

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class OutputFile(Protocol):
    """The part of a file that one slot writes in one window."""

    def write(self, content: "ReadableBuffer", /) -> Any:
        """Append bytes to the file."""


class Files(Protocol):
    """The output files of an operator in one slot."""

    def open(self, name: str, *, block: int | None = None) -> OutputFile:
        """Open the file of this name; the same name gives the same file. A name may contain folders, separated by "/".

        A file of a block is complete once the block is read to its end, in however many windows and slots. Any other
        file is complete after `finish`, at the end of a launch until "once" or "idle", and when all input operators
        have ended. A stopped launch leaves it incomplete, and the next launch continues it.

        A name belongs to one operator, and to one block or none. The name of a complete file cannot be used again: a
        window that writes to it fails. Therefore include something unique in each name.
        """

    def finish(self, name: str) -> None:
        """Declare that the file of this name is complete after this window."""

    def write_at(self, key: str, offset: int, content: "ReadableBuffer", /) -> None:
        """Write bytes at an offset of a file that several slots write together, in any order.

        The key names the file until an operator passes it to `adopt`, and must stand for one content: a window that
        runs again writes the same bytes again. This needs an APPLICATION_PATH that is a mounted folder.
        """

    def copy_at(self, key: str, offset: int, path: str, length: int) -> int:
        """Copy bytes of a local file to the same offset of the file of a key, as `write_at` does.

        The kernel copies them if it can. Return how many there were: fewer if the local file ends before.
        """

    def adopt(self, name: str, key: str, length: int, *, replace: bool = False) -> None:
        """Declare that the file written with `write_at` under a key is complete, with so many bytes.

        It gets its name after this window, by a rename if possible. With `replace`, it may replace a complete file of
        this name; a name must be adopted once in a window. The operator's `OutputFiles` must declare `incomplete`.
        """

    @property
    def began(self) -> datetime | None:
        """When the driver began the window, in a launch that runs until it is stopped.

        None in other launches: they complete all files when they end.
        """

    def wake(self, name: str, at: datetime) -> None:
        """Ask for a window at this time, even if there is no work, so that the operator can finish the file in it.

        The time is compared with `began`. Call it in each window that writes to the file; the last call counts. It has
        no effect in a window that does not write to the file.
        """


class OutputFiles(Service[Files]):
    """Declares that an operator writes files, and the directory for them."""

    def __init__(
        self,
        directory: Callable[[Any], Any],
        *,
        of_blocks: bool = True,
        examples: Callable[[Any], Iterable[str]] = lambda _: ("file",),
        content: Callable[[Any, bytes], bytes] = lambda _, piece: piece,
        incomplete: Callable[[Any], Iterable[str]] | None = None,
    ) -> None:
        self.directory = directory
        self.content = content
        """Returns the lines in a piece of a file, which `dagkit trace` and `dagkit replay` compare: its content before
        the operator compressed it, or its rows as text; here, the piece itself."""
        self.examples = examples
        """Gives examples of file names, with which the compiler checks that no input would read these files."""
        self.incomplete = incomplete
        """Gives the keys of the files that it will adopt, from its state. An operator that calls `adopt` declares this:
        a launch removes files of `write_at` that no operator will adopt."""
        self.of_blocks = of_blocks
        """Whether a file may belong to a block. Such a file holds the results of the block, in the block's order."""


@runtime_checkable
class FileFinder(Protocol):
    """An operator that discovers files."""

    def would_find(self, paths: Sequence[str], items: Sequence[object]) -> Iterable[str]:
        """The paths, of those given, at which it would find a file.

        They are absolute and without symbolic links, or URLs. `items` are those known to arrive at the operator.
        """


@runtime_checkable
class SendsGrownFiles(Protocol):
    """An operator that discovers files, and can send one again after it has grown."""

    def sends_grown(self, *, followed: bool) -> bool:
        """Whether it sends such a file again; `followed` is whether an operator follows the files (`follows_files`)."""


READ_BEFORE = "it was read before and has changed"
"""The reason of the state of a file that is read again as a whole."""


@dataclass(frozen=True, slots=True)
class FileState:
    """What an operator that discovers files would do with a file that exists now."""

    path: str
    state: Literal["seen", "new", "pending", "ignored", "quarantined"]
    """`seen`: it was found before, and is not read again; `new`: the next scan finds it; `pending`: a later one."""
    reason: str = ""
    """Why it is pending, ignored or quarantined, with the rule; of a new file, `READ_BEFORE` if it is no other one."""


@runtime_checkable
class ExplainsFiles(Protocol):
    """An operator that discovers files and explains what it does with each."""

    def places(self, items: Sequence[object]) -> Sequence[str]:
        """The paths and patterns that it searches; `items` are those known to arrive at the operator."""

    def file_states(self, items: Sequence[object], path: str | None = None) -> Iterator[FileState]:
        """The files that exist in these places, or only the one at a path. The operator is set up and has its state."""


@runtime_checkable
class ForgetsFiles(Protocol):
    """An operator that discovers files and can forget one."""

    def forget(self, path: str, request: str) -> str:
        """Forget a file, so that the next scan finds it; return why this is impossible, or "".

        An input operator keeps the ID of the request in its state, and does nothing if that is there already.
        """


def why_not_forgotten(operator: object, path: str, request: str) -> str:
    """Let an operator forget a file; return why that is impossible, or ""."""
    if isinstance(operator, ForgetsFiles):
        return operator.forget(path, request)
    return f"{type(operator).__name__} cannot forget a file"


@runtime_checkable
class AdoptsFiles(Protocol):
    """An input operator that discovers files and can take over those that another program has read."""

    def adopt_files(self, was_read: Callable[[str, int], bool]) -> str:
        """Remember each file that was read, as if this operator had found it; return why this is impossible, or "".

        `was_read` gets the path and the time of change, in milliseconds, of each file that a scan finds now.
        """


@runtime_checkable
class KnownItems(Protocol):
    """An operator whose output items are known before the application runs."""

    def known_items(self) -> Sequence[object]:
        """The items that it will send."""


@runtime_checkable
class WantsReceipts(Protocol):
    """An operator that may ask for a receipt for each file that it finds."""

    def receipts_folder(self) -> str | None:
        """Where the engine writes them; None if none are wanted."""


@runtime_checkable
class CorrectsReceipts(Protocol):
    """A reader that may read a file otherwise than the operator that found it described it."""

    def read_instead(self) -> Mapping[str, Any] | None:
        """What the receipt of the file of the element that was processed last states instead of what it was found with.

        None: nothing else. An empty mapping: the file is left to a later reading, so this one has no receipt.
        """


@runtime_checkable
class CountsUnsent(Protocol):
    """A reader that counts the records that it read and did not send."""

    def unsent_records(self) -> tuple[int, int]:
        """How many records of the element that was processed last were rejected, and dropped; 0 if asked again."""


def example_files(operator: Any) -> Mapping[str, Sequence[str]]:
    """Examples of paths of the files that are written for an operator, by the folder that holds them."""
    found = example_outputs(operator)
    receipts = operator.receipts_folder() if isinstance(operator, WantsReceipts) else None
    if receipts is not None:
        folder = absolute(receipts)
        found.setdefault(folder, []).append(_within(folder, "receipt.json"))
    return found


def example_outputs(operator: Any) -> dict[str, list[str]]:
    """Examples of paths of the files that an operator itself writes, by the folder that holds them."""
    found: dict[str, list[str]] = {}
    for declared in output_files(operator.__class__).values():
        folder = absolute(str(declared.directory(operator)))
        found.setdefault(folder, []).extend(_within(folder, name) for name in declared.examples(operator))
    return found


def _within(folder: str, name: str) -> str:
    """The path of a file in a folder, which may be a URL with options."""
    path, mark, options = folder.partition("?") if is_url(folder) else (folder, "", "")
    return f"{path.rstrip('/')}/{name}{mark}{options}"


def content_of_piece(operator: Any, piece: bytes) -> bytes:
    """Return the lines in a piece of an output file of an operator."""
    for declared in output_files(operator.__class__).values():
        piece = declared.content(operator, piece)
    return piece


def output_files(component: type) -> Mapping[str, OutputFiles]:
    """The output files that a class declares, by name; those of its bases come first."""
    return declarations(component, OutputFiles)
