"""Series as Prometheus scrapes them."""

import urllib.request
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dagkit.api.stats import OperatorStats, PortStats
from dagkit.engine.facts import Scaled, Split
from dagkit.engine.reports.run_events import Committed, Failed, Found, Measured, Queue, Reshaped, Resumed, StageRun
from dagkit.engine.worker.protocol import Stretch
from dagkit.errors import AddressTaken
from dagkit.observers.prometheus import Prometheus
from dagkit.observers.series import ALL

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def partition(taken, sent, *, positions=0, busy=0.0):
    ports = (PortStats("in_port", taken),), (PortStats("out_port", sent),)
    return OperatorStats(1, *ports, busy_millis=busy, positions=positions)


def measured(**given):
    """A window of four seconds, the last of which was its commit."""
    whole: dict[str, Any] = {
        "window_id": 1,
        "began": NOON,
        "ended": NOON + timedelta(seconds=3),
        "committed": NOON + timedelta(seconds=4),
        "operators": {},
        "metrics": {},
    }
    return Measured(**{**whole, **given})


def scaled(before, after):
    return Scaled(operator="reader", at=NOON, before=before, after=after, policy="drain", rule="because")


@pytest.fixture
def metrics():
    metrics = Prometheus()
    metrics(Resumed("An app", 3, 0, promised=True))
    return metrics


def value(metrics, name, **labels):
    return metrics.registry.get_sample_value(name, {"app": "An app", **labels})


def test_items_are_added_up_over_partitions_and_windows(metrics):
    metrics(measured(operators={"op": [partition(3, 1), partition(4, 2)]}))
    metrics(measured(operators={"op": [partition(10, 20)]}))
    assert value(metrics, "dagkit_tuples_total", operator="op", port="in_port", direction="in") == 17
    assert value(metrics, "dagkit_tuples_total", operator="op", port="out_port", direction="out") == 23
    assert value(metrics, "dagkit_operator_partitions", operator="op") == 1


def test_windows_are_timed(metrics):
    metrics(measured())
    assert value(metrics, "dagkit_window_duration_seconds_sum") == 4
    assert value(metrics, "dagkit_checkpoint_duration_seconds_sum") == 1
    assert value(metrics, "dagkit_last_commit_timestamp_seconds") == NOON.timestamp() + 4


def test_slots_are_busy_for_a_part_of_the_window(metrics):
    metrics(measured(operators={"op": [partition(1, 1, busy=3000), partition(1, 1, busy=1000)]}))
    assert value(metrics, "dagkit_operator_busy_ratio", operator="op") == 0.5


def test_what_was_read_and_what_waits_is_reported_by_operator(metrics):
    read = [Stretch("a.txt", 0, 10, 0.0, 20.0), Stretch("a.txt", 10, 20, 20.0, 30.0)]
    metrics(
        measured(
            operators={"reader": [partition(1, 1, positions=20)]},
            queues=[Queue("reader", "blocks", 7, 4096)],
            stages=[StageRun("reader", 0, ("reader",), NOON, 50.0, {"reader": read})],
        )
    )
    assert value(metrics, "dagkit_read_bytes_total", operator="reader") == 20
    assert value(metrics, "dagkit_queue_blocks", operator="reader", port="blocks") == 7
    assert value(metrics, "dagkit_queue_bytes", operator="reader", port="blocks") == 4096
    assert value(metrics, "dagkit_block_duration_seconds_count", operator="reader") == 2
    assert value(metrics, "dagkit_block_duration_seconds_sum", operator="reader") == 0.05


def test_positions_that_are_no_bytes_have_series_of_their_own(metrics):
    read = replace(partition(1, 1, positions=20), unit="offset")
    metrics(measured(operators={"reader": [read]}, queues=[Queue("reader", "ranges", 7, 4096, "offset")]))
    assert value(metrics, "dagkit_read_positions_total", operator="reader") == 20
    assert value(metrics, "dagkit_queue_positions", operator="reader", port="ranges") == 4096
    assert value(metrics, "dagkit_read_bytes_total", operator="reader") is None


def test_what_was_decided_is_counted(metrics):
    split = Split(into="reader.blocks", source="a.txt", start=0, at=5, end=10, why="deadline")
    metrics(Reshaped(1, scaled(1, 4)))
    metrics(measured(facts=[split, split, scaled(1, 4), scaled(4, 4), scaled(4, 2)]))
    assert value(metrics, "dagkit_block_splits_total", operator="reader", reason="deadline") == 2
    ways = {"up": 1, "none": 1, "down": 1}
    for way, count in ways.items():
        told = value(metrics, "dagkit_scale_decisions_total", operator="reader", direction=way, policy="drain")
        assert told == count
    assert value(metrics, "dagkit_operator_partitions_target", operator="reader") == 2


def test_what_happens_beside_windows_is_counted(metrics):
    metrics(Found("splitter", blocks=3, positions=9, items=2))
    metrics(Failed(1, "op", "ValueError: no", again=True))
    metrics(Committed(1, 10.0, positions=9, files=2, written=512, waiting=0, waiting_positions=0))
    assert value(metrics, "dagkit_recoveries_total") == 1
    assert value(metrics, "dagkit_blocks_found_total", operator="splitter") == 3
    assert value(metrics, "dagkit_items_found_total", operator="splitter") == 2
    assert value(metrics, "dagkit_errors_total", operator="op", kind="ValueError") == 1
    assert value(metrics, "dagkit_windows_committed_total") == 1
    assert value(metrics, "dagkit_files_written_total") == 2
    assert value(metrics, "dagkit_written_bytes_total") == 512


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ("KeyError: 'a'", "KeyError"),
        ("shop.errors.Late: by 3 days", "shop.errors.Late"),
        ("StopAsyncIteration", "StopAsyncIteration"),
        ("Spark failed in window 7: gone", "other"),
        ('File "a.py", line 3', "other"),
    ],
)
def test_errors_are_counted_by_class_and_by_nothing_that_has_no_end(metrics, told, kind):
    metrics(Failed(1, None, told, again=False))
    assert value(metrics, "dagkit_errors_total", operator="", kind=kind) == 1


def test_declared_metrics_are_reported_as_far_as_they_are_numbers(metrics):
    metrics(measured(metrics={"op": {"max-longest": 7, "called": "x"}, "other": {"max-longest": 9}}))
    metrics(measured(metrics={"op": {"max-longest": 3}}))
    assert value(metrics, "dagkit_user_max_longest", operator="op") == 3
    assert value(metrics, "dagkit_user_max_longest", operator="other") == 9
    assert "called" not in scraped_text(metrics)


def scraped_text(metrics):
    with metrics.served(0) as port, urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        return str(answer.read().decode())


def test_every_series_is_served_over_http(metrics):
    families = {family.name: family for family in text_string_to_metric_families(scraped_text(metrics))}
    for series in ALL:
        family = families[series.name.removesuffix("_total")]
        assert (family.type, family.documentation) == (series.kind, series.meaning)


def test_nothing_is_served_any_more_afterwards(metrics):
    with metrics.served(0) as port:
        pass
    with metrics.served(port) as again:
        assert again == port


def test_a_port_that_is_taken_is_reported(metrics):
    with (
        metrics.served(0) as port,
        pytest.raises(AddressTaken, match=f"cannot be served at 127.0.0.1:{port}: another process uses this port"),
        metrics.served(port),
    ):
        pass


def test_no_series_distinguishes_values_by_what_has_no_end():
    endless = {"path", "file", "source", "window", "partition", "slot", "block"}
    assert {label for series in ALL for label in series.labels} & endless == set()
    names = [series.name for series in ALL]
    assert len(names) == len(set(names))
    assert all(series.name.endswith("_total") == (series.kind == "counter") for series in ALL)
