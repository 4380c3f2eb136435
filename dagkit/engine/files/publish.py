"""Publish committed pieces as files under their final names. Safe to repeat after a crash."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from dagkit.engine.files import open_folder
from dagkit.engine.files.open_folder import folder_at
from dagkit.engine.files.pieces import Piece, is_in_place, look_at, mark_unwritten, remove
from dagkit.engine.files.regions import TOGETHER
from dagkit.engine.files.staging import Part, StagingPlace, in_order

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
    for file, parts in files.items():
        open_folder.put_in_place(pieces_of(parts, application_path), file, durable=durable)


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
    with _noting(application_path, window_id):
        noted.make()
        if durable:
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
    before = home.below(FINISHED).folders()
    with _noting(application_path, window_id):
        home.below(FINISHED).below(str(window_id)).make()
    for noted, windows, upto in ((FINISHED, before, window_id - 1), (_BEGUN, home.below(_BEGUN).folders(), window_id)):
        for window in windows:
            if int(window) <= upto:  # later ones are another driver's, which has gone on
                home.below(noted).below(window).remove()


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
