"""Keyed operators send the same items whatever crashes: their state is that of the last committed window."""

import pytest

from dagkit.engine.program.points import Point
from dagkit.engine.record.history import row_history
from dagkit.ledger import Ledger
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import Deduplicate, Sample
from tests.engine.cast import Collect, Desk, Script, arrived

LOOKS = ((0, 1, 2, 0), (1, 3, 3, 4), (0, 4, 5, 6), (7, 6, 5, 0))


def populate_dag(dag, conf):
    once = dag.add_operator("Once", Deduplicate[int](most_keys=6))
    dag.add_operator("Numbers", Script(looks=LOOKS, pause_millis=0, ends=True)) >> once
    once.output >> dag.add_operator("once", Collect())
    once.duplicates >> dag.add_operator("Every other", Sample[int](every=2)) >> dag.add_operator("again", Collect())


def outcome(desk):
    """The numbers that the sinks received, and the items of each window."""
    loop = desk.loop()
    accounts = [window.account for window in row_history(Ledger.open(desk.place))]
    return arrived(loop, "once"), arrived(loop, "again"), accounts


@pytest.mark.parametrize("point", [Point.PLANNED, Point.RUNNING, Point.STAGED, Point.APPENDED])
@pytest.mark.parametrize("window_id", [1, 3])
def test_a_crash_changes_nothing(point, window_id, tmp_path):
    plain, crashed = Desk(tmp_path / "plain", populate_dag), Desk(tmp_path / "crashed", populate_dag)
    plain.run()
    assert crashed.crash(CrashAfter(point, window_id)) == 1
    crashed.run()
    assert outcome(crashed) == outcome(plain)
    assert outcome(plain)[0] == [0, 1, 2, 3, 4, 5, 6, 7]
