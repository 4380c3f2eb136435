"""DataFrames: `spark.read` and `spark.readStream` with the format "dagkit"."""

from dagkit.dataframes.data_source import DagkitSource, register

__all__ = ["DagkitSource", "register"]
