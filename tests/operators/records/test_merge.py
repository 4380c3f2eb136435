"""A merger passes on every item of every input once, with any number of partitions."""

import pytest

from dagkit.compiler import compile_application
from dagkit.engine.record.history import refuse_unbalanced
from dagkit.errors import ApplicationFaults
from dagkit.ledger import Ledger
from dagkit.testing import Alone
from dagkit_operators import Items, PartWriter, StreamMerger
from tests.engine.cast import Desk
from tests.operators.ways import in_partitions

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
