"""Work items: copies, and the form in the ledger."""

import pickle
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from dagkit.engine.program.address import Address
from dagkit.engine.work.item import WorkItem

STORED = TypeAdapter(WorkItem)
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
ITEM = WorkItem(
    into=Address("reader.blocks"),
    number=(3, 1),
    element={"path": "a"},
    start=10,
    end=110,
    source="a",
    element_id=3,
    size=200.0,
    due=NOON,
    in_vain=True,
    turn=7,
    reached=NOON,
    done_positions=5,
    done_millis=2.5,
    done_apart=1,
    completed=4.0,
    restriction=["b", "c"],
    not_before=NOON,
    idle_since=NOON,
    unanswered=True,
    waits_for="a.csv is still being written",
)
"""No field has its default."""


def changed(item: WorkItem) -> dict[str, Any]:
    before = asdict(ITEM)
    return {name: value for name, value in asdict(item).items() if value != before[name]}


def test_the_item_of_these_tests_has_no_default():
    assert not [field.name for field in fields(WorkItem) if getattr(ITEM, field.name) == field.default]


@pytest.mark.parametrize(
    ("copy", "changes"),
    [
        (ITEM.part(10, 60), {"end": 60, "size": 100.0}),
        (ITEM.part(60, 110), {"start": 60, "size": 100.0, "done_apart": 51, "completed": 0.0}),
        (ITEM.joined(replace(ITEM, start=110, end=120, size=10.0)), {"end": 120, "size": 210.0}),
        (ITEM.joined(replace(ITEM, start=110, end=120, size=None)), {"end": 120, "size": None}),
        (ITEM.measured(20, 9.0, 3), {"done_positions": 20, "done_millis": 9.0, "done_apart": 3}),
    ],
    ids=["the first part", "the last part", "joined", "joined to unknown work", "measured"],
)
def test_a_changed_copy_keeps_all_other_fields(copy, changes):
    assert changed(copy) == changes


def test_the_ledger_returns_an_item_as_it_was():
    assert STORED.validate_json(STORED.dump_json(ITEM)) == ITEM
    assert pickle.loads(pickle.dumps(ITEM)) == ITEM  # noqa: S301 - its own bytes


def test_the_ledger_names_the_element_as_earlier_versions_do_and_an_unknown_field_is_refused():
    stored = STORED.dump_python(ITEM, mode="json")
    assert (stored["block"], "element_id" in stored) == (3, False)
    with pytest.raises(ValidationError, match="later"):
        STORED.validate_python({**stored, "later": 1})
