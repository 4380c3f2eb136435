"""Figures and their averages, of windows that never ran."""

from datetime import UTC, datetime, timedelta

import pytest

from dagkit.api.stats import OperatorStats, PortStats
from dagkit.compiler import compile_application
from dagkit.engine.program.lower import program_of
from dagkit.engine.reports.run_events import Measured, RunEvent, Started
from dagkit.engine.reports.statistics import Lately, window_stats
from dagkit.engine.worker.protocol import Figures, Report
from tests.engine.cast import Desk, Hurried, lines_through_filter, numbers_collected, some_lines

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


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


def test_nothing_is_averaged_before_the_first_window():
    nothing = Lately(NOON)
    assert (nothing.processed_per_second, nothing.cpu_percentage, nothing.latency_millis) == (0.0, 0.0, 0.0)


def test_items_in_a_second_are_those_of_all_windows_over_the_time_since_the_run_began():
    averages = lately((1, window(10, sent=20)), (4, window(50, sent=0)))
    assert (averages.processed_per_second, averages.emitted_per_second) == (15.0, 5.0)


def test_windows_of_ten_seconds_ago_do_not_count():
    averages = lately((100, window(999)), (109, window(40)), (110, window(10)))
    assert averages.processed_per_second == 5.0


def test_the_last_window_counts_however_long_it_took():
    assert lately((100, window(50))).processed_per_second == 5.0


def test_a_window_of_more_than_ten_seconds_counts_over_all_of_its_time():
    assert lately((100, window(500)), latency_millis=50_000).processed_per_second == 10.0
    assert lately((2, window(500)), latency_millis=50_000).processed_per_second == 250.0  # the run began at 0


def test_a_window_that_took_no_time_has_no_rate():
    assert lately((0, window(10))).processed_per_second == 0.0


def test_the_processor_is_reported_in_percent_and_latency_as_the_mean_of_windows():
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


def measured(desk: Desk) -> list[Measured]:
    told = list[Measured]()
    desk.run(observers=[lambda happening: told.append(happening) if isinstance(happening, Measured) else None])
    return told


def test_blocks_lines_and_bytes_of_a_file_are_counted(tmp_path):
    (tmp_path / "in").mkdir()
    text = some_lines(60)
    (tmp_path / "in" / "a.txt").write_text(text)
    happened = list[RunEvent]()
    Desk(tmp_path, lines_through_filter(tmp_path, block_size=100)).run(observers=[happened.append])
    told = [each for each in happened if isinstance(each, Measured)]
    totals: dict[tuple[str, str], int] = {}
    for stats in (one for each in told for partitions in each.operators.items() for one in _named(*partitions)):
        name, one = stats
        for port in (*one.input_ports, *one.output_ports):
            totals[name, port.port] = totals.get((name, port.port), 0) + port.tuple_count
    assert totals["reader", "messages"] == totals["filter", "input"] == 60
    assert totals["filter", "output"] == totals["writer", "input"] == 40
    assert totals["splitter", "blocks_metadata_output"] == -(-len(text) // 100)
    allocated = sum(each.blocks for each in happened if isinstance(each, Started))  # a cut block counts twice
    assert totals["reader", "blocks_metadata_input"] == allocated
    assert sum(one.positions for each in told for one in each.operators["reader"]) == len(text)
    assert sum(port.bytes for each in told for one in each.operators["reader"] for port in one.input_ports) == len(text)


def _named(name: str, partitions: object) -> list[tuple[str, OperatorStats]]:
    assert isinstance(partitions, tuple)
    return [(name, stats) for stats in partitions]


def test_a_block_that_is_left_whole_was_not_begun(tmp_path):
    desk = Desk(tmp_path, numbers_collected(((5, 5, 5),)), backend=Hurried)
    told = measured(desk)
    begun = [one.input_ports[0].tuple_count for each in told for one in each.operators["digits"]]
    assert sum(one.positions for each in told for one in each.operators["digits"]) == 15
    assert len(told) > 1
    assert begun[0] == 1, "the window was over when the first block was read"


def test_what_waits_is_reported_with_each_window(tmp_path):
    desk = Desk(tmp_path, numbers_collected(((5, 5, 5),)), backend=Hurried)
    queues = [one.input_ports[0].queue_size for each in measured(desk) for one in each.operators["digits"]]
    assert queues[0] > 0
    assert queues[-1] == 0
