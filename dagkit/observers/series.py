"""The list of all series for Prometheus; the instruments and the documentation are made from it."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]

OPERATOR = ("app", "operator")


@dataclass(frozen=True, slots=True)
class Series:
    """One figure with its labels; a path, window or partition is never a label, because their number is unbounded."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    meaning: str


ALL = (
    Series("dagkit_build_info", "gauge", ("version",), "always 1; the version of dagkit that runs"),
    Series("dagkit_tuples_total", "counter", (*OPERATOR, "port", "direction"), "items that passed a port"),
    Series("dagkit_read_bytes_total", "counter", OPERATOR, "bytes that were read"),
    Series(
        "dagkit_read_positions_total", "counter", OPERATOR, "other positions that were read, such as offsets of Kafka"
    ),
    Series("dagkit_written_bytes_total", "counter", ("app",), "bytes that committed windows wrote"),
    Series("dagkit_files_written_total", "counter", ("app",), "files that were completed"),
    Series("dagkit_blocks_found_total", "counter", OPERATOR, "blocks that an input operator found"),
    Series("dagkit_items_found_total", "counter", OPERATOR, "other items that an input operator found"),
    Series("dagkit_queue_blocks", "gauge", (*OPERATOR, "port"), "blocks waiting to be read"),
    Series("dagkit_queue_bytes", "gauge", (*OPERATOR, "port"), "total length of the waiting blocks"),
    Series("dagkit_queue_positions", "gauge", (*OPERATOR, "port"), "the same for positions that are no bytes"),
    Series("dagkit_block_duration_seconds", "histogram", OPERATOR, "time to read a block, or a part of one"),
    Series("dagkit_block_splits_total", "counter", (*OPERATOR, "reason"), "splits of work, by rule"),
    Series("dagkit_operator_partitions", "gauge", OPERATOR, "partitions in the last window"),
    Series("dagkit_operator_partitions_target", "gauge", OPERATOR, "partitions in the last decision"),
    Series(
        "dagkit_scale_decisions_total",
        "counter",
        (*OPERATOR, "direction", "policy"),
        "decisions about partitions: `up`, `down`, or `none` for no change",
    ),
    Series(
        "dagkit_operator_busy_ratio",
        "gauge",
        OPERATOR,
        "share of the last window in which its slots were busy; fused operators have the same value",
    ),
    Series("dagkit_window_duration_seconds", "histogram", ("app",), "from the start of a window to its commit"),
    Series("dagkit_checkpoint_duration_seconds", "histogram", ("app",), "time to commit a window"),
    Series("dagkit_windows_committed_total", "counter", ("app",), "windows that were committed"),
    Series("dagkit_last_commit_timestamp_seconds", "gauge", ("app",), "time of the last commit"),
    Series("dagkit_errors_total", "counter", (*OPERATOR, "kind"), "windows that failed, by exception"),
    Series("dagkit_recoveries_total", "counter", ("app",), "windows that a launch found promised but not committed"),
)
"""In the order of the documentation."""

USER = "dagkit_user_"
"""The prefix of the metrics that operators declare; their labels are OPERATOR."""
