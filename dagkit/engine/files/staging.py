"""Staging: each attempt at a window writes its pieces to a folder of its own; the commit names the attempt that counts.

APPLICATION_PATH/staging/<window>/<attempt>/<task>/<number>.part
"""

import secrets
from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, BinaryIO

from pydantic import BaseModel, ConfigDict, Field

from dagkit.engine.files.folders import Folder, folder_at
from dagkit.engine.files.pieces import BUFFER_BYTES, MOST_OPEN, Blame, Syncing, staging_failed
from dagkit.engine.files.regions import Regions, region_path
from dagkit.engine.program.failures import OperatorFailed, failed_within
from dagkit.errors import RunFailure, printable

Key = tuple[str, str, int]
"""An operator, a file, and the start of the range of work; 0 if the file belongs to no element."""
FEW_OPEN = 8
SMALL_BUFFER_BYTES = 64 << 10
"""The buffer of each file if more than a few are open."""
NAMED_BY_BLOCK = "let the names of files contain the block, or open them for no block"


def file_shared(file: str, whose: str, remedy: str) -> RunFailure:
    """Two operators, or one operator for two elements, wrote to one file; nothing of the window was committed."""
    return RunFailure(
        f"{printable(file)} was written {whose}; the file is complete with one of them, and what comes from the "
        "other would be lost. Nothing of the window was committed",
        f"{remedy}; then launch again",
        code="file-shared",
    )


def element_text(element_id: int | None) -> str:
    """An element in a message."""
    return "no element" if element_id is None else f"element {element_id}"


EXTERNAL = "external:"
"""Begins the name of the pieces that no file is made of: the driver sends them to an external system."""


class Part(BaseModel):
    """One staged piece of one output file, or of one external output."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, serialize_by_alias=True)

    operator: str
    file: str
    """The final path of the file; of entries for an external system, EXTERNAL and the name of the output."""
    part: str
    """The path of the piece below the application's folder."""
    length: int
    order: int = 0
    """Pieces of the file of an element are ordered by this, then by window, then by slot."""
    window: int = 0
    slot: int = 0
    element_id: int | None = Field(default=None, validation_alias="block", serialization_alias="block")
    """The number of the element that completes the file."""
    finished: bool = False
    """Whether the file gets no more pieces after this window."""
    replaces: bool = Field(default=False, exclude_if=lambda replaces: not replaces)
    """Whether it may replace a complete file of its name."""
    wake: datetime | None = Field(default=None, exclude_if=lambda at: at is None)
    """When the operator wants a window, so that it can complete the file."""

    @property
    def is_external(self) -> bool:
        """Whether the driver sends the piece to an external system."""
        return self.file.startswith(EXTERNAL)


def in_order(parts: Iterable[Part]) -> list[Part]:
    """The written parts of one file, in file order."""
    return sorted((part for part in parts if part.part), key=_place)


def _place(part: Part) -> tuple[int, int, int, str]:
    """Where a part belongs in its file.

    The file of an element has the element's order. Any other file has the order in which it was written: it may begin
    with a header. Ledgers that were written until November 2026 contain an `order` of such files, too.
    """
    return 0 if part.element_id is None else part.order, part.window, part.slot, part.part


def by_file(parts: Iterable[Part]) -> dict[str, list[Part]]:
    """The pieces of each file."""
    files: dict[str, list[Part]] = {}
    for part in parts:
        files.setdefault(part.file, []).append(part)
    return files


@dataclass(frozen=True, slots=True)
class StagingPlace:
    """Where the tasks of one attempt at a window stage their files."""

    application_path: str
    window: int
    attempt: str
    durable: bool = True
    home: str = ""
    """The folder that relative paths of operators start from: where the driver was started."""
    began: datetime | None = None
    """When the driver began the attempt, in a launch that runs until it is stopped."""

    @property
    def folder(self) -> str:
        return f"staging/{self.window}/{self.attempt}"


class _TaskFolder:
    """The folder for the pieces of one task. The first piece makes it."""

    def __init__(self, place: StagingPlace) -> None:
        self._home = place.application_path
        self._path = f"{place.folder}/{secrets.token_hex(8)}"
        self._count = 0

    @cached_property
    def _folder(self) -> Folder:
        return folder_at(self._home).below(self._path)

    @property
    def appends(self) -> bool:
        """Whether a file that was closed may be continued."""
        return self._folder.appends

    def create(self, buffer_bytes: int) -> tuple[str, BinaryIO]:
        """Create the file of a piece; return its name, too."""
        if not self._count:
            self._folder.make()
        name = f"{self._count:08d}.part"
        stream = self._folder.create(name, buffer_bytes)
        self._count += 1
        return name, stream

    def append(self, name: str, buffer_bytes: int) -> BinaryIO:
        return self._folder.append(name, buffer_bytes)

    def path_of(self, piece: "_Piece") -> str:
        """The path of a piece, from the folder of the application."""
        return f"{self._path}/{piece.name}"

    def sync(self) -> None:
        """Sync the folder, if there is one, those of its attempt, its window and all windows, and the home."""
        if self._count:
            self._folder.sync(levels=5)


class Staging:
    """The pieces that one task writes."""

    def __init__(self, place: StagingPlace, slot: int) -> None:
        self.place = place
        self.slot = slot
        self._folder = _TaskFolder(place)
        self.order = 0
        """The start of the current range of work, which orders its output in the file of its element."""
        self._pieces: dict[Key, _Piece] = {}
        """The pieces being written, by operator, file and range of work."""
        self._open: dict[_Piece, None] = {}
        """The pieces with an open file, least recently used first."""
        self._suspended: dict[_Piece, None] = {}
        """Pieces that were closed to make room, and will continue in the same file."""
        self._syncing = Syncing()
        self.regions = Regions(place.application_path, self._syncing, durable=place.durable)
        self._parts: list[Part] = []
        self._finished: set[tuple[str, str]] = set()
        self._wakes: dict[tuple[str, str], datetime] = {}
        """When a window is wanted for a file, by operator and file."""

    def files(self, operator: str, directory: Any, *, of_blocks: bool = True, adopts: bool = False) -> "StagedFiles":
        """The files of one operator."""
        folder = folder_at(directory, self.place.home)
        return StagedFiles(self, operator, folder, of_blocks=of_blocks, adopts=adopts)

    def close_element(self, element_id: int) -> None:
        """Close the pieces of an element that this window has finished reading."""
        for piece in [piece for piece in (*self._open, *self._suspended) if piece.element_id == element_id]:
            self._close(piece)

    def parts(self) -> list[Part]:
        """Close all pieces and return them, safe on disk."""
        try:
            for piece in [*self._open, *self._suspended]:
                self._close(piece)
            self.regions.close()
            self._syncing.wait()
        except BaseException:
            self.abandon()
            raise
        if self.place.durable:
            self._folder.sync()
        done = [self._with_requests(part) for part in self._parts]
        known = {(part.operator, part.file) for part in done}
        # a file of earlier windows may be finished in one that adds nothing to it
        done += [self._empty(operator, file) for operator, file in sorted(self._finished - known)]
        return done

    def abandon(self) -> None:
        """Close everything after a failed attempt; its pieces do not count."""
        self.regions.abandon()
        self._syncing.abandon()
        for piece in self._open:
            with suppress(OSError):
                piece.stream.close()
        for pieces in (self._open, self._suspended, self._pieces):
            pieces.clear()

    def piece(self, operator: str, file: str, element_id: int | None) -> "_Piece":
        key = (operator, file, 0 if element_id is None else self.order)
        piece = self._pieces.get(key)
        if piece is None:
            piece = self._pieces[key] = _Piece(self, key, element_id)
            self.begin(piece)
        elif len(self._open) == MOST_OPEN and piece in self._open:
            # kept in order only when one must be closed: it costs time for every write
            self._open[piece] = self._open.pop(piece)  # as the most recently used
        if piece.element_id != element_id:
            both = f"{element_text(piece.element_id)} and {element_text(element_id)}"
            raise file_shared(file, f"by {operator} for {both}", NAMED_BY_BLOCK)
        return piece

    def begin(self, piece: "_Piece") -> None:
        """Open a file for a piece, and close another one if too many are open."""
        if len(self._open) == MOST_OPEN:
            self._suspend(next(iter(self._open)))
        try:
            buffer_bytes = BUFFER_BYTES if len(self._open) < FEW_OPEN else SMALL_BUFFER_BYTES
            if piece in self._suspended:
                piece.resume(self._folder.append(piece.name, buffer_bytes))
                del self._suspended[piece]
            else:
                piece.begin(*self._folder.create(buffer_bytes))
        except OSError as error:
            raise staging_failed(piece.file, error) from error
        self._open[piece] = None

    def _suspend(self, piece: "_Piece") -> None:
        """Close the file of a piece; the next write continues there, or begins another piece."""
        if not self._folder.appends:
            self._close(piece)
            return
        del self._open[piece]
        self._suspended[piece] = None
        try:
            piece.hand_over(lambda stream: stream.close())
        except OSError as error:
            raise self._failed(piece.key[0], staging_failed(piece.file, error, piece.length)) from error

    def _with_requests(self, part: Part) -> Part:
        """Return a piece with what its operator asked for its file."""
        file = part.operator, part.file
        if file in self._finished:
            return part.model_copy(update={"finished": True})
        return part.model_copy(update={"wake": self._wakes[file]}) if file in self._wakes else part

    def finish(self, operator: str, file: str) -> None:
        self._finished.add((operator, file))

    def adopt(self, operator: str, file: str, key: str, length: int, *, replace: bool) -> None:
        whole = Part(
            operator=operator,
            file=file,
            part=region_path(key),
            length=length,
            window=self.place.window,
            slot=self.slot,
            finished=True,
            replaces=replace,
        )
        self._parts.append(whole)

    def wake(self, operator: str, file: str, at: datetime) -> None:
        self._wakes[operator, file] = at

    def _close(self, piece: "_Piece") -> None:
        operator, file, order = piece.key

        def blame(error: OSError) -> Exception:
            return self._failed(operator, staging_failed(file, error, piece.length))

        if self._pieces.get(piece.key) is piece:
            del self._pieces[piece.key]
        try:
            if piece in self._suspended:
                del self._suspended[piece]
                self._reopen_to_sync(piece)
            else:
                del self._open[piece]
            piece.hand_over(lambda stream: self._close_file(stream, blame))
        except OSError as error:
            raise blame(error) from error
        self._parts.append(
            Part(
                operator=operator,
                file=file,
                part=self._folder.path_of(piece),
                length=piece.length,
                order=order,
                window=self.place.window,
                slot=self.slot,
                element_id=piece.element_id,
            )
        )

    def _close_file(self, stream: BinaryIO, blame: Blame) -> None:
        if self.place.durable:
            self._syncing.add(stream, blame)
        else:
            stream.close()

    def _reopen_to_sync(self, piece: "_Piece") -> None:
        if self.place.durable:
            # The file was closed without a sync, to make room for another one.
            piece.resume(self._folder.append(piece.name, SMALL_BUFFER_BYTES))

    def _failed(self, operator: str, error: RunFailure) -> OperatorFailed:
        return failed_within(error, operator, self.place.window, self.slot)

    def _empty(self, operator: str, file: str) -> Part:
        return Part(
            operator=operator, file=file, part="", length=0, window=self.place.window, slot=self.slot, finished=True
        )


class _Piece:
    """The output to one file; in one range of work, if the file belongs to an element.

    Its stream may be closed meanwhile, to keep few files open.
    """

    name: str
    stream: BinaryIO

    def __init__(self, staging: Staging, key: Key, element_id: int | None) -> None:
        self.key = key
        self.file = key[1]
        self.element_id = element_id
        self.length = 0
        self._staging = staging
        self._write: Callable[[Any], Any] = self._begin_and_write

    def begin(self, name: str, stream: BinaryIO) -> None:
        """Write to this file from now on."""
        self.name, self.length = name, 0
        self.resume(stream)

    def resume(self, stream: BinaryIO) -> None:
        """Reopen the file at its end."""
        self.stream = stream
        self._write = stream.write

    def _begin_and_write(self, content: Any) -> None:
        self._staging.begin(self)
        self._write(content)

    def write(self, content: Any, /) -> None:
        try:
            self._write(content)
        except OSError as error:
            raise staging_failed(self.file, error, self.length) from error
        self.length += content.nbytes if isinstance(content, memoryview) else len(content)

    def hand_over(self, closing: Callable[[BinaryIO], None]) -> None:
        """Flush everything, and pass the file to `closing`, which closes it. If that fails, this method closes it."""
        if self.stream.closed:  # it was suspended, and nothing of it need survive a power cut
            return
        try:
            self.stream.flush()
            closing(self.stream)
        except BaseException:
            with suppress(OSError):
                self.stream.close()
            raise
        self._write = self._begin_and_write


class StagedFiles:
    """The files of one operator in one slot, as its author sees them."""

    def __init__(self, staging: Staging, operator: str, directory: Folder, *, of_blocks: bool, adopts: bool) -> None:
        self._staging = staging
        self._regions = staging.regions
        self._adopts = adopts
        self._operator = operator
        self._of_blocks = of_blocks
        self._path_of = lru_cache(maxsize=MOST_OPEN)(directory.path_of)  # called for every batch

    def open(self, name: str, *, block: int | None = None) -> _Piece:
        if block is not None and not self._of_blocks:
            problem = f"{self._operator} opens {name} for block {block}, and its files are declared to be of none"
            raise ValueError(f"{problem}: leave of_blocks=False away from its OutputFiles")
        return self._staging.piece(self._operator, self._path_of(name), block)

    def finish(self, name: str) -> None:
        self._staging.finish(self._operator, self._path_of(name))

    def write_at(self, key: str, offset: int, content: Any, /) -> None:
        self._regions.write_at(key, offset, content)

    def copy_at(self, key: str, offset: int, path: str, length: int) -> int:
        return self._regions.copy_at(key, offset, path, length)

    def adopt(self, name: str, key: str, length: int, *, replace: bool = False) -> None:
        if not self._adopts:
            problem = f"{self._operator} adopts a file, and declares no keys of files that it will adopt"
            raise ValueError(f"{problem}: pass incomplete to its OutputFiles")
        self._staging.adopt(self._operator, self._path_of(name), key, length, replace=replace)

    @property
    def began(self) -> datetime | None:
        place = self._staging.place
        return place.began

    def wake(self, name: str, at: datetime) -> None:
        self._staging.wake(self._operator, self._path_of(name), at)


def next_wake(files: Iterable[Part], operators: Container[str], after: datetime | None) -> datetime | None:
    """When the next window is wanted for an incomplete file; None if no file waits for one.

    The last piece of a file counts. A window that began at `after` has answered all earlier requests.
    """
    last = {part.file: part for part in in_order(files) if part.operator in operators}
    wakes = (part.wake for part in last.values() if part.wake is not None)
    return min((at for at in wakes if after is None or at > after), default=None)
