"""Joins are those of SQL, however the input is divided into windows, launches and files."""

from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.compiler import compile_application
from dagkit.engine.program.points import Point
from dagkit.errors import RunFailure
from dagkit.launching import Machine, launch
from dagkit.testing import Alone
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
from tests.cases import cases
from tests.engine.cast import Desk
from tests.old_files import old_file
from tests.operators.ways import in_partitions, lines_in

ITEM = st.tuples(st.sampled_from("abc"), st.integers(0, 9))
WINDOWS = st.lists(st.tuples(st.lists(ITEM, max_size=4), st.lists(ITEM, max_size=4), st.booleans()), max_size=4)


def unpaired(items, others):
    return [one for one in items if one[0] not in {other[0] for other in others}]


def expected(lefts, rights, kind):
    """A nested loop over both sides."""
    pairs = [(a, b) for a in lefts for b in rights if a[0] == b[0]]
    pairs += [(one, None) for one in unpaired(lefts, rights) if kind is not Join]
    pairs += [(None, one) for one in unpaired(rights, lefts) if kind is OuterJoin]
    return sorted(pairs, key=repr)


KINDS = pytest.mark.parametrize("kind", [Join, LeftJoin, OuterJoin])


@pytest.mark.gate(2)
@KINDS
@pytest.mark.slow
@given(windows=WINDOWS)
def test_pairs_are_those_of_a_nested_loop_over_all_windows(kind, windows):
    one_by_one, in_batches = Alone(kind()), Alone(kind())
    sent = []
    for number, (lefts, rights, restarts) in enumerate(windows, 1):
        if restarts:
            one_by_one, in_batches = one_by_one.restarted(), in_batches.restarted()
        is_last = number == len(windows)
        with one_by_one.window(last=is_last), in_batches.window(last=is_last):
            one_by_one.send(*rights, to="right")
            one_by_one.send(*lefts, to="left")
            in_batches.send_batch(lefts, to="left")
            in_batches.send_batch(rights, to="right")
        sent += (pairs := one_by_one.sent())
        assert in_batches.sent() == pairs
    every_left = [one for lefts, _, _ in windows for one in lefts]
    every_right = [one for _, rights, _ in windows for one in rights]
    assert sorted(sent, key=repr) == expected(every_left, every_right, kind)


@KINDS
@pytest.mark.slow
@given(windows=WINDOWS)
def test_a_join_of_one_window_joins_each_window_alone(kind, windows):
    join = Alone(kind(most_windows=1))
    for lefts, rights, _ in windows:
        with join.window():
            join.send_batch(lefts, to="left")
            join.send_batch(rights, to="right")
        assert sorted(join.sent(), key=repr) == expected(lefts, rights, kind)
    assert all(not kept for kept in join.state.values())


def test_an_item_waits_for_its_windows_and_no_longer():
    join = Alone(OuterJoin(most_windows=2))
    sent = []
    for lefts, rights in [("a", ""), ("", "a"), ("", "a"), ("", "")]:
        with join.window():
            join.send(*((key, 1) for key in lefts), to="left")
            join.send(*((key, 2) for key in rights), to="right")
        sent.append(join.sent())
    assert sent == [[], [(("a", 1), ("a", 2))], [], [(None, ("a", 2))]]


def test_forgotten_items_are_counted():
    join = Alone(Join(most_windows=1))
    with join.window():
        join.send(("a", 1), ("b", 1), to="left")
        join.send(("b", 2), ("c", 2), to="right")
    assert (join.metrics["unpaired_forgotten"], join.metrics["items_kept"]) == (2, 0)
    endless = Alone(Join())
    with endless.window(last=True):
        endless.send(("a", 1), to="left")
    assert (endless.metrics["unpaired_forgotten"], endless.metrics["items_kept"]) == (0, 1)


def test_an_item_that_was_sent_alone_is_not_paired_later():
    join = Alone(LeftJoin())
    with join.window(last=True):
        join.send(("a", 1), to="left")
    with join.window(last=True):
        join.send(("a", 2), to="right")
        join.send(("b", 1), to="left")
    assert join.sent() == [(("a", 1), None), (("b", 1), None)]


@dataclass(frozen=True)
class Person:
    name: str
    city: str


def test_keys_are_fields_or_functions():
    join = Alone(Join(left_key="city", right_key=lambda text: text.upper()))
    with join.window():
        join.send_batch([Person("Ann", "ROME"), Person("Bob", "OSLO")], to="left")
        join.send("Rome", to="right")
        with pytest.raises(RunFailure, match=r"holds .*Person.* cannot be saved"):
            assert join.state
    assert join.sent() == [(Person("Ann", "ROME"), "Rome")]


ANN = Person("Ann", "ROME")
first = itemgetter(0)


@cases(
    "kind, key, left",
    ("untyped", Join, first, Record(3, ("a", b"\xff"))),
    ("partly typed", Join[Record[Any], str], first, Record(3, ("a", b"\xff"))),
    ("text", Join[Record[str], str], first, Record(3, "abc")),
    ("records of a class", Join[Record[Person], str], "city", Record(3, ANN)),
    ("a class", Join[Person, str], "city", ANN),
)
def test_records_and_typed_items_wait_in_other_processes(kind, key, left):
    right = "ROME" if key == "city" else "a"
    waiting = Alone(kind(left_key=key, right_key=str))
    with waiting.window():
        waiting.send(left, to="left")
    later = waiting.restarted()
    with later.window():
        later.send(right, to="right")
    assert later.sent() == [(left, right)]


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
    for name, lines in files.items():
        old_file(home / folder / name, "".join(f"{line}\n" for line in lines))


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
    assert lines_in(home / "out") == sorted(PAIRS + ALONE[kind])


@pytest.mark.slow
def test_items_that_wait_follow_their_keys_to_other_partitions(tmp_path):
    (tmp_path / "orders").mkdir()
    for folder, files, partitions in (("customers", CUSTOMERS, 1), ("orders", ORDERS, 3), ("customers", EXTRA, 2)):
        write(tmp_path, folder, files)
        Desk(tmp_path, folders_joined(tmp_path), conf=in_partitions(Join=partitions)).run()
    assert lines_in(tmp_path / "out") == sorted([*PAIRS, "9 box, 9 Eve"])


@pytest.mark.gate(3)
@pytest.mark.slow
@pytest.mark.parametrize("point", [Point.PLANNED, Point.STAGED, Point.APPENDED])
@pytest.mark.parametrize("window_id", [1, 2, 3, 4])
def test_no_crash_loses_or_doubles_a_pair(point, window_id, home):
    desk = Desk(home, folders_joined(home, OuterJoin))
    assert desk.crash(CrashAfter(point, window_id)) == 1
    desk.run()
    assert lines_in(home / "out") == sorted(PAIRS + ALONE[OuterJoin])
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
    (line,) = lines_in(tmp_path / "out")
    assert line == str((Order(1, "Ann"), Customer("Ann", "Rome")))
