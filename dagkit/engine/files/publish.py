"""Finishing: committed pieces become files that anybody may read. It may be done again, whoever was killed over it."""

import logging
from collections.abc import Iterable, Mapping

from dagkit.engine.files import open_folder
from dagkit.engine.files.open_folder import folder_at
from dagkit.engine.files.pieces import Piece, is_in_place, look_at, remove
from dagkit.engine.files.staging import Part, StagingPlace

_logger = logging.getLogger(__name__)
_BEGUN = "finishing"
"""A folder that holds one of the name of the window whose files are being put in place."""
_FINISHED = "finished"
"""A folder that holds one of the name of the last window whose files were all put in place."""


def pieces_of(parts: Iterable[Part], application_path: str) -> list[Piece]:
    """The pieces of one file, in the order in which they make it up, by their whole paths."""
    home = folder_at(application_path)
    return [Piece(home.path_of(part.part), part.length) for part in in_order(parts)]


def in_order(parts: Iterable[Part]) -> list[Part]:
    """What was written to one file, in the order in which it belongs there."""
    return sorted((part for part in parts if part.part), key=lambda p: (p.order, p.window, p.slot, p.part))


def put_in_place(files: Mapping[str, Iterable[Part]], application_path: str, *, durable: bool) -> None:
    """Make each file of its pieces."""
    for file, parts in files.items():
        open_folder.put_in_place(pieces_of(parts, application_path), file, durable=durable)


def refuse_lost(files: Mapping[str, Iterable[Part]], application_path: str) -> None:
    """Returns only if each file is whole, or can be made; nobody has begun with them, so that nobody took one away."""
    for file, parts in files.items():
        is_in_place(pieces_of(parts, application_path), file)


def still_to_place(files: Mapping[str, list[Part]], application_path: str) -> dict[str, list[Part]]:
    """Those of the files that nobody has put in place, where somebody had begun with them.

    A piece is gone when its file is there, and pieces go in their order. So one whose first pieces are gone was there,
    and is anybody's; what is left of it goes.
    """
    rest = {}
    for file, parts in files.items():
        pieces = pieces_of(parts, application_path)
        whole, *seen = look_at([file, *(piece.path for piece in pieces)])
        left = [piece for piece, found in zip(pieces, seen, strict=True) if found is not None]
        taken = left != pieces and left == pieces[len(pieces) - len(left) :]
        if taken and (whole is None or whole.length != sum(piece.length for piece in pieces)):
            _logger.warning("%s was put in place, and somebody has taken or changed it since", file)
            remove([piece.path for piece in left])
        else:
            rest[file] = parts
    return rest


def note_begun(application_path: str, window_id: int, *, durable: bool) -> None:
    """From now on a file of this window may be in place, and taken away again."""
    noted = folder_at(application_path).below(_BEGUN).below(str(window_id))
    noted.make()
    if durable:
        noted.sync(levels=3)


def is_begun(application_path: str, window_id: int) -> bool:
    """Whether somebody began to put the files of this window in place."""
    return str(window_id) in folder_at(application_path).below(_BEGUN).folders()


def note_finished(application_path: str, window_id: int) -> None:
    """From now on the files of this window are anybody's: whoever takes one away takes nothing that is missed."""
    home = folder_at(application_path)
    before = home.below(_FINISHED).folders()
    home.below(_FINISHED).below(str(window_id)).make()
    for noted, windows, upto in ((_FINISHED, before, window_id - 1), (_BEGUN, home.below(_BEGUN).folders(), window_id)):
        for window in windows:
            if int(window) <= upto:  # later ones are another driver's, which has gone on
                home.below(noted).below(window).remove()


def is_finished(application_path: str, window_id: int) -> bool:
    """Whether all files of this window were put in place before."""
    return str(window_id) in folder_at(application_path).below(_FINISHED).folders()


def attempts_in(parts: Iterable[Part]) -> set[str]:
    """The folders of the attempts that staged pieces."""
    return {part.part.rsplit("/", 2)[0] for part in parts if part.part}


def staged_in(parts: Iterable[Part]) -> set[str]:
    """The windows in whose folders pieces lie."""
    return {part.part.split("/")[1] for part in parts if part.part}


def sweep(application_path: str, needed: Iterable[str], upto: int) -> list[str]:
    """Of what windows staged up to this one, only the folders of these are there; tells of whom there is a later one.

    Those are no business of whoever committed this one: another driver may have gone on, and committed them.
    """
    staging, kept, later = folder_at(application_path).below("staging"), set(needed), []
    for window in staging.folders():
        if not window.isdecimal():  # somebody else's
            continue
        if int(window) > upto:
            later.append(window)
        elif window not in kept:
            staging.below(window).remove()
    return later


def sweep_windows(application_path: str, windows: Iterable[str]) -> None:
    """The folders of these windows are gone."""
    for window in windows:
        folder_at(application_path).below(f"staging/{window}").remove()


def sweep_attempts(application_path: str, attempts: Iterable[StagingPlace]) -> None:
    """What these attempts staged is gone, and the folders of windows that hold nothing else."""
    home = folder_at(application_path)
    for attempt in attempts:
        home.below(attempt.folder).remove()
        home.below(f"staging/{attempt.window}").remove_if_empty()
