"""What a test needs: an operator alone, and a clock that stands still until it is told."""

from dagkit.testing.alone import Alone
from dagkit.testing.clock import FakeClock

__all__ = ["Alone", "FakeClock"]
