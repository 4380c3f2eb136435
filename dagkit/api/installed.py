"""Installed code: Python, libraries and dagkit. Workers have it installed, or get the whole package."""

import os
import site
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_DAGKIT = Path(__file__).parents[1]


def is_installed(file: str) -> bool:
    """Whether a file belongs to Python, a library or dagkit. It compares text, ten times as fast as Path objects."""
    return file.startswith((*_libraries(), *(f"{folder}{os.sep}" for folder in own_folders())))


def own_folders() -> list[Path]:
    """The folders of dagkit and, if imported, of its operator library. In a checkout they are not among libraries."""
    library = sys.modules.get("dagkit_operators")
    beside = [Path(library.__file__).parent] if library is not None and library.__file__ else []
    return [_DAGKIT, *beside]


@cache
def _libraries() -> tuple[str, ...]:
    """The folders in which a new Python process, such as a worker, finds libraries.

    These are its own, those of the user, and those that a .pth file adds.
    """
    folders: list[str] = [
        *(sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")),
        *site.getsitepackages(),
        site.getusersitepackages(),
    ]
    lent = [place for folder in folders if folder for place in _lent_in(Path(folder))]
    return tuple(dict.fromkeys(f"{folder}{os.sep}" for folder in [*map(Path, filter(None, folders)), *lent]))


def _lent_in(folder: Path) -> Iterator[Path]:
    """The site-packages folders that .pth files in a folder add, as in an environment based on another one.

    Other folders in .pth files hold code that is installed in development mode, so they do not count as libraries.
    """
    # The home of another user may be closed, and no worker finds what is there.
    if not os.access(folder, os.R_OK | os.X_OK):
        return
    for lending in sorted(folder.glob("*.pth")):
        for line in lending.read_text(encoding="utf-8", errors="replace").splitlines():
            place = folder / line.strip()
            if place.name in ("site-packages", "dist-packages"):
                yield place
