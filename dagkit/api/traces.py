"""Find the lines of an author's code in a traceback, and format them for reports."""

import itertools
import os
import traceback
from functools import lru_cache
from pathlib import Path

from dagkit.api.installed import is_installed
from dagkit.errors import Where

_SHOWN = 8


def author_frames(raised: BaseException) -> list[traceback.FrameSummary]:
    """The frames of the traceback that are neither dagkit's nor a library's, outermost first."""
    return [frame for frame in traceback.extract_tb(raised.__traceback__) if is_authored(frame.filename)]


def is_authored(filename: str) -> bool:
    """Whether a line of this file was written by the author of an application."""
    return not filename.startswith("<") and not is_installed(filename)


def author_where(raised: BaseException) -> Where | None:
    """The innermost line of the author in the traceback; None if there is none."""
    # A file that cannot be parsed never runs, so no frame of the traceback lies in it.
    if isinstance(raised, SyntaxError) and raised.filename and is_authored(raised.filename):
        return Where(shown_path(raised.filename), raised.lineno)
    frames = author_frames(raised)
    return Where(shown_path(frames[-1].filename), frames[-1].lineno) if frames else None


def author_lines(raised: BaseException) -> list[str]:
    """The last lines of the author in the traceback, outermost first. A line repeated by recursion appears once."""
    if isinstance(raised, SyntaxError) and raised.text:
        return [f"{author_where(raised) or raised.filename}: {raised.text.strip()}"]
    lines = [f"{Where(shown_path(f.filename), f.lineno)} in {f.name}: {f.line}" for f in author_frames(raised)]
    distinct = [line for line, _ in itertools.groupby(lines)]
    omitted = [f"… {len(distinct) - _SHOWN} lines left out"] if len(distinct) > _SHOWN else []
    return omitted + distinct[-_SHOWN:]


def spoken(raised: BaseException) -> str:
    """The exception in one line, as Python prints it."""
    lines = "".join(traceback.format_exception_only(raised)).strip().splitlines()
    # Before the message of a SyntaxError, Python prints the lines of the file. After other messages come their further
    # lines and their notes.
    return lines[-1] if isinstance(raised, SyntaxError) else lines[0]


def summary(raised: BaseException) -> str:
    """The class and message of an exception; the class alone if its `__str__` raises."""
    try:
        return f"{type(raised).__name__}: {raised}"
    except Exception:  # noqa: BLE001 - `__str__` of the author's exception may raise any exception
        return type(raised).__name__


def shown_path(filename: str) -> str:
    """The path for reports: relative to the working directory if the file is below it."""
    return _shown_from(os.getcwd(), filename)  # noqa: PTH109 - called for every line that an author writes


@lru_cache(maxsize=4096)
def _shown_from(folder: str, filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(folder)) if path.is_absolute() and path.is_relative_to(folder) else filename
