"""Series as Prometheus scrapes them."""

import urllib.request
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dagkit.api.stats import OperatorStats, PortStats
from dagkit.engine.program.facts import Scaled, Split
from dagkit.engine.record.run_events import Committed, Failed, Found, Measured, Queue, Reshaped, Resumed, StageRun
from dagkit.engine.worker.protocol import Stretch
from dagkit.errors import RunFailure
from dagkit.observers.prometheus import ALL, Prometheus

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def partition(taken, sent, *, positions=0, busy=0.0):
    ports = (PortStats("in_port", taken),), (PortStats("out_port", sent),)
    return OperatorStats(1, *ports, busy_millis=busy, positions=positions)


def measured(**given):
    """A window of four seconds, the last of which was its commit."""
    times = {"began": NOON, "ended": NOON + timedelta(seconds=3), "committed": NOON + timedelta(seconds=4)}
    return Measured(**{"window_id": 1, **times, "operators": {}, "metrics": {}, **given})


def scaled(before, after):
    return Scaled(operator="reader", at=NOON, before=before, after=after, policy="drain", rule="because")


@pytest.fixture
def metrics():
    metrics = Prometheus()
    metrics(Resumed("An app", 3, 0, promised=True))
    return metrics


def values(metrics, **labels):
    """The values of series with these labels, by their names without `dagkit_`; those without a value are missing."""
    found = {}
    for family in metrics.registry.collect():
        for sample in family.samples:
            if sample.labels == {"app": "An app", **labels}:
                found[sample.name.removeprefix("dagkit_")] = sample.value
    return found


def value(metrics, name, **labels):
    return values(metrics, **labels).get(name)


def test_items_are_added_up_over_partitions_and_windows(metrics):
    metrics(measured(operators={"op": [partition(3, 1, busy=3000), partition(4, 2, busy=1000)]}))
    assert value(metrics, "operator_busy_ratio", operator="op") == 0.5, "slots are busy for a part of the window"
    assert value(metrics, "operator_skew_ratio", operator="op") == 1.5, "the busiest partition, over the mean"
    metrics(measured(operators={"op": [partition(10, 20)]}))
    assert value(metrics, "tuples_total", operator="op", port="in_port", direction="in") == 17
    assert value(metrics, "tuples_total", operator="op", port="out_port", direction="out") == 23
    assert value(metrics, "operator_partitions", operator="op") == 1


def test_windows_are_timed(metrics):
    metrics(measured())
    times = {"window_duration_seconds_sum": 4, "checkpoint_duration_seconds_sum": 1}
    assert values(metrics).items() >= {**times, "last_commit_timestamp_seconds": NOON.timestamp() + 4}.items()


def test_what_was_read_and_what_waits_is_reported_by_operator(metrics):
    read = [Stretch("a.txt", 0, 10, 0.0, 20.0), Stretch("a.txt", 10, 20, 20.0, 30.0)]
    stage = StageRun("reader", 0, ("reader",), NOON, 50.0, {"reader": read})
    bytes_read = {"reader": [partition(1, 1, positions=20)]}
    metrics(measured(operators=bytes_read, queues=[Queue("reader", "blocks", 7, 4096)], stages=[stage]))
    blocks = {"block_duration_seconds_count": 2, "block_duration_seconds_sum": 0.05}
    assert values(metrics, operator="reader").items() >= {"read_bytes_total": 20, **blocks}.items()
    assert values(metrics, operator="reader", port="blocks") == {"queue_blocks": 7, "queue_bytes": 4096}


def test_positions_that_are_no_bytes_have_series_of_their_own(metrics):
    read = replace(partition(1, 1, positions=20), unit="offset")
    metrics(measured(operators={"reader": [read]}, queues=[Queue("reader", "ranges", 7, 4096, "offset")]))
    assert value(metrics, "read_positions_total", operator="reader") == 20
    assert value(metrics, "queue_positions", operator="reader", port="ranges") == 4096
    assert value(metrics, "read_bytes_total", operator="reader") is None


def test_what_was_decided_is_counted(metrics):
    split = Split(into="reader.blocks", source="a.txt", start=0, at=5, end=10, why="deadline")
    metrics(Reshaped(1, scaled(1, 4)))
    metrics(measured(facts=[split, split, scaled(1, 4), scaled(4, 4), scaled(4, 2)]))
    assert value(metrics, "block_splits_total", operator="reader", reason="deadline") == 2
    for way in ("up", "none", "down"):
        assert value(metrics, "scale_decisions_total", operator="reader", direction=way, policy="drain") == 1
    assert value(metrics, "operator_partitions_target", operator="reader") == 2


def test_what_happens_beside_windows_is_counted(metrics):
    metrics(Found("splitter", blocks=3, positions=9, items=2))
    metrics(Committed(1, 10.0, read={"byte": 9}, files=2, written=512))
    committed = {"windows_committed_total": 1, "files_written_total": 2, "written_bytes_total": 512}
    assert values(metrics).items() >= {"recoveries_total": 1, **committed}.items()
    found = {"blocks_found_total": 3, "items_found_total": 2}
    assert values(metrics, operator="splitter").items() >= found.items()


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
@pytest.mark.parametrize("operator", [None, "op"])
def test_errors_are_counted_by_class_and_by_nothing_that_has_no_end(metrics, told, kind, operator):
    metrics(Failed(1, operator, told, again=operator is not None))
    assert value(metrics, "errors_total", operator=operator or "", kind=kind) == 1


def test_declared_metrics_are_reported_as_far_as_they_are_numbers(metrics):
    metrics(measured(metrics={"op": {"max-longest": 7, "called": "x"}, "other": {"max-longest": 9}}))
    metrics(measured(metrics={"op": {"max-longest": 3}}))
    assert [value(metrics, "user_max_longest", operator=name) for name in ("op", "other")] == [3, 9]
    assert "called" not in scraped_text(metrics)


def scraped_text(metrics):
    with metrics.served(0) as port, urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        return str(answer.read().decode())


def test_every_series_is_served_over_http(metrics):
    families = {family.name: family for family in text_string_to_metric_families(scraped_text(metrics))}
    for series in ALL:
        family = families[series.name.removesuffix("_total")]
        assert (family.type, family.documentation) == (series.kind, series.meaning)


def test_a_port_that_is_taken_is_reported_and_free_afterwards(metrics):
    with metrics.served(0) as port:
        problem = f"cannot be served at 127.0.0.1:{port}: another process uses this port"
        with pytest.raises(RunFailure, match=problem), metrics.served(port):
            pass
    with metrics.served(port) as again:
        assert again == port


def test_no_series_distinguishes_values_by_what_has_no_end():
    endless = {"path", "file", "source", "window", "partition", "slot", "block"}
    assert {label for series in ALL for label in series.labels} & endless == set()
    names = [series.name for series in ALL]
    assert len(names) == len(set(names))
    assert all(series.name.endswith("_total") == (series.kind == "counter") for series in ALL)
