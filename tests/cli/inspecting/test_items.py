"""`dagkit items`: the items of each operator in each window, and whether they add up."""

import pytest

from dagkit_operators import Filter
from tests.engine.cast import Desk
from tests.engine.record.test_row_account import Doubling, draw


@pytest.fixture
def place(tmp_path):
    desk = Desk(tmp_path, draw(("Odd", Filter[int](lambda number: number % 2 == 1))))
    desk.run(windows=2)
    return desk.place


def test_items_for_people_and_as_a_document(dagkit, place):
    header, *rows = (line.split() for line in dagkit("items", place).out.splitlines())
    assert header == ["window", "operator", "received", "sent", "rejected", "dropped", "adds", "up"]
    assert rows[0] == ["1", "Numbers", "3", "2", "1", "0", "yes"]
    assert ["1", "Sink", "1", "0", "0", "-", "-"] in rows
    odd = dagkit("items", place, "--operator", "Odd").out.splitlines()[2]
    assert odd.split() == ["2", "Odd", "1", "0", "0", "1", "yes"]
    assert dagkit("items", place, "--operator", "Even").out == "no items were counted\n"
    document = dagkit("items", place, "--json").document
    first, second = document["windows"]
    assert first["operators"]["Odd"] == {
        "taken": {"input": 2},
        "sent": {"output": 1},
        "rule": "filtered",
        "received": 2,
        "passed_on": 1,
        "rejected": 0,
        "dropped": 1,
        "left_out": {},
        "adds_up": True,
    }
    assert first["streams"]["Numbers.output > Odd.input"] == {"sent": 2, "taken": 2, "copies": 1, "adds_up": True}
    assert (document["schema"], second["window"], second["breaches"]) == ("dagkit.items/1", 2, [])


def test_it_fails_if_a_window_does_not_add_up(dagkit, tmp_path):
    desk = Desk(tmp_path, draw(("Broken", Doubling())))
    desk.run(windows=1)
    answer = dagkit("items", desk.place)
    assert (answer.code, "1       Broken    2         4     0         -2       no" in answer.out) == (7, True)
    assert "it received 2, sent 4 and rejected 0" in answer.err
    assert "[rows-unbalanced]" in answer.err
