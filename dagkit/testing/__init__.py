"""What a test needs: an operator alone, an application in memory, a clock that waits, crashes, proofs, a simulator."""

from dagkit.testing.alone import Alone
from dagkit.testing.crashes import Crash, CrashAfter
from dagkit.testing.fake_clock import FakeClock
from dagkit.testing.rehearsal import Rehearsal
from dagkit.testing.simulated_run import Cost, Simulated, Simulation
from dagkit.testing.split_checks import SplitsBroken, check_every_split
from dagkit.testing.work_checks import check_every_split_of

__all__ = [
    "Alone",
    "Cost",
    "Crash",
    "CrashAfter",
    "FakeClock",
    "Rehearsal",
    "Simulated",
    "Simulation",
    "SplitsBroken",
    "check_every_split",
    "check_every_split_of",
]
