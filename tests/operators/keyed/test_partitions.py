"""Applications of keyed operators give the same result with any number of partitions, however these are fed."""

import pytest

from dagkit.compiler import compile_application
from dagkit.engine.record.history import refuse_unbalanced
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit_operators import Aggregate, Branch, Deduplicate, Items, Join, Map, Mean, PartWriter, Sample
from tests.operators.ways import in_partitions, lines_in

NUMBERS = tuple(range(60))


def populate_dag(dag, conf):
    """Means of even and odd numbers modulo 7, joined by remainder."""
    spread = dag.add_operator("Spread", Map[int, int](lambda number: number))
    branch = dag.add_operator("Branch", Branch[int](lambda number: number % 2 == 0))
    join = dag.add_operator("Join", Join[tuple[int, Mean], tuple[int, int]]())
    dag.add_operator("Numbers", Items[int](items=NUMBERS)) >> spread >> branch
    even = Aggregate[int, int, Mean](function="mean", key=lambda n: n % 7, of=lambda n: n)
    branch.matched >> dag.add_operator("Even", even) >> join.left
    (
        branch.unmatched
        >> dag.add_operator("Odd", Aggregate[int, int, int](function=max, key=lambda n: n % 7))
        >> join.right
    )
    join >> dag.add_operator("Save", PartWriter(file_path="joined", format=repr))
    once = dag.add_operator("Once", Deduplicate[int](key=lambda n: n // 2))
    half = dag.add_operator("Sample", Sample[int](fraction=0.5))
    again = dag.add_operator("Again", Items[int](items=NUMBERS))
    again >> once >> half >> dag.add_operator("Save once", PartWriter(file_path="once", format=repr))


def result(path, conf, monkeypatch, machine):
    path.mkdir()
    monkeypatch.chdir(path)
    launch(populate_dag, conf, until="once", machine=machine, path="app")
    refuse_unbalanced(Ledger.open("app"))
    return [f"[{', '.join(lines_in(name))}]" for name in ("joined", "once")]


def numbers(remainder, *, odd):
    return [n for n in NUMBERS if n % 2 == odd and n % 7 == remainder]


JOINED = [
    ((remainder, Mean(sum(even), len(even))), (remainder, max(numbers(remainder, odd=True))))
    for remainder in range(7)
    for even in [numbers(remainder, odd=False)]
]
WAYS = {
    "one partition each": {},
    "keyed partitions": in_partitions(Even=3, Odd=3, Join=3, Once=3, Sample=3),
    "mirrored partitions": in_partitions(Spread=3, Once=3)
    | {f"dt.operator.{name}.port.input.attr.PARTITION_PARALLEL": "true" for name in ("Branch", "Even", "Odd")},
}


@pytest.mark.slow
def test_the_result_does_not_depend_on_partitions(tmp_path, monkeypatch):
    (alone, *others) = [result(tmp_path / way, WAYS[way], monkeypatch, Machine("reference")) for way in WAYS]
    assert alone[0] == repr(JOINED)
    assert others == [alone, alone]


def test_payloads_follow_from_the_streams():
    def typed(dag, conf):
        branch = dag.add_operator("Branch", Branch(bool))
        join = dag.add_operator("Join", Join(left_key=str, right_key=str))
        once, sample = dag.add_operator("Once", Deduplicate()), dag.add_operator("Sample", Sample(every=2))
        dag.add_operator("Numbers", Items[int](items=(1,))) >> once >> sample >> branch
        branch.matched >> join.left
        branch.unmatched >> join.right

    plan = compile_application(typed).plan
    payloads = {name: {port.name: port.payload for port in plan.by_name[name].ports} for name in plan.by_name}
    assert payloads["Once"]["output"] == payloads["Sample"]["output"] == payloads["Branch"]["unmatched"] == "int"
    assert payloads["Join"]["joined"] == "tuple[int, int]"
