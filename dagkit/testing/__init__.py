"""What a test of an application needs: a clock that stands still until it is told, and crashes at chosen steps."""

from dagkit.testing.clock import FakeClock
from dagkit.testing.crashes import Crash, CrashAfter

__all__ = ["Crash", "CrashAfter", "FakeClock"]
