"""Plans on Spark: one job for each window, whatever the graph. Only here is pyspark imported."""

from dagkit.backends.spark.backend import SparkBackend, SparkFailed
from dagkit.backends.spark.session import local_session, session_at

__all__ = ["SparkBackend", "SparkFailed", "local_session", "session_at"]
