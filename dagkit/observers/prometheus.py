"""Serves the figures of a run as series for Prometheus."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from dagkit.api.stats import OperatorStats
from dagkit.engine.program.facts import Fact, Scaled, Split
from dagkit.engine.record.run_events import Committed, Failed, Found, Measured, Reshaped, Resumed, RunEvent
from dagkit.errors import address_taken
from dagkit.ground.amounts import BYTE

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
        "share of the last window in which its slots worked for it; fused operators divide the time of their slots",
    ),
    Series(
        "dagkit_operator_skew_ratio",
        "gauge",
        OPERATOR,
        "busy time of its busiest partition in the last window, divided by the mean of all",
    ),
    Series("dagkit_window_duration_seconds", "histogram", ("app",), "from the start of a window to its commit"),
    Series("dagkit_checkpoint_duration_seconds", "histogram", ("app",), "time to commit a window"),
    Series("dagkit_windows_committed_total", "counter", ("app",), "windows that were committed"),
    Series("dagkit_last_commit_timestamp_seconds", "gauge", ("app",), "time of the last commit"),
    Series("dagkit_errors_total", "counter", (*OPERATOR, "kind"), "attempts at windows that failed, by exception"),
    Series("dagkit_recoveries_total", "counter", ("app",), "windows that a launch found promised but not committed"),
)
"""In the order of the documentation."""

USER = "dagkit_user_"
"""The prefix of the metrics that operators declare; their labels are OPERATOR."""


_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
"""Upper bounds in seconds: windows take from some hundredths of a second to some minutes."""


class Prometheus:
    """An observer that updates all series, in its own registry."""

    def __init__(self) -> None:
        # The registry of the process takes each name once, and a process may launch several applications.
        self.registry = CollectorRegistry()
        self._app = ""
        self._instruments = {series.name: _instrument(series, self.registry) for series in ALL}
        self._user: dict[str, Gauge] = {}
        self._instruments["dagkit_build_info"].labels(sys.modules["dagkit"].__version__).set(1)

    def __call__(self, event: RunEvent) -> None:
        match event:
            case Resumed():
                self._app = event.application
                self._of("dagkit_recoveries_total").inc(event.promised)
            case Found():
                self._of("dagkit_blocks_found_total", event.operator).inc(event.blocks)
                self._of("dagkit_items_found_total", event.operator).inc(event.items)
            case Failed():
                self._of("dagkit_errors_total", event.operator or "", _kind(event.message)).inc()
            case Committed():
                self._of("dagkit_windows_committed_total").inc()
                self._of("dagkit_files_written_total").inc(event.files)
                self._of("dagkit_written_bytes_total").inc(event.written)
            case Measured():
                self._measured(event)
            case Reshaped(fact=Scaled() as fact):
                self._of("dagkit_operator_partitions_target", fact.operator).set(fact.after)

    @contextmanager
    def served(self, port: int, address: str = "127.0.0.1") -> Iterator[int]:
        """Serve the series over HTTP within the block; yield the port, which the system chooses for 0."""
        try:
            server, thread = start_http_server(port, address, self.registry)
        except OSError as refused:
            raise address_taken("the metrics", "--metrics-port", address, port, refused) from refused
        try:
            yield int(server.server_port)
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def _of(self, name: str, *labels: str) -> Any:
        return self._instruments[name].labels(self._app, *labels)

    def _measured(self, measured: Measured) -> None:
        seconds = (measured.committed - measured.began).total_seconds()
        self._of("dagkit_window_duration_seconds").observe(seconds)
        took = (measured.committed - measured.ended).total_seconds()
        self._of("dagkit_checkpoint_duration_seconds").observe(took)
        self._of("dagkit_last_commit_timestamp_seconds").set(measured.committed.timestamp())
        for name, partitions in measured.operators.items():
            self._worked(name, partitions, seconds)
        for queue in measured.queues:
            self._of("dagkit_queue_blocks", queue.operator, queue.port).set(queue.blocks)
            waiting = "dagkit_queue_bytes" if queue.unit == BYTE else "dagkit_queue_positions"
            self._of(waiting, queue.operator, queue.port).set(queue.positions)
        for name, stretches in (found for stage in measured.stages for found in stage.blocks.items()):
            for stretch in stretches:
                self._of("dagkit_block_duration_seconds", name).observe(stretch.millis / 1000)
        for fact in measured.facts:
            self._decided(fact)
        for name, metrics in measured.metrics.items():
            self._declared(name, metrics)

    def _worked(self, name: str, partitions: Sequence[OperatorStats], seconds: float) -> None:
        self._of("dagkit_operator_partitions", name).set(len(partitions))
        busy = sum(stats.busy_millis for stats in partitions) / 1000
        self._of("dagkit_operator_busy_ratio", name).set(busy / len(partitions) / seconds if seconds else 0)
        if busy:
            most = max(stats.busy_millis for stats in partitions) / 1000
            self._of("dagkit_operator_skew_ratio", name).set(most * len(partitions) / busy)
        for stats in partitions:
            for port in stats.input_ports:
                self._of("dagkit_tuples_total", name, port.port, "in").inc(port.tuple_count)
            for port in stats.output_ports:
                self._of("dagkit_tuples_total", name, port.port, "out").inc(port.tuple_count)
        if positions := sum(stats.positions for stats in partitions):
            read = "dagkit_read_bytes_total" if partitions[0].unit == BYTE else "dagkit_read_positions_total"
            self._of(read, name).inc(positions)

    def _decided(self, fact: Fact) -> None:
        match fact:
            case Split():
                operator = fact.into.operator
                self._of("dagkit_block_splits_total", operator, fact.why).inc()
            case Scaled():
                way = "none" if fact.after == fact.before else "up" if fact.after > fact.before else "down"
                self._of("dagkit_scale_decisions_total", fact.operator, way, fact.policy).inc()
                self._of("dagkit_operator_partitions_target", fact.operator).set(fact.after)

    def _declared(self, operator: str, metrics: Mapping[str, Any]) -> None:
        """Update the operator's own metrics that are numbers."""
        for name, value in metrics.items():
            if isinstance(value, int | float):
                # A gauge is made when its first value comes: the observer does not know the application's operators.
                known = USER + re.sub(r"\W", "_", name, flags=re.ASCII)
                if known not in self._user:
                    meaning = f"{name}, in the last window, as operators declare it"
                    self._user[known] = Gauge(known, meaning, OPERATOR, registry=self.registry)
                self._user[known].labels(self._app, operator).set(value)


def _kind(text: str) -> str:
    """The class name at the start of an exception's text; other text is dropped, as it could differ each time."""
    found = re.match(r"[A-Za-z_][\w.]*(?=:|$)", text)
    return found.group() if found else "other"


def _instrument(series: Series, registry: CollectorRegistry) -> Any:
    if series.kind == "histogram":
        return Histogram(series.name, series.meaning, series.labels, registry=registry, buckets=_BUCKETS)
    kind = Counter if series.kind == "counter" else Gauge
    return kind(series.name, series.meaning, series.labels, registry=registry)
