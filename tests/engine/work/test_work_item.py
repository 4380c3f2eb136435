"""Copies of work items are the same as pydantic's own."""

import pickle

from pydantic import BaseModel

from dagkit import Block
from dagkit.engine.work.item import WorkItem
from tests.engine.items import item_of

ITEM = item_of("reader.blocks", Block(3, "a", 10, 110), "a")


def test_a_copy_is_the_same_as_by_pydantic() -> None:
    copied, expected = ITEM.__copy__(), BaseModel.__copy__(ITEM)
    assert copied == expected
    assert copied.model_dump_json() == expected.model_dump_json()
    assert pickle.loads(pickle.dumps(copied)) == expected  # noqa: S301 - its own bytes


def test_a_changed_copy_leaves_the_item_as_it_is() -> None:
    changed = ITEM.model_copy(update={"start": 20, "done_positions": 10})
    assert (changed.start, changed.done_positions, changed.end) == (20, 10, 110)
    assert (ITEM.start, ITEM.done_positions) == (10, 0)
    assert WorkItem.model_validate_json(changed.model_dump_json()) == changed
