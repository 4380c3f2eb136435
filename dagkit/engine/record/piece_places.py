"""Where the staged pieces of an earlier window are now: still staged, or in the file that was made of them."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dagkit.engine.files.open_folder import folder_at
from dagkit.engine.files.pieces import look_at, opened
from dagkit.engine.files.staging import Part, in_order


@dataclass(frozen=True, slots=True)
class PiecePlace:
    """The place of a piece: a stretch of a file."""

    part: Part
    file: str
    offset: int

    def content(self) -> bytes:
        """The bytes of the piece."""
        content = bytearray()
        with opened(self.file) as source:
            source.seek(self.offset)
            while more := source.read(self.part.length - len(content)):
                content += more
        return bytes(content)


def place_of(part: Part, completed: Mapping[str, Sequence[Part]], application_path: str) -> PiecePlace | None:
    """Where a piece is, given the pieces of the files that its window and later ones completed.

    None if it was joined with others before, or if the file is not there any more, or was changed.
    """
    staged, pieces = folder_at(application_path).path_of(part.part), in_order(completed.get(part.file, ()))
    there, whole = look_at([staged, part.file])
    if there is not None and there.length == part.length:
        return PiecePlace(part, staged, 0)
    if whole is None or whole.length != sum(piece.length for piece in pieces):
        return None
    starts = itertools.accumulate((piece.length for piece in pieces), initial=0)
    at = next((start for start, piece in zip(starts, pieces, strict=False) if piece.part == part.part), None)
    return None if at is None else PiecePlace(part, part.file, at)
