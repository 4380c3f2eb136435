"""Items that were given are sent once, however often the application is launched."""

from typing import Any

import pytest

from dagkit import ApplicationFaults, Config, Dag
from dagkit.compiler import compile_application
from dagkit.launching import Machine, launch
from dagkit.testing import Alone
from dagkit_operators import Items, PartWriter
from dagkit_operators.records.items import MOST


def test_items_are_sent_once_in_their_order():
    alone = Alone(Items(items=("b", "a", "b")))
    alone.look()
    alone.look()
    assert alone.sent() == ["b", "a", "b"]
    again = alone.restarted()
    again.look()
    assert again.sent() == []


def test_a_look_sends_so_many_at_most():
    alone = Alone(Items(items=tuple(range(MOST + 1))))
    alone.look()
    assert len(alone.sent()) == MOST
    alone.look()
    assert alone.sent() == [MOST]


def test_items_must_be_given():
    def draw(dag: Dag, conf: Config) -> None:
        dag.add_operator("items", Items()) >> dag.add_operator("writer", PartWriter(file_path="output"))

    with pytest.raises(ApplicationFaults, match="items") as raised:
        compile_application(draw)
    assert raised.value.codes == ("property-invalid",)


@pytest.mark.slow
def test_items_that_are_added_later_are_sent_by_a_later_launch(tmp_path):
    def draw(dag: Dag, conf: Config) -> None:
        dag.add_operator("items", Items[Any](items=())) >> dag.add_operator(
            "writer", PartWriter(file_path=str(tmp_path / "output"))
        )

    for items in ('["a"]', '["a"]', '["a", "b"]'):
        launch(
            draw,
            {"dt.operator.items.prop.items": items},
            until="once",
            machine=Machine(backend="reference"),
            path=tmp_path / "state",
            durable=False,
        )
    assert [path.read_text() for path in sorted((tmp_path / "output").iterdir())] == ["a\n", "b\n"]
