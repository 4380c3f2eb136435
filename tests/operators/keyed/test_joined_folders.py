"""Two folders are joined whole, in whichever windows and launches their files are found."""

from dataclasses import dataclass

import pytest

from dagkit.compiler import compile_application
from dagkit.engine.program.points import Point
from dagkit.launching import Machine, launch
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import (
    Deduplicate,
    FileSplitterInput,
    Items,
    Join,
    LeftJoin,
    LineReader,
    MatchFiles,
    OuterJoin,
    PartWriter,
    ReadFiles,
    Record,
    Validate,
)
from tests.engine.cast import Desk
from tests.old_files import aged
from tests.operators.ways import in_partitions

ORDERS = {"a": ["1 pen", "2 ink"], "b": ["3 cap"], "c": ["1 nib", "9 box"]}
CUSTOMERS = {"x": ["3 Cid"], "y": ["2 Bob", "4 Dan"], "z": ["1 Ann"]}
EXTRA = {"w": ["9 Eve"]}
PAIRS = ["1 nib, 1 Ann", "1 pen, 1 Ann", "2 ink, 2 Bob", "3 cap, 3 Cid"]
ALONE = {Join: [], LeftJoin: ["9 box, -"], OuterJoin: ["-, 4 Dan", "9 box, -"]}


def first_word(line: str) -> str:
    return line.partition(" ")[0]


def line_of(pair: tuple[Record[str] | None, Record[str] | None]) -> str:
    return ", ".join("-" if one is None else one.value for one in pair)


def folders_joined(home, kind=Join, **properties):
    """Both finders find one file in each window, so the files of one window do not fit."""

    def populate_dag(dag, conf):
        join = dag.add_operator("Join", kind(left_key=first_word, right_key=first_word, **properties))
        for folder, into in (("orders", join.left), ("customers", join.right)):
            scanner = {"files": [str(home / folder)], "scan_interval_millis": 0}
            find = dag.add_operator(f"Find {folder}", FileSplitterInput(scanner=scanner, blocks_threshold=1))
            find >> dag.add_operator(f"Read {folder}", LineReader()) >> into
        join >> dag.add_operator("Write", PartWriter(file_path=str(home / "out"), format=line_of))

    return populate_dag


def write(home, folder, files):
    (home / folder).mkdir(parents=True, exist_ok=True)
    for name, lines in files.items():
        (path := home / folder / name).write_text("".join(f"{line}\n" for line in lines))
        aged(path)


def written(home):
    return sorted(line for path in (home / "out").rglob("part-*") for line in path.read_text().splitlines())


@pytest.fixture
def home(tmp_path):
    write(tmp_path, "orders", ORDERS)
    write(tmp_path, "customers", CUSTOMERS)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Join, LeftJoin, OuterJoin])
@pytest.mark.parametrize("partitions", [1, 3])
def test_one_launch_joins_all_files(kind, partitions, home):
    desk = Desk(home, folders_joined(home, kind), conf=in_partitions(Join=partitions))
    desk.run()
    assert desk.loop().checkpoint.window >= len(ORDERS)
    assert written(home) == sorted(PAIRS + ALONE[kind])


@pytest.mark.slow
def test_items_that_wait_follow_their_keys_to_other_partitions(tmp_path):
    write(tmp_path, "orders", {})
    for folder, files, partitions in (("customers", CUSTOMERS, 1), ("orders", ORDERS, 3), ("customers", EXTRA, 2)):
        write(tmp_path, folder, files)
        Desk(tmp_path, folders_joined(tmp_path), conf=in_partitions(Join=partitions)).run()
    assert written(tmp_path) == sorted([*PAIRS, "9 box, 9 Eve"])


@pytest.mark.gate(3)
@pytest.mark.slow
@pytest.mark.parametrize("point", [Point.PLANNED, Point.STAGED, Point.APPENDED])
@pytest.mark.parametrize("window_id", [1, 2, 3, 4])
def test_no_crash_loses_or_doubles_a_pair(point, window_id, home):
    desk = Desk(home, folders_joined(home, OuterJoin))
    assert desk.crash(CrashAfter(point, window_id)) == 1
    desk.run()
    assert written(home) == sorted(PAIRS + ALONE[OuterJoin])
    assert desk.faults() == []


def test_a_join_within_windows_is_reported_before_it_runs(tmp_path):
    (note,) = compile_application(folders_joined(tmp_path, most_windows=1)).notes
    assert note.code == "windows-apart"
    assert note.problem.endswith("and Read customers and Read orders may send them in other windows")
    assert compile_application(folders_joined(tmp_path)).notes == ()


@dataclass(frozen=True)
class Order:
    number: int
    customer: str


@dataclass(frozen=True)
class Customer:
    name: str
    city: str


def test_a_join_keeps_items_of_the_types_that_were_validated(tmp_path):
    orders, customers = ['{"number": 1, "customer": "Ann"}'] * 2, ['{"name": "Ann", "city": "Rome"}']
    write(tmp_path, ".", {"orders": orders, "customers": customers})

    def draw(dag, conf):
        orders, customers = (
            dag.add_operator(name, Items(items=[str(tmp_path / name)]))
            >> dag.add_operator(f"Match{name}", MatchFiles())
            >> dag.add_operator(f"Read{name}", ReadFiles())
            for name in ("orders", "customers")
        )
        unique = dag.add_operator("Unique", Deduplicate(key="number"))
        join = dag.add_operator("Join", LeftJoin(left_key="customer", right_key="name"))
        orders >> dag.add_operator("Order", Validate(Order)) >> unique
        dag.add_stream("left", unique.output, join.left)
        dag.add_stream("right", (customers >> dag.add_operator("Customer", Validate(Customer))).output, join.right)
        join >> dag.add_operator("Out", PartWriter(file_path=str(tmp_path / "out"), format="{}".format))

    launch(draw, until="once", machine=Machine("reference"), path=tmp_path / "app", durable=False)
    (line,) = [line for part in (tmp_path / "out").iterdir() for line in part.read_text().splitlines()]
    assert line == str((Order(1, "Ann"), Customer("Ann", "Rome")))
