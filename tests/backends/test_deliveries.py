"""What Spark's workers stage is delivered once, wherever a run ends or restarts: entries of tables, and receipts."""

from pathlib import Path

import pytest

from dagkit.engine.program.points import Point
from dagkit.launching import launch
from dagkit.testing import Crash, CrashAfter
from tests.backends.places import crashes
from tests.engine.delivery_cast import numbers_in, numbers_inserted
from tests.engine.files.test_receipts import NAMES, drawn, filled, receipts

POINTS = [point for point in Point if point is not Point.HALF_FINISHED]  # it writes no files


@pytest.mark.parametrize("point", crashes(POINTS, in_gate=[Point.APPENDED]))
def test_every_number_is_in_the_table_once_after_a_crash(tmp_path, spark, point):
    application = numbers_inserted(tmp_path / "numbers.db")
    with pytest.raises(Crash):
        launch(application, until="idle", spark=spark, path=tmp_path / "app", probe=CrashAfter(point, 2))
    launch(application, until="idle", spark=spark, path=tmp_path / "app")
    assert numbers_in(tmp_path / "numbers.db") == list(range(16))


RECEIPTED = [Point.RUNNING, Point.STAGED, Point.APPENDED, Point.DELIVERED, Point.RECEIPTED]


@pytest.mark.parametrize("point", crashes(RECEIPTED, in_gate=[Point.DELIVERED]))
def test_each_file_has_one_receipt_after_a_crash(tmp_path, spark, point):
    home = filled(tmp_path)
    with pytest.raises(Crash):
        launch(drawn(home, parts=True), until="idle", spark=spark, path=home / "app", probe=CrashAfter(point, 2))
    launch(drawn(home, parts=True), until="idle", spark=spark, path=home / "app")
    assert sorted(receipts(home)) == NAMES
    for name, receipt in receipts(home).items():
        lines = (home / "in" / name).read_text().splitlines()
        written = [line for file in receipt["outputs"] for line in Path(file).read_text().splitlines()]
        assert (receipt["rows"], set(lines) <= set(written)) == ({"reader": len(lines)}, True)
