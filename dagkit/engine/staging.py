"""Staging: what a window writes lies under a name of the attempt, until the commit says which attempt it was.

APPLICATION_PATH/staging/<window>/<attempt>/<task>/<number>.part
"""

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar

from pydantic import BaseModel, ConfigDict

from dagkit.engine.failures import Failure, OperatorFailed
from dagkit.engine.places import Folder, folder_at
from dagkit.errors import DagkitError


class StagingFailed(DagkitError):
    """What a window writes cannot be staged; nothing of the window was committed."""

    exit_code: ClassVar[int] = 7

    def __init__(self, file: str, error: OSError) -> None:
        super().__init__(
            f"a piece of {file} cannot be staged: {error}; nothing of the window was committed: make room or give the "
            "right to write, and start again"
        )
        self.file, self.error = file, error

    def __reduce__(self) -> tuple[Any, ...]:
        return StagingFailed, (self.file, self.error)


NAMED_BY_BLOCK = "let the names of files say the block, or open them for none"


class FileShared(DagkitError):
    """One file was written for two; nothing of the window was committed."""

    exit_code: ClassVar[int] = 7

    def __init__(self, file: str, whose: str, remedy: str) -> None:
        super().__init__(
            f"{file} was written {whose}; a file is whole with one of them, and what comes from the other would be "
            f"lost. Nothing of the window was committed: {remedy}, and start again"
        )
        self.given = file, whose, remedy

    def __reduce__(self) -> tuple[Any, ...]:
        return FileShared, self.given


def told_of(block: int | None) -> str:
    """A block in a message."""
    return "no block" if block is None else f"block {block}"


class Part(BaseModel):
    """One staged piece of one output file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    operator: str
    file: str
    """Where the file will be."""
    part: str
    """Where the piece lies, below the application's folder."""
    length: int
    order: int = 0
    """Where in the file it belongs: by this, then by window, then by slot."""
    window: int = 0
    slot: int = 0
    block: int | None = None
    """The block with which the file is whole."""
    finished: bool = False
    """Whether nothing comes after this window."""


@dataclass(frozen=True, slots=True)
class StagingPlace:
    """Where the tasks of one attempt at a window stage what they write."""

    application_path: str
    window: int
    attempt: str
    durable: bool = True
    home: str = ""
    """The folder that relative paths of operators are taken from: where the driver was started."""

    @property
    def folder(self) -> str:
        return f"staging/{self.window}/{self.attempt}"


class Staging:
    """The pieces that one task writes."""

    def __init__(self, place: StagingPlace, slot: int) -> None:
        self.place = place
        self.slot = slot
        self.folder = f"{place.folder}/{secrets.token_hex(8)}"
        self.order = 0
        """Where the stretch of work starts that is done now: what is written belongs there."""
        self._below: Folder | None = None
        self._open: dict[tuple[str, str, int], _Piece] = {}
        self._parts: list[Part] = []
        self._finished: set[tuple[str, str]] = set()
        self._count = 0

    def files(self, operator: str, directory: Any) -> "StagedFiles":
        """The files of one operator."""
        return StagedFiles(self, operator, folder_at(directory, self.place.home))

    def close_block(self, block: int) -> None:
        """The block was read as far as this window goes: what is open for it can be closed."""
        for key, piece in list(self._open.items()):
            if piece.block == block:
                self._close(key)

    def parts(self) -> list[Part]:
        """All pieces, closed, safely on disk."""
        for key in list(self._open):
            self._close(key)
        if self._below is not None and self.place.durable:
            self._below.sync(levels=5)  # the task's, those of its attempt, its window and all windows, and the home
        done = [
            part.model_copy(update={"finished": True}) if (part.operator, part.file) in self._finished else part
            for part in self._parts
        ]
        known = {(part.operator, part.file) for part in done}
        # a file of earlier windows may be finished in one that adds nothing to it
        done += [self._empty(operator, file) for operator, file in sorted(self._finished - known)]
        return done

    def abandon(self) -> None:
        """The attempt failed: nothing is open any more, and what was written counts for nothing."""
        for piece in self._open.values():
            with suppress(OSError):
                piece.stream.close()
        self._open.clear()

    def piece(self, operator: str, file: str, block: int | None) -> "_Piece":
        key = (operator, file, self.order)
        if key not in self._open:
            name = f"{self._count:08d}.part"
            self._count += 1
            try:
                if self._below is None:
                    below = folder_at(self.place.application_path).below(self.folder)
                    below.make()
                    self._below = below
                self._open[key] = _Piece(file, name, self._below.create(name), block)
            except OSError as error:
                raise StagingFailed(file, error) from error
        piece = self._open[key]
        if piece.block != block:
            raise FileShared(file, f"by {operator} for {told_of(piece.block)} and {told_of(block)}", NAMED_BY_BLOCK)
        return piece

    def finish(self, operator: str, file: str) -> None:
        self._finished.add((operator, file))

    def _close(self, key: tuple[str, str, int]) -> None:
        operator, file, order = key
        piece = self._open.pop(key)
        try:
            piece.close(durable=self.place.durable)
        except OSError as error:
            raise self._failed(operator, StagingFailed(file, error)) from error
        self._parts.append(
            Part(
                operator=operator,
                file=file,
                part=f"{self.folder}/{piece.name}",
                length=piece.length,
                order=order,
                window=self.place.window,
                slot=self.slot,
                block=piece.block,
            )
        )

    def _failed(self, operator: str, error: Exception) -> OperatorFailed:
        told = f"{type(error).__name__}: {error}"
        return OperatorFailed(Failure(operator, self.place.window, self.slot, told))

    def _empty(self, operator: str, file: str) -> Part:
        return Part(
            operator=operator, file=file, part="", length=0, window=self.place.window, slot=self.slot, finished=True
        )


class _Piece:
    """One piece that is being written."""

    def __init__(self, file: str, name: str, stream: BinaryIO, block: int | None) -> None:
        self.file = file
        self.name = name
        self.stream = stream
        self.block = block
        self.length = 0
        self._write = stream.write

    def write(self, content: Any, /) -> None:
        self.length += content.nbytes if isinstance(content, memoryview) else len(content)
        try:
            self._write(content)
        except OSError as error:
            raise StagingFailed(self.file, error) from error

    def close(self, *, durable: bool) -> None:
        self.stream.flush()
        if durable and hasattr(self.stream, "fileno"):
            os.fsync(self.stream.fileno())
        self.stream.close()


class StagedFiles:
    """The files of one operator in one slot, as its author sees them."""

    def __init__(self, staging: Staging, operator: str, directory: Folder) -> None:
        self._staging = staging
        self._operator = operator
        self._directory = directory

    def open(self, name: str, *, block: int | None = None) -> _Piece:
        return self._staging.piece(self._operator, self._directory.path_of(name), block)

    def finish(self, name: str) -> None:
        self._staging.finish(self._operator, self._directory.path_of(name))
