"""What a test needs: an operator alone, an application in memory, a clock that waits to be told, and crashes."""

from dagkit.testing.alone import Alone
from dagkit.testing.clock import FakeClock
from dagkit.testing.crashes import Crash, CrashAfter
from dagkit.testing.rehearsal import Rehearsal

__all__ = ["Alone", "Crash", "CrashAfter", "FakeClock", "Rehearsal"]
