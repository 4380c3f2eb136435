"""Classes that stand in another module than in earlier versions. Plans name them by the first one."""

from collections.abc import Mapping

_MOVED: Mapping[str, Mapping[str, str]] = {
    "dagkit.scaling.follower": {"BacklogPartitioner": "dagkit.scaling.backlog_partitioner"},
    "dagkit_operators.formats.csv": {"CsvReader": "dagkit_operators.formats.readers"},
    "dagkit_operators.formats.json_lines": {"JsonLinesReader": "dagkit_operators.formats.readers"},
    "dagkit_operators.formats.parquet": {"ParquetReader": "dagkit_operators.formats.readers"},
    "dagkit_operators.keyed.aggregate_by_time": {
        **dict.fromkeys(("AggregateByTime", "WindowResult"), "dagkit_operators.event_time.aggregate_by_time"),
        **dict.fromkeys(
            ("SessionWindows", "SlidingWindows", "TumblingWindows"), "dagkit_operators.event_time.time_windows"
        ),
    },
    "dagkit_operators.keyed.event_time": {"EventTime": "dagkit_operators.event_time.event_time"},
    "dagkit_operators.reading.file_slices": dict.fromkeys(
        ("FSSliceReader", "Slice"), "dagkit_operators.reading.slices"
    ),
    "dagkit_operators.reading.readers": {"RecordReader": "dagkit_operators.reading.record_reader"},
    "dagkit_operators.spark_frames": {
        "SparkSink": "dagkit_operators.dataframes.spark_sink",
        "SparkSource": "dagkit_operators.dataframes.spark_source",
    },
    "dagkit_operators.watch": {
        **dict.fromkeys(("Polled", "Watch"), "dagkit_operators.polling.watch"),
        **dict.fromkeys(("UntilAll", "UntilAny", "UntilElapsed", "UntilQuiet"), "dagkit_operators.polling.until"),
    },
}
"""By the module in which they stand now, and their name: the module of earlier versions."""

_PRESENT: Mapping[tuple[str, str], str] = {
    (former, name): module for module, classes in _MOVED.items() for name, former in classes.items()
}


def recorded_module(module: str, qualname: str) -> str:
    """The module by which plans name a class, so that their fingerprints stay when it moves."""
    return _MOVED.get(module, {}).get(qualname, module)


def present_module(module: str, qualname: str) -> str:
    """The module in which a class stands that is named by this one."""
    return _PRESENT.get((module, qualname), module)
