"""What Spark's workers stage is delivered once, wherever a run ends or restarts: entries of tables, and receipts."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from dagkit.engine.points import Point
from dagkit.launching import launch
from dagkit.runs.restarting import Restart
from dagkit.testing import Crash, CrashAfter
from tests.backends.places import crashes
from tests.engine.cast import files_in
from tests.engine.delivery_cast import numbers_in, numbers_inserted
from tests.engine.receipts.test_finders import FINDERS, assert_right
from tests.engine.receipts.test_finders import drawn as drawn_with
from tests.engine.receipts.test_receipts import NAMES, drawn, filled, receipts

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
POINTS = [point for point in Point if point is not Point.HALF_FINISHED]  # it writes no files


@pytest.mark.parametrize("point", crashes(POINTS, in_gate=[Point.APPENDED]))
def test_every_number_is_in_the_table_once_after_a_crash(tmp_path, spark, point):
    application = numbers_inserted(tmp_path / "numbers.db")
    with pytest.raises(Crash):
        launch(application, until="idle", spark=spark, path=tmp_path / "app", probe=CrashAfter(point, 2))
    launch(application, until="idle", spark=spark, path=tmp_path / "app")
    assert numbers_in(tmp_path / "numbers.db") == list(range(16))


def assert_written(home: Path) -> None:
    """The outputs that a receipt names hold the lines of its file."""
    for name, receipt in receipts(home).items():
        written = [line for file in receipt["outputs"] for line in Path(file).read_text().splitlines()]
        assert set((home / "in" / name).read_text().splitlines()) <= set(written)
    assert sorted(receipts(home)) == NAMES


RECEIPTED = [Point.RUNNING, Point.STAGED, Point.APPENDED, Point.DELIVERED, Point.RECEIPTED]


@pytest.mark.parametrize("point", crashes(RECEIPTED, in_gate=[Point.DELIVERED]))
def test_each_file_has_one_receipt_after_a_crash(tmp_path, spark, point):
    home = filled(tmp_path)
    with pytest.raises(Crash):
        launch(drawn(home, parts=True), until="idle", spark=spark, path=home / "app", probe=CrashAfter(point, 2))
    launch(drawn(home, parts=True), until="idle", spark=spark, path=home / "app")
    assert_written(home)
    for name, receipt in receipts(home).items():
        assert receipt["rows"] == {"reader": len((home / "in" / name).read_text().splitlines())}


@pytest.mark.trial
@pytest.mark.parametrize("finder", FINDERS)
def test_each_finder_can_ask_for_receipts(tmp_path, spark, finder):
    home, crash = filled(tmp_path), CrashAfter(Point.APPENDED, 1)
    with pytest.raises(Crash):
        launch(drawn_with(home, finder), until="idle", spark=spark, path=home / "app", probe=crash)
    launch(drawn_with(home, finder), until="idle", spark=spark, path=home / "app")
    assert_right(home, NAMES)


def test_a_restarted_application_writes_what_it_had_written_with_one_receipt_a_file(tmp_path, session):
    home, place = filled(tmp_path), tmp_path / "app"
    last = launch(drawn(home, parts=False), spark=session, until="idle", path=place).window_id
    assert last > 2
    whole = {path.name: path.read_bytes() for path in files_in(home / "out")}
    assert_written(home)
    Restart.planned(str(place), last - 2).perform(NOON)
    assert len(receipts(home)) < len(NAMES)
    assert launch(drawn(home, parts=False), spark=session, until="idle", path=place).window_id > last - 2
    assert {path.name: path.read_bytes() for path in files_in(home / "out")} == whole
    assert_written(home)
