"""Publish committed pieces as files under their final names, and join the pieces of files that are not complete yet.

Publishing is safe to repeat after a crash. Pieces are joined now and then, so that checkpoints stay small; a joined
piece counts once a commit names it, and the old ones are removed after that.
"""

import logging
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from dagkit.engine.files import folders
from dagkit.engine.files.folders import folder_at, write_together
from dagkit.engine.files.pieces import Piece, PiecesLost, is_in_place, look_at, mark_unwritten, remove, staging_failed
from dagkit.engine.files.regions import TOGETHER
from dagkit.engine.files.staging import Part, StagingPlace, by_file, in_order
from dagkit.errors import RunFailure

_logger = logging.getLogger(__name__)
_BEGUN = "finishing"
"""A folder whose entry names the window whose files are being put in place."""
FINISHED = "finished"
"""A folder whose entry names the last window whose files are all in place."""


def pieces_of(parts: Iterable[Part], application_path: str) -> list[Piece]:
    """The pieces of one file with their whole paths, in file order."""
    home = folder_at(application_path)
    return [Piece(home.path_of(part.part), part.length) for part in in_order(parts)]


def put_in_place(files: Mapping[str, Iterable[Part]], application_path: str, *, durable: bool) -> None:
    """Assemble each file from its pieces."""
    for file, parts in ((file, list(parts)) for file, parts in files.items()):
        try:
            folders.put_in_place(pieces_of(parts, application_path), file, durable=durable)
        except RunFailure as error:
            error.scene = replace(error.scene, operator=parts[0].operator)
            raise


def refuse_lost(files: Mapping[str, Iterable[Part]], application_path: str) -> None:
    """Raise `PiecesLost` unless each file is complete or can be assembled; call it before the first is put in place."""
    for file, parts in files.items():
        is_in_place(pieces_of(parts, application_path), file)


def still_to_place(files: Mapping[str, list[Part]], application_path: str) -> dict[str, list[Part]]:
    """Return the files that an interrupted run has not put in place.

    Pieces are removed in order, after their file is complete. So a file whose first pieces are gone was in place, and
    other programs may have taken it since; remove its remaining pieces.
    """
    rest = {}
    for file, parts in files.items():
        pieces = pieces_of(parts, application_path)
        whole, *seen = look_at([file, *(piece.path for piece in pieces)])
        left = [piece for piece, found in zip(pieces, seen, strict=True) if found is not None]
        taken = left != pieces and left == pieces[len(pieces) - len(left) :]
        if taken and (whole is None or whole.length != sum(piece.length for piece in pieces)):
            _logger.warning("%s was put in place, and has been removed or changed since", file)
            remove([piece.path for piece in left])
        else:
            rest[file] = parts
    return rest


def note_begun(application_path: str, window_id: int, *, durable: bool) -> None:
    """Record that files of this window may be in place from now on, and may be taken away by other programs."""
    noted = folder_at(application_path).below(_BEGUN).below(str(window_id))
    # Durable before the first rename: without it, after a power cut, a file that other programs took would count as
    # lost.
    with _noting(application_path, window_id):
        noted.make()
        if durable:
            # the entry, the folder of entries, and the application's folder
            noted.sync(levels=3)


@contextmanager
def _noting(application_path: str, window_id: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise mark_unwritten(application_path, window_id, error) from error


def is_begun(application_path: str, window_id: int) -> bool:
    """Whether a run has begun to put the files of this window in place."""
    return str(window_id) in folder_at(application_path).below(_BEGUN).folders()


def note_finished(application_path: str, window_id: int) -> None:
    """Record that the files of this window are in place; dagkit no longer needs them there."""
    home = folder_at(application_path)
    with _noting(application_path, window_id):
        # Not synced: a launch that does not find it takes the steps again. So the mark of the begin stays until the
        # next window.
        home.below(FINISHED).below(str(window_id)).make()
    for noted in (home.below(FINISHED), home.below(_BEGUN)):
        for window in noted.folders():
            if int(window) < window_id:  # later ones are those of a driver that has taken over
                noted.below(window).remove()


def is_finished(application_path: str, window_id: int) -> bool:
    """Whether all files of this window were put in place before."""
    return str(window_id) in folder_at(application_path).below(FINISHED).folders()


def attempts_in(parts: Iterable[Part]) -> set[str]:
    """The folders of the attempts that staged pieces."""
    return {part.part.rsplit("/", 2)[0] for part in parts if part.part}


def staged_in(parts: Iterable[Part]) -> set[str]:
    """The windows whose folders contain pieces."""
    return {part.part.split("/")[1] for part in parts if part.part}


def sweep(application_path: str, needed: Iterable[str], upto: int, *, regions: bool = False) -> list[str]:
    """Remove the staging folders of windows up to `upto` except the needed ones; return the names of later folders.

    Later folders stay, since another driver may have committed those windows. With `regions`, also remove the files
    that slots wrote together, except the needed ones.
    """
    staging, kept, later = folder_at(application_path).below("staging"), set(needed), []
    for window in staging.folders():
        if regions and window.startswith(TOGETHER) and window not in kept:
            staging.below(window).remove()
        if not window.isdecimal():  # such a file, or a folder that dagkit did not create
            continue
        if int(window) > upto:
            later.append(window)
        elif window not in kept:
            staging.below(window).remove()
    return later


def sweep_windows(application_path: str, windows: Iterable[str]) -> None:
    """Remove the staging folders of these windows."""
    for window in windows:
        folder_at(application_path).below(f"staging/{window}").remove()


def sweep_attempts(application_path: str, attempts: Iterable[StagingPlace]) -> None:
    """Remove the pieces of these attempts, and the folders of windows that become empty."""
    home = folder_at(application_path)
    for attempt in attempts:
        home.below(attempt.folder).remove()
        home.below(f"staging/{attempt.window}").remove_if_empty()


# The checkpoint names each of them until the file is complete.
MOST_PIECES = 32
"""The highest number of pieces of a file that belongs to no block."""


def gathered(pieces: Sequence[Part], attempt: StagingPlace) -> tuple[Sequence[Part], Sequence[Part]]:
    """Join the pieces of files that belong to no block, if they are too many; this attempt stages the result.

    Return the pieces for the next checkpoint, and those that it no longer names.

    The pieces of a block stay separate: the output of its unread parts belongs between them.
    """
    files, replaced = list(pieces), list[Part]()
    for parts in many(pieces):
        several = last_ones(parts)
        whole = _together(several, attempt)
        old = {part.part for part in several}
        files = [*(part for part in files if part.part not in old), whole]
        replaced += several
    return files, replaced


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
