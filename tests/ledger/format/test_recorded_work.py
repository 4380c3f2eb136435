"""Rows of root chains."""

import math

from dagkit.ledger import EmittedItem, WorkBlock


def test_values_of_an_author_stay_as_they_are_in_a_row() -> None:
    value = {"element": {"infinite": math.inf, "none": None, "surrogate": "\udc80", "list": [None, {"snake_case": 1}]}}
    assert WorkBlock(source="a", start=0, end=1, extra=value).as_json()["extra"] == value
    assert EmittedItem(offset=0, port="out", item=value).as_json()["item"] == value
    assert "extra" not in WorkBlock(source="a", start=0, end=1).as_json()
