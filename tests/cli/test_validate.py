"""`dagkit validate` and `dagkit diff` of an application that was launched: what becomes of its state."""

import pytest

from tests.cli.test_process import LIST_IMPORTS

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
KEPT = ["state:", "  Numbers: carried over: what it found so far", "  Sum: carried over: total"]


@pytest.fixture
def launched(dagkit, write):
    """Run the application in its usual folder."""
    write("sums.py", APP)
    answer = dagkit("launch", "sums.py", "--once", "--reference", "--no-sync", *CONF)
    assert answer.code == 0, answer.err


@pytest.mark.slow
@pytest.mark.usefixtures("launched")
def test_the_state_of_an_equal_application_is_carried_over(dagkit):
    assert dagkit("validate", "sums.py", *CONF).out.splitlines() == [
        "Sums is valid: 2 operators, 1 stream, 2 stages",
        "its ledger is in .dagkit/Sums: window 1 is the last one",
        *("no change since the last launch", *KEPT),
    ]
    answer = dagkit("diff", ".dagkit/Sums", "sums.py", "--exit-code", *CONF)
    assert (answer.code, answer.out.splitlines()) == (0, KEPT)


@pytest.mark.slow
@pytest.mark.usefixtures("launched")
def test_a_renamed_operator_and_another_application_are_refused_as_by_a_launch(dagkit, write):
    other = ("--path", ".dagkit/Sums", "-D", "dt.attr.APPLICATION_NAME=Others", "--json")
    first = dagkit("validate", "sums.py", *other).document["ledger"]["state"][0]
    assert (first["fate"], first["code"]) == ("refused", "application-mismatched")
    write("sums.py", APP.replace('"Sum"', '"Total"'))
    shown = dagkit("validate", "sums.py", *CONF)
    assert (shown.code, "changes since the last launch:" in shown.out) == (0, True)
    assert "  input that was processed is not processed again" in shown.out.splitlines()
    ledger = dagkit("validate", "sums.py", *CONF, "--json").document["ledger"]
    diff = dagkit("diff", ".dagkit/Sums", "sums.py", "--exit-code", *CONF, "--json")
    assert (diff.code, diff.document["state"]) == (10, ledger["state"])
    assert dagkit("diff", "sums.py", "sums.py", "--json").document["state"] is None
    refused = dagkit("launch", "sums.py", "--once", "--reference", *CONF, "--json").document
    first = ledger["state"][0]
    assert (first["operator"], first["fate"], first["code"]) == ("Total", "refused", "operator-renamed")
    assert refused["code"] == first["code"]
    assert f"  Total: refused: {first['detail']} [operator-renamed]" in shown.out.splitlines()
    assert "Total" in {change["subject"] for change in ledger["changes"]}


@pytest.mark.slow
@pytest.mark.usefixtures("launched")
def test_what_follows_from_a_change_is_counted_and_not_listed(dagkit):
    partitions = ("-D", "dt.operator.Sum.attr.PARTITIONER=StatelessPartitioner:3")
    shown = dagkit("validate", "sums.py", *CONF, *partitions).out.splitlines()
    partitioner = "{'class': 'dagkit.api.partitioning.StatelessPartitioner', 'partition_count': 3}"
    changes = shown.index("1 change since the last launch:")
    assert shown[changes + 1 : changes + 4] == [
        f"  operator Sum: attribute PARTITIONER is now set to {partitioner}",
        "  so 3 parts of the plan differ, too: dagkit diff .dagkit/Sums APP",
        "  input that was processed is not processed again",
    ]
    diff = dagkit("diff", ".dagkit/Sums", "sums.py", *CONF, *partitions, "--json").document["changes"]
    assert len(diff) == 4
    whole = dagkit("validate", "sums.py", *CONF, *partitions, "--json").document["ledger"]["changes"]
    assert whole == diff


@pytest.mark.slow
def test_without_a_ledger_nothing_of_it_is_loaded(process, word_count):
    loaded = process("validate", word_count, python=("-c", LIST_IMPORTS)).err.split()
    assert "pydantic" in loaded
    assert [name for name in loaded if name.startswith(("dagkit.ledger", "dagkit.engine.record"))] == []


def test_a_remote_folder_is_not_asked(dagkit, word_count):
    answer = dagkit("validate", word_count, "--path", "s3://nowhere.invalid/app", "--json")
    assert (answer.code, answer.document["ledger"]) == (0, None)
