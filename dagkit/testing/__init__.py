"""What a test of an application needs: a clock that stands still until it is told."""

from dagkit.testing.clock import FakeClock

__all__ = ["FakeClock"]
