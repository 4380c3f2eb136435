"""Applications of keyed operators give the same result with any number of partitions, however these are fed."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import PrivateAttr

from dagkit import Config, Context, Dag, InputPort, Operator
from dagkit.compiler import compile_application
from dagkit.engine.history.row_history import refuse_unbalanced
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit_operators import Aggregate, Branch, Deduplicate, Items, Join, Map, Mean, Sample

NUMBERS = tuple(range(60))


class Save(Operator):
    """Writes the items of a window into a file."""

    kind = "partitions.save/1"
    input = InputPort[Any]()
    name: str = "saved"

    def setup(self, context: Context) -> None:
        self._home = context.home

    def begin_window(self, window_id: int) -> None:
        self._items: list[Any] = []

    def process(self, item: Any) -> None:
        self._items.append(item)

    def end_window(self) -> None:
        if self._items:
            Path(self._home, self.name).write_text(repr(sorted(self._items)))

    _home: str = PrivateAttr(default="")
    _items: list[Any] = PrivateAttr(default_factory=list)


def populate_dag(dag: Dag, conf: Config) -> None:
    """Means of even and odd numbers modulo 7, joined by remainder."""
    numbers = dag.add_operator("Numbers", Items[int](items=NUMBERS))
    spread = dag.add_operator("Spread", Map[int, int](lambda number: number))
    branch = dag.add_operator("Branch", Branch[int](lambda number: number % 2 == 0))
    even = dag.add_operator("Even", Aggregate[int, int, Mean](function="mean", key=lambda n: n % 7, of=lambda n: n))
    odd = dag.add_operator("Odd", Aggregate[int, int, int](function=max, key=lambda n: n % 7))
    join = dag.add_operator("Join", Join[tuple[int, Mean], tuple[int, int]]())
    numbers >> spread >> branch
    branch.matched >> even
    branch.unmatched >> odd
    even >> join.left
    odd >> join.right
    join >> dag.add_operator("Save", Save(name="joined"))
    once = dag.add_operator("Once", Deduplicate[int](key=lambda n: n // 2))
    half = dag.add_operator("Sample", Sample[int](fraction=0.5))
    again = dag.add_operator("Again", Items[int](items=NUMBERS))
    again >> once >> half >> dag.add_operator("Save once", Save(name="once"))


def result(path: Path, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch, machine: Machine) -> list[str]:
    path.mkdir()
    monkeypatch.chdir(path)
    conf = Config.of({f"dt.operator.{name}": value for name, value in settings.items()})
    launch(populate_dag, conf, until="once", machine=machine, path="app")
    refuse_unbalanced(Ledger.open("app"))
    return [Path(name).read_text() for name in ("joined", "once")]


def partitions_of(count: int, *names: str) -> dict[str, str]:
    return {f"{name}.attr.PARTITIONER": f"StatelessPartitioner:{count}" for name in names}


EVEN = {remainder: [n for n in NUMBERS if n % 2 == 0 and n % 7 == remainder] for remainder in range(7)}
ODD = {remainder: [n for n in NUMBERS if n % 2 and n % 7 == remainder] for remainder in range(7)}
JOINED = [
    ((remainder, Mean(sum(EVEN[remainder]), len(EVEN[remainder]))), (remainder, max(ODD[remainder])))
    for remainder in range(7)
]
WAYS = {
    "one partition each": {},
    "keyed partitions": partitions_of(3, "Even", "Odd", "Join", "Once", "Sample"),
    "mirrored partitions": {
        **partitions_of(3, "Spread", "Once"),
        "Branch.port.input.attr.PARTITION_PARALLEL": "true",
        "Even.port.input.attr.PARTITION_PARALLEL": "true",
        "Odd.port.input.attr.PARTITION_PARALLEL": "true",
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("settings", WAYS.values(), ids=WAYS.keys())
def test_the_result_does_not_depend_on_partitions(settings, tmp_path, monkeypatch):
    joined, once = result(tmp_path / "run", settings, monkeypatch, Machine("reference"))
    assert joined == repr(JOINED)
    alone = result(tmp_path / "alone", {}, monkeypatch, Machine("reference"))
    assert once == alone[1]


def test_payloads_follow_from_the_streams():
    def typed(dag: Dag, conf: Config) -> None:
        numbers = dag.add_operator("Numbers", Items[int](items=(1,)))
        once, sample = dag.add_operator("Once", Deduplicate()), dag.add_operator("Sample", Sample(every=2))
        branch, join = (
            dag.add_operator("Branch", Branch(bool)),
            dag.add_operator("Join", Join(left_key=str, right_key=str)),
        )
        numbers >> once >> sample >> branch
        branch.matched >> join.left
        branch.unmatched >> join.right

    plan = compile_application(typed).plan
    payloads = {name: {port.name: port.payload for port in plan.by_name[name].ports} for name in plan.by_name}
    assert payloads["Once"]["output"] == payloads["Sample"]["output"] == payloads["Branch"]["unmatched"] == "int"
    assert payloads["Join"]["joined"] == "tuple[int, int]"
