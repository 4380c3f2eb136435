"""Gathering: what is staged for a file that nobody finishes is put together now and then, so that memory stays small.

The new piece counts only once a commit names it; until then the old ones are there, and they go after that.
"""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dagkit.engine.files.open_folder import folder_at, write_together
from dagkit.engine.files.pieces import PiecesLost, remove
from dagkit.engine.files.publish import in_order, pieces_of
from dagkit.engine.files.staging import Part, StagingFailed, StagingPlace, by_file

MOST_PIECES = 32
"""Pieces that a file of no block is kept in."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """The pieces that a checkpoint is to name, and those that it no longer names."""

    files: tuple[Part, ...]
    replaced: tuple[Part, ...] = ()


def gathered(pieces: Sequence[Part], attempt: StagingPlace) -> Gathered:
    """Put the files that belong to no block together, in as many pieces as they are kept in, staged by this attempt.

    The pieces of a block stay what they are: what is still to be read of it belongs between them.
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
    """The files of no block that are in too many pieces, each in its order."""
    loose = by_file(part for part in parts if part.element_id is None and part.part)
    return [in_order(pieces) for pieces in loose.values() if len(pieces) > MOST_PIECES]


def last_ones(parts: Sequence[Part]) -> list[Part]:
    """The last pieces, from the first on that is not longer than all that follow it.

    Long ones are left alone until as much has come again, so that a byte is copied as often as its file doubles.
    """
    first, rest = 0, sum(part.length for part in parts)
    while first < len(parts) - 2:
        rest -= parts[first].length
        if parts[first].length <= rest:
            break
        first += 1
    return list(parts[first:])


def forget(replaced: Sequence[Part], application_path: str) -> None:
    """The pieces are gone: a commit has named the one that holds them all."""
    home = folder_at(application_path)
    remove([home.path_of(part.part) for part in replaced])


def _together(parts: Sequence[Part], attempt: StagingPlace) -> Part:
    """One piece that holds them all, and stands where the last of them stood."""
    last, inner, name = parts[-1], f"{attempt.folder}/{secrets.token_hex(8)}", "gathered.part"
    below, pieces = folder_at(attempt.application_path).below(inner), pieces_of(parts, attempt.application_path)
    try:
        below.make()
        write_together(pieces, below, name, durable=attempt.durable)
    except FileNotFoundError as error:
        raise PiecesLost(last.file) from error
    except OSError as error:
        raise StagingFailed(last.file, error) from error
    return last.model_copy(update={"part": f"{inner}/{name}", "length": sum(part.length for part in parts)})
