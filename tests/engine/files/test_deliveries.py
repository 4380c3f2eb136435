"""What a window stages for an external system is there once after its commit, wherever a run ends."""

import logging
from itertools import pairwise
from pathlib import Path

import pytest

from dagkit.api.external import Unavailable
from dagkit.api.running import Until
from dagkit.engine.files.entries import CommittedEntries, StagedEntries
from dagkit.engine.files.pieces import PiecesLost
from dagkit.engine.files.staging import Staging, StagingPlace
from dagkit.engine.program.address import Address
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.program.points import Point
from dagkit.errors import RunFailure
from dagkit.testing import Alone, Crash, CrashAfter, FakeClock
from tests.engine.cast import Desk, Hurried
from tests.engine.delivery_cast import (
    TROUBLE,
    Insert,
    numbers_in,
    numbers_inserted,
    numbers_inserted_in_both,
    windows_in,
)

ALL = list(range(16))
INSERT = "the external system of insert"


@pytest.fixture(autouse=True)
def trouble():
    yield TROUBLE
    assert TROUBLE == []
    TROUBLE.clear()


@pytest.fixture
def table(tmp_path):
    return tmp_path / "numbers.db"


@pytest.fixture
def desk(tmp_path, table):
    return Desk(tmp_path, numbers_inserted(table), until=Until.IDLE, clock=FakeClock())


def assert_delivered(desk: Desk, table: Path, numbers: list[int] = ALL) -> None:
    assert numbers_in(table) == numbers
    assert (desk.faults(), desk.leftovers()) == ([], [])


def test_every_number_is_in_the_table_once(desk, table):
    loop = desk.run()
    assert_delivered(desk, table)
    ((writer, window),) = windows_in(table).items()
    assert (writer.rpartition("/")[2], window) == ("insert.staged", loop.checkpoint.window)


@pytest.mark.gate(40)
@pytest.mark.parametrize("second", Point)
@pytest.mark.parametrize("first", Point)
def test_a_crash_while_a_crash_is_repaired_loses_and_doubles_nothing(desk, table, first, second):
    desk.crash(CrashAfter(first, 2), CrashAfter(second))
    desk.run()
    assert numbers_in(table) == ALL


@pytest.mark.parametrize("moment", ["prepare", "before", "within", "after"])
def test_a_crash_in_a_call_of_the_system_loses_and_doubles_nothing(desk, table, moment, trouble):
    trouble.append(f"{moment} crash")
    with pytest.raises(Crash):
        desk.run()
    desk.run()
    assert numbers_in(table) == ALL


@pytest.mark.parametrize(("point", "visible"), [(Point.STAGED, 0), (Point.APPENDED, 0), (Point.DELIVERED, 7)])
def test_nothing_is_visible_before_the_commit_and_all_after_it(desk, table, point, visible):
    desk.crash(CrashAfter(point, 1))
    assert numbers_in(table) == list(range(visible))


def test_a_system_that_is_away_is_waited_for_and_logged_once(desk, table, trouble, caplog):
    trouble += ["prepare away", "before away", "before away", "within away"]
    with caplog.at_level(logging.WARNING):
        desk.run()
    assert numbers_in(table) == ALL
    away = f"{INSERT} does not answer, and is tried again until it does: the database is away [system-unavailable]"
    assert caplog.messages == [away, f"{INSERT} answers again, after 0 s"]


def test_a_run_that_is_to_stop_leaves_an_unavailable_system_to_the_next_launch(desk, table, trouble, caplog):
    def probe(point: Point, window_id: int) -> None:
        if point is Point.APPENDED:
            trouble.append("before away")
            loop.stop()

    loop = desk.loop(probe=probe)
    with caplog.at_level(logging.WARNING):
        loop.run()
    assert caplog.messages[-1].startswith("stopped while the external system of insert.")
    assert loop.checkpoint.window == 1
    assert numbers_in(table) == []
    caplog.clear()
    desk.run()
    assert numbers_in(table) == ALL
    assert "stopped while" not in caplog.text


def test_a_system_that_stays_away_is_logged_every_five_minutes(desk, trouble, caplog):
    trouble += ["before away"] * 30
    with caplog.at_level(logging.WARNING):
        desk.run()
    assert [message.removeprefix(f"{INSERT} ").partition(":")[0] for message in caplog.messages] == [
        "does not answer, and is tried again until it does",
        "has not answered for 302 s",
        "has not answered for 602 s",
        "answers again, after 752 s",
    ]


def test_a_run_waits_no_longer_than_it_is_said(tmp_path, table, trouble):
    desk = Desk(tmp_path, numbers_inserted(table, waits_seconds=3), until=Until.IDLE, clock=FakeClock())
    trouble += ["before away"] * 4
    with pytest.raises(OperatorFailed, match="the database is away") as raised:
        desk.run()
    assert raised.value.code == Unavailable.code
    desk.run()
    assert numbers_in(table) == ALL


def test_each_system_may_be_away_for_the_whole_time(tmp_path, trouble, caplog):
    paths = tmp_path / "first.db", tmp_path / "second.db"
    desk = Desk(tmp_path, numbers_inserted_in_both(*paths, waits_seconds=3), until=Until.IDLE, clock=FakeClock())
    trouble += ["before away first"] * 3 + ["before away second"]
    with caplog.at_level(logging.WARNING):
        desk.run()
    assert [numbers_in(path) for path in paths] == [ALL, ALL]
    assert [message.partition(",")[0] for message in caplog.messages] == [
        "the external system of first does not answer",
        "the external system of first answers again",
        "the external system of second does not answer",
        "the external system of second answers again",
    ]


def test_a_system_that_refuses_ends_the_run_and_the_next_launch_delivers(desk, table, trouble):
    trouble.append("before refuse")
    with pytest.raises(OperatorFailed, match=r"window 1 is committed, and .* did not take it: RuntimeError") as refused:
        desk.run()
    assert refused.value.code == "delivery-failed"
    desk.run()
    assert numbers_in(table) == ALL


def test_a_system_that_refuses_at_the_start_lets_nothing_be_read(desk, trouble):
    trouble.append("prepare refuse")
    with pytest.raises(OperatorFailed, match="the database refuses"):
        desk.run()
    assert list(desk.loop().parts.inputs.found) == []


def test_entries_of_an_output_that_is_gone_are_not_dropped(desk, table):
    desk.crash(CrashAfter(Point.APPENDED, 1))
    other = numbers_inserted(table, insert="writes")
    with pytest.raises(RunFailure, match=r"window 1 committed entries for insert\.staged"):
        Desk(desk.home, other, until=Until.IDLE).run()
    desk.run()
    assert numbers_in(table) == ALL


def test_an_application_that_starts_over_is_another_writer(tmp_path, desk, table):
    desk.run()
    (tmp_path / "again").mkdir()
    Desk(tmp_path / "again", desk.draw, until=Until.IDLE).run()
    assert numbers_in(table) == sorted(2 * ALL)
    assert len(windows_in(table)) == 2


def test_pieces_that_are_gone_or_cut_are_missed(desk, table):
    desk.crash(CrashAfter(Point.APPENDED, 1))
    piece = max(Path(desk.place).glob("staging/1/*/*/*.part"), key=lambda path: path.stat().st_size)
    content = piece.read_bytes()
    for damage in (lambda: piece.write_bytes(content[:-1]), piece.unlink):
        damage()
        with pytest.raises(OperatorFailed, match="are gone or cut") as missed:
            desk.run()
        assert (missed.value.code, numbers_in(table)) == (PiecesLost.code, [])
    piece.write_bytes(content)
    desk.run()
    assert numbers_in(table) == ALL


@pytest.fixture
def pipeline(tmp_path, table):
    """Windows that leave work to the next one, which begins before they are delivered."""
    return Desk(tmp_path, numbers_inserted(table, looks=((40,),), readers=1), backend=Hurried, until=Until.IDLE)


def test_a_window_begins_before_the_one_before_it_is_delivered(pipeline, table):
    seen: list[tuple[Point, int]] = []
    pipeline.run(probe=lambda point, window_id: seen.append((point, window_id)))
    windows = [window for point, window in seen if point is Point.APPENDED]
    assert len(windows) > 2
    assert all(
        seen.index((Point.RUNNING, after)) < seen.index((Point.DELIVERED, before)) < seen.index((Point.APPENDED, after))
        for before, after in pairwise(windows)
    )


@pytest.mark.gate(4)
@pytest.mark.slow
@pytest.mark.parametrize("window", [1, 2, 3])
@pytest.mark.parametrize("point", Point)
def test_a_crash_with_a_window_beside_a_delivery_loses_and_doubles_nothing(pipeline, table, point, window):
    pipeline.crash(CrashAfter(point, window))
    pipeline.run()
    assert_delivered(pipeline, table, list(range(40)))


@pytest.mark.parametrize("trouble_of", ["before away", "within crash", "after crash", "before refuses"])
def test_trouble_with_a_system_while_a_window_runs_loses_and_doubles_nothing(pipeline, table, trouble, trouble_of):
    trouble.append(trouble_of)
    if trouble_of != "before away":
        with pytest.raises((Crash, OperatorFailed)):
            pipeline.run()
    pipeline.clock = FakeClock()
    pipeline.run()
    assert_delivered(pipeline, table, list(range(40)))


def test_entries_keep_the_order_in_which_they_were_added_whatever_was_read_meanwhile(tmp_path):
    staging = Staging(StagingPlace(str(tmp_path), 1, "a", durable=False), 0)
    staged = StagedEntries(staging, Address("insert.staged"))
    for start, entry in ((50, b"a"), (0, b"b"), (50, b"c")):
        staging.order = start
        staged.add(entry)
    assert list(CommittedEntries("writer", 1, staging.parts(), str(tmp_path)).entries()) == [b"a", b"b", b"c"]


def test_an_operator_alone_keeps_its_entries():
    alone = Alone(Insert(path=""))
    with alone.window():
        alone.send(1, 2)
    assert alone.entries["staged"].added == [b"[1]", b"[2]"]
    assert alone.restarted().entries["staged"].added == [b"[1]", b"[2]"]
