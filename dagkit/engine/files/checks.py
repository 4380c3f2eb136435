"""Whether files can be where they belong: their folders before a window, and before a commit what it names.

No file takes the place of one that was whole before, and nothing is named that is not there.
"""

import tempfile
from collections.abc import Iterable, Sequence
from typing import ClassVar

from dagkit.api.files import output_files
from dagkit.engine.files.local_folder import LocalFolder, make_folder
from dagkit.engine.files.open_folder import folder_at
from dagkit.engine.files.pieces import look_at
from dagkit.engine.files.staging import Part
from dagkit.engine.program.program import Program
from dagkit.errors import RunFailure, Scene, printable

_BEGAN = "began"
"""A folder that holds one whose name is when the application first wrote, as the clock of its own storage has it."""


class FolderRefused(RunFailure):
    """An operator cannot write to its output folder; nothing was read yet."""

    code = "folder-refused"
    exit_code: ClassVar[int] = 5

    def __init__(self, operator: str, folder: LocalFolder, error: OSError) -> None:
        super().__init__(
            f"{operator} cannot write to {printable(str(folder.path))}: {error.strerror}; nothing was read",
            f"fix this, or set another output folder for {operator}",
            Scene(operator),
        )


class PiecesUnseen(RunFailure):
    """The driver does not find what executors report to have staged; nothing of the window was committed."""

    code = "pieces-unseen"

    def __init__(self, window: int, application_path: str, missed: Sequence[Part], count: int) -> None:
        first = missed[0]
        super().__init__(
            f"{len(missed)} of {count} pieces that window {window} staged are not in {printable(application_path)} as "
            f"they were written, {first.part} of {printable(first.file)} among them; nothing of the window was "
            "committed",
            "set an APPLICATION_PATH on storage that the driver and all executors share",
            Scene(first.operator, window),
        )


class FileWrittenAgain(RunFailure):
    """A window wrote to a file that was complete before; nothing of the window was committed."""

    code = "file-rewritten"

    def __init__(self, part: Part) -> None:
        super().__init__(
            f"{part.operator} wrote to {printable(part.file)} in window {part.window}, and a complete file of that "
            "name was made since this application began; it was not replaced, and nothing of the window was committed",
            f"give {part.operator} names or a file_path that nothing else writes to, or move that file away; then "
            "launch again",
            Scene(part.operator, part.window),
        )


def make_output_folders(program: Program, home: str, *, durable: bool) -> None:
    """Each folder of this machine that an operator writes files to is there, and takes a file."""
    for name, partitions in program.operators.items():
        declared = output_files(type(partitions[0])).values()
        folders = (folder_at(each.directory(operator), home) for operator in partitions for each in declared)
        for folder in dict.fromkeys(each for each in folders if isinstance(each, LocalFolder)):
            try:
                make_folder(folder.path, durable=durable)
                tempfile.TemporaryFile(dir=folder.path).close()
            except OSError as error:
                raise FolderRefused(name, folder, error) from error


def refuse_unseen(parts: Sequence[Part], application_path: str) -> None:
    """Returns only if every staged piece is there, as long as it was when it was closed."""
    staged, home = [part for part in parts if part.part], folder_at(application_path)
    seen = look_at([home.path_of(part.part) for part in staged])
    missed = [part for part, found in zip(staged, seen, strict=True) if found is None or found.length != part.length]
    if missed:
        raise PiecesUnseen(missed[0].window, application_path, missed, len(staged))


def refuse_written_again(parts: Iterable[Part], began: int) -> list[str]:
    """Returns only if none of the files is there; tells of those that are older than the application, and replaced.

    Nothing is to be remembered for this: whatever this application ever finished is as young as its folder, or younger.
    """
    by_file = {part.file: part for part in parts}
    older = []
    for part, found in zip(by_file.values(), look_at(list(by_file)), strict=True):
        if found is None:
            continue
        if found.changed is None or found.changed >= began:
            raise FileWrittenAgain(part)
        older.append(part.file)
    return older


def when_began(application_path: str) -> int:
    """When the application first wrote, by the clock of its storage; noted now where it never was."""
    noted = folder_at(application_path).below(_BEGAN)
    known = [int(name) for name in noted.folders() if name.isdecimal()]
    if known:
        return min(known)
    probe = noted.below("now")
    probe.make()
    probe.create("now").close()
    found = look_at([probe.path_of("now")])[0]
    began = 0 if found is None or found.changed is None else found.changed
    noted.below(str(began)).make()
    probe.remove()
    return began
