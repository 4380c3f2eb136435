"""Figures and their averages, of windows that never ran."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

from dagkit.api.stats import OperatorStats, PortStats
from dagkit.compiler import compile_application
from dagkit.engine.program.lower import program_of
from dagkit.engine.record.pace import BacklogTrend, Pace, TimeLeft
from dagkit.engine.record.run_events import Measured, RunEvent, Started
from dagkit.engine.record.statistics import Lately, window_stats
from dagkit.engine.worker.protocol import Figures, Report
from tests.engine.cast import Desk, Hurried, files_given, lines_through_filter, numbers_collected, some_lines
from tests.engine.record.launches import NOON


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def window(taken: int, *, sent: int = 0, cpu_seconds: float = 0.0) -> OperatorStats:
    ports = (PortStats("input", taken),), (PortStats("output", sent),)
    return OperatorStats(1, *ports, cpu_nanos=int(cpu_seconds * 1e9))


def lately(*windows: tuple[float, OperatorStats], latency_millis: float = 0.0) -> Lately:
    """The averages of these windows, by the second in which each ended."""
    averages = Lately(NOON)
    for ended, stats in windows:
        averages.add(stats, at(ended), latency_millis)
    return averages


@pytest.mark.parametrize(
    ("windows", "latency_millis", "processed", "emitted"),
    [
        pytest.param([], 0, 0.0, 0.0, id="nothing before the first window"),
        pytest.param([(1, 10, 20), (4, 50, 0)], 0, 15.0, 5.0, id="all windows over the time since the run began"),
        pytest.param([(100, 999, 0), (109, 40, 0), (110, 10, 0)], 0, 5.0, 0.0, id="no windows of ten seconds ago"),
        pytest.param([(100, 50, 0)], 0, 5.0, 0.0, id="the last window, however long it took"),
        pytest.param([(100, 500, 0)], 50_000, 10.0, 0.0, id="a window of more than ten seconds, over all of its time"),
        pytest.param([(2, 500, 0)], 50_000, 250.0, 0.0, id="but not over time before the run began"),
        pytest.param([(0, 10, 0)], 0, 0.0, 0.0, id="no rate of a window that took no time"),
    ],
)
def test_items_in_a_second(windows, latency_millis, processed, emitted):
    ended = [(second, window(taken, sent=sent)) for second, taken, sent in windows]
    averages = lately(*ended, latency_millis=latency_millis)
    assert (averages.processed_per_second, averages.emitted_per_second) == (processed, emitted)


def test_the_processor_is_reported_in_percent_and_latency_as_the_mean_of_windows():
    assert (Lately(NOON).cpu_percentage, Lately(NOON).latency_millis) == (0.0, 0.0)
    averages = lately((1, window(1, cpu_seconds=1)), (4, window(1, cpu_seconds=1)), latency_millis=100.0)
    averages.add(window(1), at(4), 400.0)
    assert (averages.cpu_percentage, averages.latency_millis) == (50.0, 200.0)


@pytest.mark.parametrize(("waiting", "shares"), [(0, [0, 0, 0]), (3, [1, 1, 1]), (5, [2, 2, 1])])
def test_each_partition_receives_its_share_of_the_queue(waiting, shares):
    program = program_of(compile_application(numbers_collected(((3,),), readers=3)))
    operators = window_stats(
        program,
        7,
        [Report(0, slot, busy_millis=5.0, figures={"digits": Figures({"blocks": 1}, read=4)}) for slot in (2, 0, 1)],
        found={},
        waiting={"digits": waiting},
        ended=at(1),
    )
    ports = [stats.input_ports[0] for stats in operators["digits"]]
    assert [port.queue_size for port in ports] == shares
    assert {(port.port, port.tuple_count, port.bytes) for port in ports} == {("blocks", 1, 4)}


def events(desk: Desk, kind: type) -> list[Any]:
    happened: list[RunEvent] = []
    desk.run(observers=[happened.append])
    return [each for each in happened if isinstance(each, kind)]


def test_blocks_lines_and_bytes_of_a_file_are_counted(tmp_path):
    text = some_lines(60)
    files_given(tmp_path, text)
    patient = {"dt.attr.STREAMING_WINDOW_SIZE_MILLIS": "60000"}  # no machine is so slow that it leaves a block
    happened = events(Desk(tmp_path, lines_through_filter(tmp_path, block_size=100), conf=patient), Measured | Started)
    told = [each for each in happened if isinstance(each, Measured)]
    totals: Counter[tuple[str, str]] = Counter()
    for name, one in ((name, one) for each in told for name, all_of_it in each.operators.items() for one in all_of_it):
        totals.update({(name, port.port): port.tuple_count for port in (*one.input_ports, *one.output_ports)})
    assert totals["reader", "messages"] == totals["filter", "input"] == 60
    assert totals["filter", "output"] == totals["writer", "input"] == 40
    assert totals["splitter", "blocks_metadata_output"] == -(-len(text) // 100)
    allocated = sum(each.blocks for each in happened if isinstance(each, Started))  # a cut block counts twice
    assert totals["reader", "blocks_metadata_input"] == allocated
    readers = [one for each in told for one in each.operators["reader"]]
    assert sum(one.positions for one in readers) == len(text)
    assert sum(port.bytes for one in readers for port in one.input_ports) == len(text)


def test_what_waits_is_reported_and_a_block_that_is_left_whole_was_not_begun(tmp_path):
    told = events(Desk(tmp_path, numbers_collected(((5, 5, 5),)), backend=Hurried), Measured)
    assert len(told) > 1
    readers = [one for each in told for one in each.operators["digits"]]
    assert sum(one.positions for one in readers) == 15
    assert readers[0].input_ports[0].tuple_count == 1, "the window was over when the first block was read"
    assert readers[0].input_ports[0].queue_size > 0
    assert readers[-1].input_ports[0].queue_size == 0


@pytest.mark.parametrize(
    ("waiting", "since"),
    [
        ([10, 17, 42, 92], 0),
        ([90, 10, 15, 30], 1),
        ([10, 11, 10, 14, 20], 2),
        ([10, 10, 10, 10], None),
        ([10, 10, 10, 100], None),
        ([100, 10, 100], None),
        ([10, 20, 40, 5], None),
    ],
    ids=[
        "more each time",
        "since it was least",
        "with small dips",
        "as much each time",
        "one large find is no trend",
        "nor is one after a small one",
        "a small find ends it",
    ],
)
def test_a_backlog_grows_if_more_waits_after_each_find(waiting, since):
    trend = BacklogTrend()
    for minute, positions in enumerate(waiting):
        trend.add(NOON + timedelta(minutes=minute), positions)
    assert trend.grows_since == (None if since is None else NOON + timedelta(minutes=since))


def test_finds_in_a_row_count_once_and_old_ones_are_forgotten():
    trend = BacklogTrend()
    for second in range(4):
        trend.add(NOON + timedelta(seconds=second), 10 + second)
    trend.add(NOON + timedelta(seconds=60), 30)
    assert trend.grows_since is None, "there were two finds"
    trend.add(NOON + timedelta(minutes=30), 60)
    assert trend.grows_since == NOON
    trend.add(NOON + timedelta(minutes=62), 61)
    assert trend.grows_since is None, "of the last hour, there is no third one that is half as large"


def read(*samples: tuple[float, int]) -> Pace:
    """The pace of a launch that has read so much after so many seconds."""
    pace = Pace()
    pace.resume(NOON)
    for seconds, positions in samples:
        pace.add(at(seconds), positions)
    return pace


def test_the_time_before_slots_first_report_does_not_count():
    pace = Pace()
    pace.resume(NOON)
    for seconds, positions in ((60, 50), (61, 150)):
        pace.report(at(seconds), positions)
    assert pace.time_for(600, at(61)) == TimeLeft(6, 6, 6)


@pytest.mark.parametrize(
    ("samples", "left"),
    [
        ([], None),
        ([(1, 100)], TimeLeft(6, 6, 6)),
        ([(10, 1000), (100, 1900)], TimeLeft(60, 31.579, 60)),
        ([*((n, 100 * n) for n in range(1, 31)), *((n, 3000 + 200 * (n - 30)) for n in range(31, 36))],
         TimeLeft(5.143, 3, 5.25)),
    ],
    ids=[
        "nothing was read",
        "at one speed",
        "a sample may be older than the period",
        "the last seconds were faster",
    ],
)  # fmt: skip
def test_the_time_left_has_the_bounds_of_three_speeds(samples, left):
    found = read(*samples).time_for(600, at(samples[-1][0] if samples else 0))
    assert found == (
        left and TimeLeft(*(pytest.approx(each, rel=1e-3) for each in (left.seconds, left.least, left.most)))
    )


def test_time_in_which_no_window_runs_does_not_count():
    pace = read((10, 1000))
    pace.resume(at(1000))
    assert pace.time_for(600, at(1000)) == TimeLeft(6, 6, 6)


def test_an_attempt_that_failed_does_not_slow_the_pace_down():
    pace = read((10, 1000))
    pace.add(at(11), 200)
    pace.add(at(12), 1200)
    assert pace.per_second == 100


def test_many_short_windows_leave_few_samples_and_the_same_estimate():
    pace = Pace()
    for window in range(3000):
        pace.resume(at(window / 50))
        pace.add(at((window + 1) / 50), 1000 * (window + 1))
    assert len(pace._samples) < 150, "of 1,500 windows in half a minute"
    assert pace.time_for(600_000, at(60)) == TimeLeft(*[pytest.approx(12)] * 3)
