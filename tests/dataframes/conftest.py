"""The Spark session of the tests of backends."""

from tests.backends.conftest import spark

__all__ = ["spark"]
