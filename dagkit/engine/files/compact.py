"""Join the staged pieces of unfinished files now and then, so that checkpoints stay small.

A new piece counts once a commit names it; the old ones are removed after that.
"""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dagkit.engine.files.open_folder import folder_at, write_together
from dagkit.engine.files.pieces import PiecesLost, remove
from dagkit.engine.files.publish import pieces_of
from dagkit.engine.files.staging import Part, StagingPlace, by_file, in_order, staging_failed

MOST_PIECES = 32
"""The highest number of pieces of a file that belongs to no block."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """The pieces for the next checkpoint, and those that it no longer names."""

    files: tuple[Part, ...]
    replaced: tuple[Part, ...] = ()


def gathered(pieces: Sequence[Part], attempt: StagingPlace) -> Gathered:
    """Join the pieces of files that belong to no block, if they are too many; this attempt stages the result.

    The pieces of a block stay separate: the output of its unread parts belongs between them.
    """
    files, replaced = list(pieces), list[Part]()
    for parts in many(pieces):
        several = last_ones(parts)
        whole = _together(several, attempt)
        old = {part.part for part in several}
        files = [*(part for part in files if part.part not in old), whole]
        replaced += several
    return Gathered(tuple(files), tuple(replaced))


def many(parts: Iterable[Part]) -> list[list[Part]]:
    """The files that belong to no block and have too many pieces; the pieces are in order."""
    loose = by_file(part for part in parts if part.element_id is None and part.part)
    return [in_order(pieces) for pieces in loose.values() if len(pieces) > MOST_PIECES]


def last_ones(parts: Sequence[Part]) -> list[Part]:
    """The last pieces, from the first on that is not longer than all pieces after it together.

    Long pieces stay until as many bytes follow, so that a byte is copied once for each doubling of its file.
    """
    first, rest = 0, sum(part.length for part in parts)
    while first < len(parts) - 2:
        rest -= parts[first].length
        if parts[first].length <= rest:
            break
        first += 1
    return list(parts[first:])


def forget(replaced: Sequence[Part], application_path: str) -> None:
    """Remove the pieces that a committed piece replaces."""
    home = folder_at(application_path)
    remove([home.path_of(part.part) for part in replaced])


def _together(parts: Sequence[Part], attempt: StagingPlace) -> Part:
    """Join the pieces to one that takes the place of the last."""
    last, inner, name = parts[-1], f"{attempt.folder}/{secrets.token_hex(8)}", "gathered.part"
    below, pieces = folder_at(attempt.application_path).below(inner), pieces_of(parts, attempt.application_path)
    try:
        below.make()
        write_together(pieces, below, name, durable=attempt.durable)
    except FileNotFoundError as error:
        raise PiecesLost(last.file) from error
    except OSError as error:
        raise staging_failed(last.file, error) from error
    return last.model_copy(update={"part": f"{inner}/{name}", "length": sum(part.length for part in parts)})
