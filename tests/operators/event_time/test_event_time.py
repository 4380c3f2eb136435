"""Event time in applications: from files to results, on every backend, across partitions, launches and crashes."""

from datetime import UTC, datetime

import pytest

from dagkit.engine.points import Point
from dagkit.testing import Alone
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import (
    EventTime,
)
from tests.engine.cast import Desk, Hurried
from tests.operators.event_time.sums import received, sums, totals, write


@pytest.mark.parametrize("partitions", [1, 3])
def test_results_do_not_depend_on_blocks_nor_partitions(tmp_path, partitions):
    write(tmp_path, "0.txt", range(61))
    desk = Desk(tmp_path, sums(tmp_path, partitions=partitions), backend=Hurried)
    desk.run()
    assert received(desk) == totals(20, 40, 60)
    assert received(desk, "late") == []


def test_a_later_launch_continues_the_windows(tmp_path):
    write(tmp_path, "0.txt", range(30))
    desk = Desk(tmp_path, sums(tmp_path))
    desk.run()
    assert received(desk) == totals(20)
    write(tmp_path, "1.txt", range(30, 90))
    desk.run()
    assert received(desk) == totals(20, 40, 60, 80)
    assert received(desk, "late") == []


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 2)])
def test_open_windows_move_with_their_keys(tmp_path, before, after):
    write(tmp_path, "0.txt", range(38))
    Desk(tmp_path, sums(tmp_path, partitions=before)).run()
    write(tmp_path, "1.txt", range(38, 61))
    desk = Desk(tmp_path, sums(tmp_path, partitions=after))
    desk.run()
    assert received(desk) == totals(20, 40, 60)
    assert received(desk, "late") == []


def test_all_windows_are_closed_where_asked(tmp_path):
    write(tmp_path, "0.txt", range(60))
    desk = Desk(tmp_path, sums(tmp_path, close_when_drained=True))
    desk.run()
    assert received(desk) == totals(20, 40, 60)


@pytest.mark.gate(8)
@pytest.mark.slow
@pytest.mark.parametrize("window", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("point", Point)
def test_a_crash_after_any_step_changes_no_result(tmp_path, point, window):
    write(tmp_path, "0.txt", range(61))
    desk = Desk(tmp_path, sums(tmp_path), backend=Hurried)
    desk.crash(CrashAfter(point, window), CrashAfter(point))
    desk.run()
    assert received(desk) == totals(20, 40, 60)
    assert received(desk, "late") == []
    assert desk.faults() == []


@pytest.mark.parametrize("as_batches", [False, True])
def test_the_watermark_is_the_latest_time_less_the_tolerance(as_batches):
    alone = Alone(EventTime(time=lambda second: second, out_of_order_millis=2000))
    assert alone.operator.current_watermark() is None
    with alone.window():
        alone.send_batch([5, 9, 7]) if as_batches else alone.send(5, 9, 7)
    assert alone.sent() == [5, 9, 7]
    assert alone.operator.current_watermark() == datetime(1970, 1, 1, 0, 0, 7, tzinfo=UTC)


@pytest.mark.parametrize("as_batches", [False, True])
def test_an_item_without_a_time_is_rejected_and_does_not_count(as_batches):
    alone = Alone(EventTime(time="at", time_unit="ms"))
    items = [{"at": 1000}, {"at": None}]
    with alone.window():
        alone.send_batch(items) if as_batches else alone.send(*items)
    assert alone.sent() == items[:1]
    assert [each.item for each in alone.sent("rejected")] == items[1:]
    assert alone.operator.current_watermark() == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
