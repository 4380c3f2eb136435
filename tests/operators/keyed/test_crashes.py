"""Keyed operators send the same items whatever crashes: their state is that of the last committed window."""

import pytest

from dagkit import Dag, InputOperator, InputPort, Operator, OutputPort, Shutdown, State
from dagkit.engine.checkpoint.row_account import RowAccount
from dagkit.engine.history.row_history import row_history
from dagkit.engine.points import Point
from dagkit.ledger import Ledger
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import Deduplicate, Sample
from tests.engine.cast import Desk

WINDOWS = ("abca", "bdde", "aefg", "hgfa")


class Letters(InputOperator):
    """Some letters for each window."""

    kind = "crashes.letters/1"
    output = OutputPort(str)
    at = State(0)

    def emit_tuples(self) -> None:
        if self.at == len(WINDOWS):
            raise Shutdown
        for letter in WINDOWS[self.at]:
            self.output.emit(letter)
        self.at += 1


class Save(Operator):
    """Keeps all letters that it received."""

    kind = "crashes.save/1"
    input = InputPort(str)
    received = State("")

    def process(self, item: str) -> None:
        self.received += item


def populate_dag(dag: Dag, conf: object) -> None:
    letters = dag.add_operator("Letters", Letters())
    once = dag.add_operator("Once", Deduplicate[str](most_keys=6))
    letters >> once
    once.output >> dag.add_operator("Save", Save())
    sample = dag.add_operator("Every other", Sample[str](every=2))
    dag.add_stream("duplicates", once.duplicates, sample.input)
    sample >> dag.add_operator("Save duplicates", Save())


def outcome(desk: Desk) -> tuple[list[str], list[RowAccount]]:
    """The letters that the sinks received, and the items of each window."""
    state = desk.loop().run_state.state
    letters = [str(state[name][0]["received"]) for name in ("Save", "Save duplicates")]
    return letters, [window.account for window in row_history(Ledger.open(desk.place))]


@pytest.mark.parametrize("point", [Point.PLANNED, Point.RUNNING, Point.STAGED, Point.APPENDED])
@pytest.mark.parametrize("window_id", [1, 3])
def test_a_crash_changes_nothing(point, window_id, tmp_path):
    plain, crashed = Desk(tmp_path / "plain", populate_dag), Desk(tmp_path / "crashed", populate_dag)
    plain.run()
    assert crashed.crash(CrashAfter(point, window_id)) == 1
    crashed.run()
    assert outcome(crashed) == outcome(plain)
    assert outcome(plain)[0] == ["abcdefgh", "adef"]
