"""Items that were given are sent once, however often an application is launched; a merger passes on each item once."""

import os
import sys
from dataclasses import dataclass

import pytest

from dagkit.compiler import compile_application
from dagkit.engine.record.history import refuse_unbalanced
from dagkit.errors import ApplicationFaults
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit.testing import Alone
from dagkit_operators import Items, MatchFiles, PartWriter, ReadFiles, StreamMerger
from dagkit_operators.records.items import MOST, _digest
from tests.cases import cases
from tests.engine.cast import Desk, chain
from tests.operators.ways import in_partitions
from tests.processes import run_program


def test_items_are_sent_once_in_their_order_and_so_many_by_a_look():
    alone = Alone(Items(items=("b", "a", "b")))
    alone.look()
    alone.look()
    assert alone.sent() == ["b", "a", "b"]
    again = alone.restarted()
    again.look()
    assert again.sent() == []
    alone = Alone(Items(items=tuple(range(MOST + 1))))
    alone.look()
    assert len(alone.sent()) == MOST
    alone.look()
    assert alone.sent() == [MOST]


def test_items_must_be_given():
    with pytest.raises(ApplicationFaults, match="items") as raised:
        compile_application(chain(items=Items(), writer=PartWriter(file_path="output")))
    assert raised.value.codes == ("property-invalid",)


@pytest.mark.slow
def test_items_that_are_added_later_are_sent_by_a_later_launch(tmp_path):
    draw = chain(items=Items(items=()), writer=PartWriter(file_path=tmp_path / "output"))
    for items in ('["a"]', '["a"]', '["a", "b"]'):
        conf = {"dt.operator.items.prop.items": items}
        launch(draw, conf, until="once", machine=Machine("reference"), path=tmp_path / "state", durable=False)
    assert [path.read_text() for path in sorted((tmp_path / "output").iterdir())] == ["a\n", "b\n"]


@cases(
    "later, sent",
    ("an item before the others", ("new", "a", "b"), ["new"]),
    ("an item in the place of another one", ("b", "new"), ["new"]),
    ("another list", ("new",), ["new"]),
    ("another order", ("b", "a"), []),
    ("an item once more", ("a", "b", "a"), ["a"]),
    ("no items", (), []),
)
def test_items_that_are_new_in_a_changed_list_are_sent(later, sent):
    alone = Alone(Items(items=("a", "b")))
    alone.look()
    again = Alone(Items(items=later), state=alone.state)
    again.look()
    assert again.sent() == sent


def test_items_that_an_earlier_version_sent_are_known_by_their_number():
    alone = Alone(Items(items=("a", "b")))
    alone.look()
    alone.operator.digests = ""  # earlier versions kept the number alone
    again = Alone(Items(items=("a", "b", "c")), state=alone.state)
    again.look()
    assert again.sent() == ["c"]
    last = Alone(Items(items=("d", "c", "b", "a")), state=again.state)
    last.look()
    assert last.sent() == ["d"]


@pytest.mark.slow
def test_a_pattern_in_the_place_of_another_one_is_scanned(tmp_path):
    draw = chain(
        items=Items(items=()), match=MatchFiles(), read=ReadFiles(), writer=PartWriter(file_path=tmp_path / "output")
    )
    for name in ("first", "second"):
        (tmp_path / name).write_text(f"{name}\n")
        conf = {
            "dt.operator.items.prop.items": f'["{tmp_path / name}"]',
            "dt.operator.match.prop.completeness.minimum_age_millis": "0",
        }
        launch(draw, conf, until="once", machine=Machine("reference"), path=tmp_path / "state", durable=False)
    assert [path.read_text() for path in sorted((tmp_path / "output").iterdir())] == ["first\n", "second\n"]


@dataclass(frozen=True)
class Wanted:
    names: frozenset[str]


def test_equal_items_are_known_again_in_another_process():
    """The order of a set differs from process to process."""
    code = "from tests.operators.records import test_items as t; print(t._digest(t.Wanted(frozenset('abcde'))))"
    digests = {
        run_program([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_items_of_two_classes_with_equal_fields_are_two_items():
    @dataclass(frozen=True)
    class Other:
        names: frozenset[str]

    assert _digest(Wanted(frozenset("a"))) != _digest(Other(frozenset("a")))


def test_a_list_that_became_shorter_than_an_earlier_version_sent_counts_what_it_has():
    operator = Alone(Items[int](items=(1, 2, 3)), state={"sent": 10}).operator
    assert (operator.sent, len(operator.digests)) == (3, 48)


PORTS = ("data1", "data2", "data3", "data4", "data5")


def test_items_of_all_inputs_leave_by_one_output():
    alone = Alone(StreamMerger[str]())
    for port in PORTS:
        alone.send(f"{port} a", to=port)
        alone.send_batch([f"{port} b", f"{port} c"], to=port)
    assert alone.sent() == [f"{port} {name}" for port in PORTS for name in "abc"]


@pytest.mark.slow
@pytest.mark.parametrize(("count", "partitions"), [(2, 1), (5, 3)])
def test_no_item_is_lost_or_doubled_by_partitions(partitions, count, tmp_path):
    def draw(dag, conf):
        merger = dag.add_operator("Merge", StreamMerger[str]())
        for port in PORTS[:count]:
            items = dag.add_operator(f"Items {port}", Items[str](items=[f"{port} {number}" for number in range(10)]))
            dag.add_stream(port, items.output, getattr(merger, port))
        merger >> dag.add_operator("Write", PartWriter[str](file_path=tmp_path / "out"))

    desk = Desk(tmp_path, draw, conf=in_partitions(Merge=partitions))
    desk.run()
    written = [line for content in desk.outputs().values() for line in content.decode().splitlines()]
    assert sorted(written) == [f"{port} {number}" for port in PORTS[:count] for number in range(10)]
    refuse_unbalanced(Ledger.open(desk.place))


def test_streams_of_different_types_are_not_merged():
    def populate_dag(dag, conf):
        merger = dag.add_operator("Merge", StreamMerger())
        dag.add_operator("Numbers", Items[int](items=(1,))) >> merger.data1
        dag.add_operator("Texts", Items[str](items=("a",))) >> merger.data2

    with pytest.raises(ApplicationFaults) as raised:
        compile_application(populate_dag)
    assert raised.value.codes == ("port-type-mismatch",)
