"""Plans on Spark: one job for each window, whatever the graph. Only here is pyspark imported."""

from dagkit.backends.spark.runner import SparkRunner
from dagkit.backends.spark.session import local_session

__all__ = ["SparkRunner", "local_session"]
