"""Whether the next change of a file is sure to change its time: two changes within a tick of a clock have one time."""

from dagkit.ground.urls import is_url, local_path
from dagkit_operators.filesystem.access import Found, status_of

# A file that is overwritten within the tick of its last change, with the same length, keeps its time, and the new
# content would be lost. Git's index has the same problem and compares contents; a splitter has none to compare with, so
# it leaves such a file pending. A file that is written every few milliseconds is not read until its writer pauses.
TICK_MILLIS = 20
"""More than a tick of the clock by which a system sets the times of files: on Linux at most 10 ms."""
COARSE_TICK_MILLIS = 2000
"""The coarsest resolution of a filesystem's times. Filesystems that are this coarse keep whole seconds."""

_SECOND_NANOS = 10**9


def settles_in_millis(found: Found, now_millis: int) -> int:
    """How long to wait until each later change of a file gives it another time; 0 if it does now.

    An object with a version is recognised by that. The clock of this machine must agree with the one that sets the
    times; a file with a time in the future gets an earlier one when it is changed, and is settled.
    """
    age_millis = now_millis - found.modified_millis
    if abs(age_millis) >= COARSE_TICK_MILLIS or found.version or found.is_directory:
        return 0
    tick = COARSE_TICK_MILLIS if _has_coarse_time(found) else TICK_MILLIS
    return tick - age_millis if abs(age_millis) < tick else 0


def is_settled(nanos: int, now_nanos: int) -> bool:
    """The same for a local file with this time of change."""
    tick_millis = TICK_MILLIS if nanos % _SECOND_NANOS else COARSE_TICK_MILLIS
    return abs(now_nanos - nanos) >= tick_millis * 1_000_000


def _has_coarse_time(found: Found) -> bool:
    """Whether its time may be one of whole seconds."""
    if found.modified_millis % 1000:
        return False
    status = None if is_url(found.path) else status_of(local_path(found.path))
    return status is None or not status.st_mtime_ns % _SECOND_NANOS
