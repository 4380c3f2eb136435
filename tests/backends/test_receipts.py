"""Every backend writes one receipt for each input file, with the same rows, wherever a run ends."""

from pathlib import Path

import pytest

from dagkit.engine.points import Point
from dagkit.launching import Machine, launch
from dagkit.testing import Crash, CrashAfter
from tests.backends.places import on_backends
from tests.engine.receipts.test_finders import FINDERS, assert_right
from tests.engine.receipts.test_finders import drawn as drawn_with
from tests.engine.receipts.test_receipts import NAMES, drawn, filled, receipts

pytestmark = pytest.mark.slow

POINTS = [Point.RUNNING, Point.STAGED, Point.APPENDED, Point.DELIVERED, Point.RECEIPTED]


@on_backends("point", POINTS, in_gate=Point.DELIVERED)
def test_each_file_has_one_receipt_after_a_crash(tmp_path, backend, point, request):
    session = request.getfixturevalue("spark") if backend == "spark" else None
    home, machine = filled(tmp_path), Machine(backend=backend, spark=session)
    with pytest.raises(Crash):
        launch(drawn(home, parts=True), until="idle", machine=machine, path=home / "app", probe=CrashAfter(point, 2))
    launch(drawn(home, parts=True), until="idle", machine=machine, path=home / "app")
    found = receipts(home)
    assert sorted(found) == NAMES
    for name, receipt in found.items():
        assert receipt["rows"] == {"reader": len((home / "in" / name).read_text().splitlines())}
        lines = [line for file in receipt["outputs"] for line in Path(file).read_text().splitlines()]
        assert set((home / "in" / name).read_text().splitlines()) <= set(lines)


@on_backends("finder", FINDERS)
def test_each_finder_can_ask_for_receipts(tmp_path, backend, finder, request):
    session = request.getfixturevalue("spark") if backend == "spark" else None
    home, machine = filled(tmp_path), Machine(backend=backend, spark=session)
    with pytest.raises(Crash):
        launch(
            drawn_with(home, finder),
            until="idle",
            machine=machine,
            path=home / "app",
            probe=CrashAfter(Point.APPENDED, 1),
        )
    launch(drawn_with(home, finder), until="idle", machine=machine, path=home / "app")
    assert_right(home, NAMES)
