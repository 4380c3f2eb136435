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


@pytest.fixture
def diff(dagkit, write):
    """Run an application and return `dagkit diff` between its folder and another application."""
    write("before.py", APP)
    launched = dagkit("launch", "before.py", "--once", "--reference", "--no-sync", "--path", "place", *CONF)
    assert launched.code == 0, launched.err

    def call(text, *options):
        write("after.py", text)
        return dagkit("diff", "place", "after.py", "--exit-code", *CONF, *options)

    return call


@pytest.mark.usefixtures("diff")
def test_state_of_an_equal_application_is_carried_over(dagkit):
    answer = dagkit("diff", "place", "before.py", "--exit-code", *CONF)
    assert (answer.code, answer.out.splitlines()) == (
        0,
        ["state:", "  Numbers: carried over: what it found so far", "  Sum: carried over: total"],
    )


def test_a_refusal_gives_ten_and_its_code(diff):
    answer = diff(APP.replace('"Sum"', '"Total"'), "--json")
    first = answer.document["state"][0]
    assert (answer.code, first["operator"], first["fate"], first["code"]) == (
        10,
        "Total",
        "refused",
        "operator-renamed",
    )


def test_two_applications_have_no_state(dagkit, diff):
    diff(APP)
    assert dagkit("diff", "before.py", "after.py", "--json").document["state"] is None
