"""Exceptions raised in an author's code: which lines are the author's, and how they are shown."""

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
    """The author's line that raised, or whose call did."""
    if isinstance(raised, SyntaxError) and raised.filename and is_authored(raised.filename):
        return Where(shown_path(raised.filename), raised.lineno)
    frames = author_frames(raised)
    return Where(shown_path(frames[-1].filename), frames[-1].lineno) if frames else None


def author_lines(raised: BaseException) -> list[str]:
    """The author's own lines on the way to the exception, the one that raised last; recursion is shown once."""
    if isinstance(raised, SyntaxError) and raised.text:
        return [f"{author_where(raised) or raised.filename}: {raised.text.strip()}"]
    lines = [f"{Where(shown_path(f.filename), f.lineno)} in {f.name}: {f.line}" for f in author_frames(raised)]
    told = [line for line, _ in itertools.groupby(lines)]
    left_out = [f"… {len(told) - _SHOWN} lines left out"] if len(told) > _SHOWN else []
    return left_out + told[-_SHOWN:]


def spoken(raised: BaseException) -> str:
    """The exception in one line, as Python says it."""
    lines = "".join(traceback.format_exception_only(raised)).strip().splitlines()
    return lines[-1] if isinstance(raised, SyntaxError) else lines[0]


def told(raised: BaseException) -> str:
    """The exception by its class and what it says, if it can say it."""
    try:
        return f"{type(raised).__name__}: {raised}"
    except Exception:  # noqa: BLE001 - the author's exception may fail to say anything
        return type(raised).__name__


def shown_path(filename: str) -> str:
    """The path as reports show it: from the working directory where the file lies below it."""
    return _shown_from(os.getcwd(), filename)  # noqa: PTH109 - asked for every line that an author writes


@lru_cache(maxsize=4096)
def _shown_from(folder: str, filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(folder)) if path.is_absolute() and path.is_relative_to(folder) else filename
