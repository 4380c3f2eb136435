"""A slice and a checkpoint are what their block says: their bytes, their size, and the hash of their rows."""

import pytest

from dagkit.ledger import ChainBroken, checkpoint_of, slice_of
from dagkit.ledger.audit.chain_replay import flaws_of
from dagkit.ledger.chain.contents import lines_hash, lines_of, rows_of
from tests.ledger.desk import STRANGER


def test_lines_come_back_and_have_one_text():
    rows = [{"b": 1, "a": "ü\u2028\n"}, [None, 1.5]]
    assert rows_of(lines_of(rows)) == rows
    assert lines_hash(lines_of([{"b": 1, "a": 2}])) == lines_hash(lines_of([{"a": 2, "b": 1}]))
    assert lines_hash(lines_of([1, 2])) != lines_hash(lines_of([12]))


def test_a_logical_hash_that_is_not_of_the_rows_is_noticed(desk):
    content = lines_of([{"a": 1}])
    forged = slice_of(content, 0, 1).model_copy(update={"logical_hash": STRANGER})
    record = desk.root.append(desk.root.plan_next().add_data(forged), [content])
    assert [f.code for f in flaws_of(desk.root, record)] == ["data-damaged"]


@pytest.mark.parametrize("shelf", ["data", "checkpoints"])
def test_a_content_that_was_changed_on_its_shelf_is_noticed(desk, shelf):
    content = lines_of(["x" * 10_000])
    event = {"new_data": slice_of(content, 0, 1)} if shelf == "data" else {"checkpoint": checkpoint_of(content)}
    record = desk.root.append(desk.root.plan_next().add_data(**event), [content])
    key = desk.root.objects.key(shelf, checkpoint_of(content).physical_hash)
    desk.store.replace(key, content[:-2] + b"!\n")
    assert [f.code for f in flaws_of(desk.root, record)] == [f"{shelf.removesuffix('s')}-damaged"]
    if shelf == "data":
        with pytest.raises(ChainBroken, match="has changed"):
            desk.root.data(record)
    desk.store.delete([key])
    assert [f.code for f in flaws_of(desk.root, record)] == [f"{shelf.removesuffix('s')}-missing"]


@pytest.mark.parametrize(
    ("name", "describe", "code"),
    [
        ("new_data", lambda content: slice_of(content, 0, 1), "data-damaged"),
        ("checkpoint", checkpoint_of, "checkpoint-damaged"),
    ],
)
def test_a_size_that_is_not_the_contents_is_noticed(desk, name, describe, code):
    content = lines_of([{"a": 1}])
    wrong = describe(content).model_copy(update={"size": 999})
    record = desk.root.append(desk.root.plan_next().add_data(**{name: wrong}), [content])
    assert [f.code for f in flaws_of(desk.root, record)] == [code]
