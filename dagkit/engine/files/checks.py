"""Check that files can be put in place: their folders before the first window, their pieces before each commit.

No file replaces one that this application completed before, and a commit names only pieces that exist.
"""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from dagkit.api.files import output_files
from dagkit.engine.files.folders import Folder, LocalFolder, folder_at, make_folder
from dagkit.engine.files.pieces import look_at, remedy_of
from dagkit.engine.files.staging import Part
from dagkit.engine.program.program import Program
from dagkit.errors import RunFailure, Scene, printable
from dagkit.ground.urls import absolute, as_text, is_url, local_path, plain

BEGAN = "began"
"""A folder whose only entry is named by the time of the application's first write, by the clock of its storage."""


def _folder_refused(operator: str, folder: str, error: OSError) -> RunFailure:
    """An operator cannot write to its output folder; nothing was read yet."""
    at = folder.partition("?")[0] if is_url(folder) else local_path(folder)
    file = next((place for place in (Path(at), *Path(at).parents) if place.is_file()), None)
    reason = error.strerror or str(error) if file is None else f"{printable(str(file))} is a file, not a folder"
    return RunFailure(
        f"{operator} cannot write to {printable(at)}: {reason}; nothing was read",
        f"{remedy_of(error) if file is None else 'move that file'}, or set another output folder for {operator}",
        Scene(operator),
        code="folder-refused",
    )


def _pieces_unseen(window: int, application_path: str, missed: Sequence[Part], count: int) -> RunFailure:
    """The driver does not find pieces that executors staged; nothing of the window was committed."""
    first = missed[0]
    return RunFailure(
        f"{len(missed)} of {count} pieces that window {window} staged are not in {printable(application_path)} as "
        f"they were written, {first.part} of {printable(first.file)} among them; nothing of the window was "
        "committed",
        "set an APPLICATION_PATH on storage that the driver and all executors share",
        Scene(first.operator, window),
        code="pieces-unseen",
    )


def _begin_unnoted(application_path: str, error: OSError) -> RunFailure:
    """When the application first wrote cannot be noted or read; no window was run."""
    return RunFailure(
        f"when the application first wrote cannot be noted in {printable(application_path)}: {error}; nothing of "
        "the window was committed",
        "allow reading and writing there, or free some space, then launch again",
        code="begin-unnoted",
    )


def _file_rewritten(part: Part) -> RunFailure:
    """A window wrote to a file that was complete before; nothing of the window was committed."""
    return RunFailure(
        f"{part.operator} wrote to {printable(part.file)} in window {part.window}, and a complete file of that "
        "name was made since this application began; it was not replaced, and nothing of the window was committed",
        f"give {part.operator} names or a file_path that nothing else writes to, or move that file away; then "
        "launch again",
        Scene(part.operator, part.window),
        code="file-rewritten",
    )


def _file_blocked(part: Part, reason: str) -> RunFailure:
    """A window wrote to a file that can never be put in place; nothing of the window was committed."""
    return RunFailure(
        f"{part.operator} wrote to {printable(part.file)} in window {part.window}, which can never be put in "
        f"place: {reason}; nothing of the window was committed",
        f"let {part.operator} write to another file, and launch again",
        Scene(part.operator, part.window),
        code="file-blocked",
    )


def make_output_folders(program: Program, home: str, *, durable: bool) -> None:
    """Create each output folder on this machine and check that it is writable, and that others can be opened.

    Raise `folder-refused` otherwise.
    """
    for name, places in output_places(program, home).items():
        for place in places:
            try:
                folder = folder_at(place)
                if isinstance(folder, LocalFolder):
                    make_folder(folder.path, durable=durable)
                    tempfile.TemporaryFile(dir=folder.path).close()
            except OSError as error:
                raise _folder_refused(name, place, error) from error


def output_places(program: Program, home: str) -> Mapping[str, tuple[str, ...]]:
    """The folders, or URLs, into which each operator writes files."""
    found = {
        name: tuple(
            dict.fromkeys(
                absolute(str(declaration.directory(operator)), home)
                for operator in partitions
                for declaration in output_files(type(partitions[0])).values()
            )
        )
        for name, partitions in program.operators.items()
    }
    return {name: places for name, places in found.items() if places}


def begun_elsewhere(program: Program, home: str, parts: Iterable[Part]) -> Mapping[str, list[str]]:
    """The incomplete files, by operator, that lie in no folder into which the operator writes now."""
    folders = {
        name: tuple(f"{plain(place).rstrip('/')}/" for place in places)
        for name, places in output_places(program, home).items()
    }
    found: dict[str, dict[str, None]] = {}
    for part in parts:
        now = folders.get(part.operator)
        if now and not part.is_external and not plain(part.file).startswith(now):
            found.setdefault(part.operator, {})[part.file] = None
    return {name: list(files) for name, files in found.items()}


def refuse_unseen(parts: Sequence[Part], application_path: str) -> None:
    """Raise `pieces-unseen` unless every staged piece exists with the length that it had when it was closed."""
    # Executors on other machines may not share the folder of the driver.
    staged, home = [part for part in parts if part.part], folder_at(application_path)
    seen = look_at([home.path_of(part.part) for part in staged])
    missed = [part for part, found in zip(staged, seen, strict=True) if found is None or found.length != part.length]
    if missed:
        raise _pieces_unseen(missed[0].window, application_path, missed, len(staged))


def refuse_written_again(parts: Iterable[Part], began: int) -> list[str]:
    """Raise `file-rewritten` if the application completed one of the files before; return older files.

    This needs no record: every file that this application completed is as young as its folder, or younger.
    """
    by_file = {part.file: part for part in parts}
    older = []
    for part, found in zip(by_file.values(), look_at(list(by_file)), strict=True):
        if found is None or part.replaces:
            continue
        if found.changed is None or found.changed >= began:
            raise _file_rewritten(part)
        older.append(part.file)
    return older


MOST_FOLDERS = 100_000
"""How many folders are remembered: windows may name a folder each."""


def refuse_blocked(parts: Iterable[Part], incomplete: Iterable[Part], known: set[str]) -> None:
    """Raise `file-blocked` for a local file with a name that a folder has, or below a file.

    `incomplete` files were examined when they were written. `known` has the folders that were seen before. Object
    stores have no folders.
    """
    if len(known) > MOST_FOLDERS:
        known.clear()
    written = {part.file: part for part in parts if not is_url(part.file)}
    by_file = {part.file: part for part in incomplete if not is_url(part.file)} | written
    for file, part in (written if known else by_file).items():
        for folder in Path(local_path(file)).parents:
            place = as_text(str(folder))
            if place in by_file or folder.is_file():
                raise _file_blocked(part, f"{printable(place)} is a file")
            if place in known:
                break
            known.add(place)
    for file, part in written.items():
        if file in known or Path(local_path(file)).is_dir():
            raise _file_blocked(part, "it is a folder")


def when_began(application_path: str) -> int:
    """Return when the application first wrote, by the clock of its storage; the first call records it."""
    try:
        return _noted_in(folder_at(application_path).below(BEGAN))
    except OSError as error:
        raise _begin_unnoted(application_path, error) from error


def _noted_in(noted: Folder) -> int:
    known = [int(name) for name in noted.folders() if name.isdecimal()]
    if known:
        # two drivers may have noted one each at the same time; both began with the earlier one, or later
        return min(known)
    # A file is compared with the time at which its storage wrote this one: clocks of other machines differ from it.
    probe = noted.below("now")
    probe.make()
    probe.create("now").close()
    found = look_at([probe.path_of("now")])[0]
    began = 0 if found is None or found.changed is None else found.changed
    noted.below(str(began)).make()
    probe.remove()
    return began
