"""`dagkit diff` between the folder of an application and a corrected application: what becomes of the state."""

import pytest

pytestmark = pytest.mark.slow

APP = """
from dagkit import Dag, InputPort, Operator, State
from dagkit_operators import Items

class Summing(Operator):
    input = InputPort(int)
    total = State(0)

    def process(self, item: int) -> None:
        self.total += item

def populate_dag(dag: Dag, conf) -> None:
    dag.add_operator("Numbers", Items[int](items=[1, 2])) >> dag.add_operator("Sum", Summing())
"""

CONF = ("-D", "dt.attr.APPLICATION_NAME=Sums")


def test_the_fate_of_the_state_is_reported_between_a_folder_and_an_application(dagkit, write):
    write("before.py", APP)
    write("after.py", APP.replace('"Sum"', '"Total"'))
    launched = dagkit("launch", "before.py", "--once", "--reference", "--no-sync", "--path", "place", *CONF)
    assert launched.code == 0, launched.err
    answer = dagkit("diff", "place", "before.py", "--exit-code", *CONF)
    kept = ["state:", "  Numbers: carried over: what it found so far", "  Sum: carried over: total"]
    assert (answer.code, answer.out.splitlines()) == (0, kept)
    answer = dagkit("diff", "place", "after.py", "--exit-code", *CONF, "--json")
    first = answer.document["state"][0]
    assert answer.code == 10
    assert (first["operator"], first["fate"], first["code"]) == ("Total", "refused", "operator-renamed")
    assert dagkit("diff", "before.py", "after.py", "--json").document["state"] is None
