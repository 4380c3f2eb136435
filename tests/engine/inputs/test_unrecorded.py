"""What an input operator learns without emitting anything is recorded if it asks for that."""

import pytest

from dagkit import InputOperator, OutputPort, State
from dagkit.api.running import Until
from dagkit.testing import FakeClock
from tests.engine.cast import Collect, Desk


class Counts(InputOperator):
    """Emits one number, and counts the commits and teardowns that it hears of."""

    kind = "unrecorded.counts/1"
    out = OutputPort(int)
    asks: bool = True
    heard = State[list[str]](list)
    sent = State(False)

    def emit_tuples(self):
        if not self.sent:
            self.out.emit(1)
            self.sent = True

    def committed(self, window_id):
        self.heard = [*self.heard, "commit"] if len(self.heard) < 2 else self.heard

    def teardown(self):
        self.heard = [*self.heard, "teardown"]

    @property
    def has_unrecorded(self):
        return self.asks


@pytest.mark.parametrize(("asks", "heard"), [(True, ["commit", "commit", "teardown"]), (False, [])])
def test_the_next_launch_knows_what_was_learned_after_the_last_item(tmp_path, asks, heard):
    def graph(dag, conf):
        dag.add_operator("counts", Counts(asks=asks)) >> dag.add_operator("collect", Collect())

    desk = Desk(tmp_path, graph, until=Until.IDLE, clock=FakeClock())
    desk.run()
    assert desk.loop().run_state.journal.state_of("counts").get("heard", []) == heard
    assert desk.faults() == []
