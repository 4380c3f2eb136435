"""Open the folder at a path or a URL, and assemble files there."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dagkit.engine.files.folder import Folder
from dagkit.engine.files.local_folder import LocalFolder
from dagkit.engine.files.pieces import Piece, pour
from dagkit.engine.files.remote_folder import RemoteFolder
from dagkit.ground.urls import is_url, local_path, parent, resolved


def folder_at(place: Any, home: str = "") -> Folder:
    """The folder at a path or a URL; a relative path starts from `home`, else from the working directory."""
    text = str(place)
    if not is_url(text):
        return LocalFolder((Path(home) / local_path(text)).absolute())
    filesystem, path, _ = resolved(text)
    return RemoteFolder(filesystem, text, path.rstrip("/"))


def put_in_place(pieces: Sequence[Piece], file: str, *, durable: bool) -> None:
    """Assemble a file from its pieces, wherever they are, and remove the pieces."""
    folder_at(parent(file)).put_in_place(pieces, file, durable=durable)


def write_together(pieces: Sequence[Piece], folder: Folder, name: str, *, durable: bool) -> None:
    """Write a new file with the content of the pieces in order; keep the pieces."""
    with folder.create(name) as sink:
        pour([piece.path for piece in pieces], sink)
        sink.flush()
        if durable and isinstance(folder, LocalFolder):
            os.fsync(sink.fileno())
    if durable:
        folder.sync(levels=5)
