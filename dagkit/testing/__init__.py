"""Tools for tests: one operator alone, an application in memory, a fake clock, crashes, and checks of splits."""

from dagkit.testing.alone import Alone
from dagkit.testing.crashes import Crash, CrashAfter
from dagkit.testing.fake_clock import FakeClock
from dagkit.testing.rehearsal import Rehearsal
from dagkit.testing.split_checks import SplitsBroken, check_every_split
from dagkit.testing.work_checks import check_every_split_of

__all__ = [
    "Alone",
    "Crash",
    "CrashAfter",
    "FakeClock",
    "Rehearsal",
    "SplitsBroken",
    "check_every_split",
    "check_every_split_of",
]
