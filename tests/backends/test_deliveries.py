"""Every backend stages entries for an external system; it has them once, wherever a run ends."""

import pytest

from dagkit.engine.points import Point
from dagkit.launching import Machine, launch
from dagkit.testing import Crash, CrashAfter
from tests.backends.places import on_backends
from tests.engine.delivery_cast import numbers_in, numbers_inserted

pytestmark = pytest.mark.slow

POINTS = [point for point in Point if point is not Point.HALF_FINISHED]  # it writes no files


@on_backends("point", POINTS, in_gate=Point.APPENDED)
def test_every_number_is_in_the_table_once_after_a_crash(tmp_path, backend, point, request):
    session = request.getfixturevalue("spark") if backend == "spark" else None
    table, machine = tmp_path / "numbers.db", Machine(backend=backend, spark=session)
    application = numbers_inserted(table)
    with pytest.raises(Crash):
        launch(application, until="idle", machine=machine, path=tmp_path / "app", probe=CrashAfter(point, 2))
    launch(application, until="idle", machine=machine, path=tmp_path / "app")
    assert numbers_in(table) == list(range(16))
