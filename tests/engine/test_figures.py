"""Figures and their averages, of windows that nobody ran."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dagkit.api.stats import OperatorStats, PortStats
from dagkit.compiler import compile_application
from dagkit.engine.assignment import Figures, Report
from dagkit.engine.figures import AVERAGED_WINDOWS, Averages, WindowFigures, window_figures
from dagkit.engine.lower import program_of
from dagkit.engine.observing import Measured
from tests.engine.cast import Desk, Hurried, lines_through_filter, numbers_collected, some_lines

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def window(number: int, began: float, ended: float, *taken: int, cpu_seconds: float = 0.0) -> WindowFigures:
    """A window in which each partition of one operator took so many items."""
    partitions = tuple(
        OperatorStats(number, (PortStats("input", count),), (PortStats("output", 2 * count),), int(cpu_seconds * 1e9))
        for count in taken
    )
    return WindowFigures(number, at(began), at(ended), {"op": partitions}, {"op": [100.0 * number] * len(taken)})


def averaged(*windows: WindowFigures) -> Averages:
    averages = Averages()
    for each in windows:
        averages = averages.after(each)
    return averages


def test_nothing_is_told_before_the_first_window() -> None:
    assert Averages().stats() == {}


def test_items_in_a_second_are_those_of_all_windows_over_their_time() -> None:
    told = averaged(window(1, 0, 1, 10), window(2, 1, 4, 50)).stats()["op"][0]
    assert (told.tuples_processed_psma, told.tuples_emitted_psma) == (15.0, 30.0)


def test_time_between_windows_does_not_count() -> None:
    assert averaged(window(1, 0, 1, 10), window(2, 6, 7, 10)).stats()["op"][0].tuples_processed_psma == 10.0


def test_time_that_two_windows_share_counts_once() -> None:
    assert averaged(window(1, 0, 2, 20), window(2, 1, 4, 20)).stats()["op"][0].tuples_processed_psma == 10.0


def test_windows_of_more_than_ten_seconds_ago_do_not_count() -> None:
    assert (
        averaged(window(1, 0, 1, 999), window(2, 1, 2, 4), window(3, 2, 11, 36)).stats()["op"][0]
        == (averaged(window(2, 1, 2, 4), window(3, 2, 11, 36)).stats()["op"][0])
    )


def test_the_last_window_counts_however_long_it_took() -> None:
    assert averaged(window(1, 0, 100, 500)).stats()["op"][0].tuples_processed_psma == 5.0


def test_no_more_windows_are_kept_than_can_be_averaged() -> None:
    averages = averaged(*(window(n, n / 1000, (n + 1) / 1000, 1) for n in range(AVERAGED_WINDOWS + 50)))
    assert len(averages._windows) == AVERAGED_WINDOWS


def test_processor_and_latency_are_averaged() -> None:
    told = averaged(window(1, 0, 1, 1, cpu_seconds=1), window(2, 1, 4, 1, cpu_seconds=1)).stats()["op"][0]
    assert (told.cpu_percentage_ma, told.latency_ma_millis) == (50.0, 150.0)


def test_each_partition_has_averages_of_its_own() -> None:
    told = averaged(window(1, 0, 1, 10, 30)).stats()["op"]
    assert [(one.partition, one.partitions, one.tuples_processed_psma) for one in told] == [(0, 2, 10.0), (1, 2, 30.0)]
    assert [one.last_windowed_stats[0].input_ports[0].tuple_count for one in told] == [10, 30]


def test_windows_with_other_partitions_are_no_measure() -> None:
    told = averaged(window(1, 0, 1, 100), window(2, 1, 2, 3, 4)).stats()["op"]
    assert [one.tuples_processed_psma for one in told] == [3.0, 4.0]


def test_a_window_that_took_no_time_has_no_rate() -> None:
    assert averaged(window(1, 0, 0, 10)).stats()["op"][0].tuples_processed_psma == 0.0


@pytest.mark.parametrize(("waiting", "shares"), [(0, [0, 0, 0]), (3, [1, 1, 1]), (5, [2, 2, 1])])
def test_each_partition_is_told_its_share_of_the_queue(waiting: int, shares: list[int]) -> None:
    program = program_of(compile_application(numbers_collected(((3,),), readers=3)))
    figures = window_figures(
        program,
        7,
        [Report(0, slot, busy_millis=5.0, figures={"digits": Figures({"blocks": 1}, read=4)}) for slot in (2, 0, 1)],
        found={},
        waiting={"digits": waiting},
        began=at(0),
        ended=at(1),
    )
    ports = [stats.input_ports[0] for stats in figures.operators["digits"]]
    assert [port.queue_size for port in ports] == shares
    assert {(port.port, port.tuple_count, port.bytes) for port in ports} == {("blocks", 1, 4)}


def measured(desk: Desk) -> list[Measured]:
    told = list[Measured]()
    desk.run(observers=[lambda happening: told.append(happening) if isinstance(happening, Measured) else None])
    return told


def test_blocks_lines_and_bytes_of_a_file_are_counted(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    text = some_lines(60)
    (tmp_path / "in" / "a.txt").write_text(text)
    told = measured(Desk(tmp_path, lines_through_filter(tmp_path, block_size=100)))
    totals: dict[tuple[str, str], int] = {}
    for stats in (one for each in told for partitions in each.operators.items() for one in _named(*partitions)):
        name, one = stats
        for port in (*one.input_ports, *one.output_ports):
            totals[name, port.port] = totals.get((name, port.port), 0) + port.tuple_count
    assert totals["reader", "messages"] == totals["filter", "input"] == 60
    assert totals["filter", "output"] == totals["writer", "input"] == 40
    assert totals["reader", "blocks_metadata_input"] == totals["splitter", "blocks_metadata_output"]
    assert sum(one.positions for each in told for one in each.operators["reader"]) == len(text)
    assert sum(port.bytes for each in told for one in each.operators["reader"] for port in one.input_ports) == len(text)


def _named(name: str, partitions: object) -> list[tuple[str, OperatorStats]]:
    assert isinstance(partitions, tuple)
    return [(name, stats) for stats in partitions]


def test_a_block_that_is_left_whole_was_not_begun(tmp_path: Path) -> None:
    desk = Desk(tmp_path, numbers_collected(((5, 5, 5),)), backend=Hurried)
    told = measured(desk)
    begun = [one.input_ports[0].tuple_count for each in told for one in each.operators["digits"]]
    assert sum(one.positions for each in told for one in each.operators["digits"]) == 15
    assert len(told) > 1
    assert begun[0] == 1, "the window was over when the first block was read"


def test_what_waits_is_told_with_each_window(tmp_path: Path) -> None:
    desk = Desk(tmp_path, numbers_collected(((5, 5, 5),)), backend=Hurried)
    queues = [one.input_ports[0].queue_size for each in measured(desk) for one in each.operators["digits"]]
    assert queues[0] > 0
    assert queues[-1] == 0
