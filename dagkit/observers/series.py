"""Series: every figure that Prometheus is told, by name. The instruments are made of this list, and the page too."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]

OPERATOR = ("app", "operator")


@dataclass(frozen=True, slots=True)
class Series:
    """One figure, with what tells its values apart; never a path, a window or a partition, of which there is no end."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    meaning: str


ALL = (
    Series("dagkit_build_info", "gauge", ("version",), "always 1; the version of dagkit that runs"),
    Series("dagkit_tuples_total", "counter", (*OPERATOR, "port", "direction"), "items that passed a port"),
    Series("dagkit_read_bytes_total", "counter", OPERATOR, "positions of blocks that were read: of files, bytes"),
    Series("dagkit_written_bytes_total", "counter", ("app",), "bytes that committed windows wrote"),
    Series("dagkit_files_written_total", "counter", ("app",), "files that became whole"),
    Series("dagkit_blocks_found_total", "counter", OPERATOR, "blocks that an input operator found"),
    Series("dagkit_items_found_total", "counter", OPERATOR, "other items that an input operator found"),
    Series("dagkit_queue_blocks", "gauge", (*OPERATOR, "port"), "blocks that wait to be read"),
    Series("dagkit_queue_bytes", "gauge", (*OPERATOR, "port"), "how long they are together"),
    Series("dagkit_block_duration_seconds", "histogram", OPERATOR, "what reading a block, or a part of one, took"),
    Series("dagkit_block_splits_total", "counter", (*OPERATOR, "reason"), "work that was divided, by the rule"),
    Series("dagkit_operator_partitions", "gauge", OPERATOR, "partitions in the last window"),
    Series("dagkit_operator_partitions_target", "gauge", OPERATOR, "partitions that were decided on last"),
    Series(
        "dagkit_scale_decisions_total",
        "counter",
        (*OPERATOR, "direction", "policy"),
        "decisions about partitions: `up`, `down`, or `none` where somebody looked and left it",
    ),
    Series(
        "dagkit_operator_busy_ratio",
        "gauge",
        OPERATOR,
        "of the last window, the part in which its slots were at work; fused operators share it",
    ),
    Series("dagkit_window_duration_seconds", "histogram", ("app",), "from the start of a window to its commit"),
    Series("dagkit_checkpoint_duration_seconds", "histogram", ("app",), "what the commit of a window took"),
    Series("dagkit_windows_committed_total", "counter", ("app",), "windows that were committed"),
    Series("dagkit_last_commit_timestamp_seconds", "gauge", ("app",), "when the last one was"),
    Series("dagkit_errors_total", "counter", (*OPERATOR, "kind"), "windows that failed, by what was raised"),
    Series("dagkit_recoveries_total", "counter", ("app",), "windows that a launch found promised and not committed"),
)
"""In the order of the page."""

USER = "dagkit_user_"
"""What the metrics that operators declare are told under, with their own names behind; labelled as OPERATOR says."""
