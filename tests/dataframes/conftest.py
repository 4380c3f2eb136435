"""The Spark sessions of the tests of backends."""

from tests.backends.conftest import connected, session, spark

__all__ = ["connected", "session", "spark"]
