"""Readers estimate a watermark for each element: by the event times of its records, or by the change of its file."""

import os
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from dagkit import Dag, OperatorContext, StatelessPartitioner
from dagkit.api.running import Until
from dagkit.engine.program.points import Point
from dagkit.testing import Alone, FakeClock
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import (
    AggregateByTime,
    FileInfo,
    FileSplitterInput,
    Items,
    LineReader,
    MatchFiles,
    ReadFiles,
    Record,
    TailFiles,
    TumblingWindows,
)
from tests.engine.cast import Collect, Desk, Draw, Hurried, arrived, chain
from tests.operators.event_time.sums import START, Late, Results, received
from tests.operators.timed_files import FORMATS, number_in
from tests.operators.ways import placed

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ALL_FORMATS = pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)


def second(number: float) -> datetime:
    return EPOCH + timedelta(seconds=number)


@ALL_FORMATS
def test_a_block_and_a_file_reach_the_latest_time_of_their_records_less_the_tolerance(tmp_path, form):
    block = form.written(tmp_path / "in", (5, 1), (9, 2), (7, 3))
    for reader, element in [
        (form.reads_blocks(event_time=form.time, out_of_order_millis=1500), block),
        (form.reads_files(event_time="at", out_of_order_millis=1500), FileInfo(block.path, block.end)),
    ]:
        alone = Alone(reader)
        alone.work(element)
        assert [number_in(record) for record in alone.sent()] == [1, 2, 3]
        assert alone.watermark == second(7.5)


@ALL_FORMATS
def test_a_record_without_an_event_time_is_rejected(tmp_path, form):
    block = form.written(tmp_path / "in", (5, 1), (None, 2), (7, 3))
    alone = Alone(form.reads_blocks(event_time=form.time))
    alone.work(block)
    assert [number_in(record) for record in alone.sent()] == [1, 3]
    (rejected,) = alone.sent("rejected")
    assert (rejected.path, number_in(rejected.item)) == (block.path, 2)
    assert rejected.reason == "the event time None is no time"
    if form.name == "lines":
        assert (rejected.start, rejected.text, type(rejected.item)) == (len("5,1\n"), ",2", Record)
    assert alone.watermark == second(7)


def test_without_an_event_time_readers_are_no_sources(tmp_path):
    alone = Alone(LineReader())
    alone.work(FORMATS[0].written(tmp_path / "in", (5, 1)))
    assert alone.watermark is None
    assert not LineReader().estimates_watermark
    assert LineReader(times_by_change=True).estimates_watermark
    (fault,) = LineReader(times_by_change=True, event_time="at").faults
    assert "records have one event time, so set only one of them" in fault.message


# ---- in applications


def parsed(line: str) -> tuple[str, int]:
    time, number = line.split()
    return time, int(number)


def tailing(home: Path, partitions: int, **given: Any) -> Draw:
    """Sum the numbers of the lines of growing files in windows of ten seconds."""
    of_items = {"time": itemgetter(0), "key": lambda item: "all", "of": itemgetter(1)}
    operators = {
        "patterns": Items([str(home / "in/*.log")]),
        "match": MatchFiles(continuously=True),
        "tail": TailFiles(parse=parsed, event_time=itemgetter(0), **given),
        "sums": AggregateByTime(**of_items, windows=TumblingWindows(millis=10_000)),
        "results": Results(),
    }

    def draw(dag: Dag, conf: object) -> None:
        copies = placed(dag, **operators)
        dag.set_operator_attribute(copies["tail"], OperatorContext.PARTITIONER, StatelessPartitioner(partitions))
        copies["sums"].late >> dag.add_operator("late", Late())

    return draw


def append(path: Path, seconds: range) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.writelines(f"{(START + timedelta(seconds=s)).isoformat()} {s}\n" for s in seconds)


def tens(*ends: int, files: int = 2) -> list[tuple[str, int, int, int]]:
    return [("all", end - 10, end, files * sum(range(end - 10, end))) for end in ends]


def desk_of(home: Path, draw: Any, **given: Any) -> Desk:
    return Desk(home, draw, **{"until": Until.IDLE, "backend": Hurried, "clock": FakeClock(), **given})


def fast_and_slow(home: Path) -> None:
    append(home / "in/fast.log", range(40))
    append(home / "in/slow.log", range(13))


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_growing_file_that_lags_holds_back_the_watermark(tmp_path, partitions):
    desk = desk_of(tmp_path, tailing(tmp_path, partitions))
    fast_and_slow(tmp_path)
    desk.run()
    assert received(desk) == tens(10)
    append(tmp_path / "in/slow.log", range(13, 35))
    desk.run()
    assert (received(desk), received(desk, "late")) == (tens(10, 20, 30), [])


@pytest.mark.gate(3)
@pytest.mark.slow
@pytest.mark.parametrize("window", [1, 2, 3])
@pytest.mark.parametrize("point", Point)
def test_a_crash_changes_no_result_of_growing_files(tmp_path, point, window):
    desk = desk_of(tmp_path, tailing(tmp_path, 2))
    fast_and_slow(tmp_path)
    desk.crash(CrashAfter(point, window))
    append(tmp_path / "in/slow.log", range(13, 35))
    desk.crash(CrashAfter(point))
    desk.run()
    assert (received(desk), received(desk, "late")) == (tens(10, 20, 30), [])


def test_a_growing_file_without_lines_is_let_go_and_comes_back(tmp_path):
    clock, fast, slow = FakeClock(), tmp_path / "in/fast.log", tmp_path / "in/slow.log"
    append(fast, range(25))
    append(slow, range(13))
    began = clock.now()

    def probe(point: Point, window_id: int) -> None:
        if clock.now() - began > timedelta(minutes=3):
            loop.stop()

    draw = tailing(tmp_path, 1, idle_millis=120_000, interval_millis=10_000)
    desk = desk_of(tmp_path, draw, until=Until.STOPPED, clock=clock)
    loop = desk.loop(probe=probe)
    loop.run()
    assert [(start, end) for _, start, end, _ in received(desk)] == [(0, 10), (10, 20)]
    append(slow, range(25, 45))
    append(fast, range(25, 45))
    desk.until = Until.IDLE
    desk.run()
    assert [(start, end) for _, start, end, _ in received(desk)] == [(0, 10), (10, 20), (20, 30), (30, 40)]
    assert received(desk, "late") == []


def reading(home: Path, **given: Any) -> Draw:
    return chain(find=FileSplitterInput(home / "in", block_size=64), read=LineReader(**given), collect=Collect())


def test_blocks_that_wait_hold_back_the_watermark(tmp_path):
    append(tmp_path / "in/a.log", range(20))
    draw = reading(tmp_path, event_time=lambda line: line.split()[0])
    desk = desk_of(tmp_path, draw, clock=None)
    first = desk.run(windows=1).checkpoint
    assert first.queue
    assert first.event_times.sent["read"] is None
    assert desk.run().checkpoint.event_times.sent["read"] == START + timedelta(seconds=19)


def test_files_that_were_read_reach_the_time_of_their_last_change(tmp_path):
    for name, changed in (("a.log", 500), ("b.log", 900), ("c.log", 700)):
        append(tmp_path / "in" / name, range(3))
        os.utime(tmp_path / "in" / name, (changed, changed))
    draw = reading(tmp_path, times_by_change=True, out_of_order_millis=1000)
    desk = desk_of(tmp_path, draw, clock=None)
    reached = [desk.run(windows=1).checkpoint.event_times.sent["read"] for _ in range(3)]
    assert reached == sorted(reached)
    assert reached[0] is not None, "files that wait are known to be later"
    last = desk.run()
    assert last.checkpoint.event_times.sent["read"] == second(899)
    assert len(arrived(last)) == 9


def test_a_file_that_grows_reaches_the_time_of_its_present_change(tmp_path):
    path = tmp_path / "a.log"
    path.write_text("one\n")
    os.utime(path, (500, 500))
    alone = Alone(TailFiles(times_by_change=True))
    found = FileInfo(str(path), 4, 500_000)
    assert alone.operator.earliest(found) == second(500)
    path.write_text("one\ntwo\n")
    os.utime(path, (700, 700))
    alone.work(found)
    assert alone.watermark == second(700)


def test_a_file_of_unknown_change_is_not_known_to_begin_later():
    assert ReadFiles(times_by_change=True).earliest(FileInfo("a.log")) is None
