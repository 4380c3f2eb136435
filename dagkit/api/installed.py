"""Installed code: nobody wrote it for an application, and it is wherever one runs, or is sent there as a whole."""

import os
import site
import sys
import sysconfig
from functools import lru_cache
from pathlib import Path

_DAGKIT = Path(__file__).parents[1]


def is_installed(file: str) -> bool:
    """Whether a file is Python's, a library's, or dagkit's own; as text, for paths would take ten times as long."""
    return file.startswith((*_libraries(tuple(sys.path)), *(f"{folder}{os.sep}" for folder in own_folders())))


def own_folders() -> list[Path]:
    """Where dagkit lies, and the operator library where that is in use: in a checkout neither is among libraries."""
    library = sys.modules.get("dagkit_operators")
    beside = [Path(library.__file__).parent] if library is not None and library.__file__ else []
    return [_DAGKIT, *beside]


@lru_cache(maxsize=1)
def _libraries(path: tuple[str, ...]) -> tuple[str, ...]:
    """Where this Python finds libraries: its own, its user's, and those of an environment that this one stands on."""
    folders = (
        *(sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")),
        *site.getsitepackages(),
        site.getusersitepackages(),
        *(place for place in path if place.endswith(("site-packages", "dist-packages"))),
    )
    return tuple(dict.fromkeys(f"{Path(folder)}{os.sep}" for folder in folders if folder))
