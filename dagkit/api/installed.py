"""Installed code: not written for one application, and either installed on workers or shipped to them whole."""

import os
import site
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_DAGKIT = Path(__file__).parents[1]


def is_installed(file: str) -> bool:
    """Whether a file is Python's, a library's, or dagkit's own; as text, for paths would take ten times as long."""
    return file.startswith((*_libraries(), *(f"{folder}{os.sep}" for folder in own_folders())))


def own_folders() -> list[Path]:
    """Where dagkit lies, and the operator library where that is in use: in a checkout neither is among libraries."""
    library = sys.modules.get("dagkit_operators")
    beside = [Path(library.__file__).parent] if library is not None and library.__file__ else []
    return [_DAGKIT, *beside]


@cache
def _libraries() -> tuple[str, ...]:
    """Where a newly started Python, such as a worker, finds libraries: its own, its user's, and borrowed ones."""
    folders: list[str] = [
        *(sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")),
        *site.getsitepackages(),
        site.getusersitepackages(),
    ]
    lent = [place for folder in folders if folder for place in _lent_in(Path(folder))]
    return tuple(dict.fromkeys(f"{folder}{os.sep}" for folder in [*map(Path, filter(None, folders)), *lent]))


def _lent_in(folder: Path) -> Iterator[Path]:
    """Other folders of libraries that are named there, as by an environment that stands on another one.

    Other folders named there hold code installed for development.
    """
    for lending in sorted(folder.glob("*.pth")):
        for line in lending.read_text(encoding="utf-8", errors="replace").splitlines():
            place = folder / line.strip()
            if place.name in ("site-packages", "dist-packages"):
                yield place
