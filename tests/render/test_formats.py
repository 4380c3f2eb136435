"""The formats, and the JSON that other programs read."""

import json

import pytest

from dagkit.render import BINARY, FORMATS, PICTURE_SCHEMA, logical, physical, render
from tests.render import samples


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_can_be_had_twice_the_same(form):
    first = render(physical(samples.m_by_n_plan()), form)
    assert first
    if form != "pdf":  # a PDF bears the time at which it was made
        assert first == render(physical(samples.m_by_n_plan()), form)
    if form not in BINARY:
        assert "count" in first.decode()


def test_json_holds_the_whole_picture():
    found = json.loads(render(logical(samples.graph(samples.line_filter(), "LineFilter")), "json"))
    assert (found["schema"], found["view"], found["title"]) == (PICTURE_SCHEMA, "logical", "LineFilter")
    assert [box["name"] for box in found["boxes"]] == ["File-splitter", "Block-reader", "Filter", "Record-writer"]
    assert found["wires"][1] == {
        "stream": "records",
        "tails": [{"box": "Block-reader", "port": "messages"}],
        "heads": [{"box": "Filter", "port": "input", "kind": "parallel", "notes": [], "lines": [], "why": ""}],
        "payload": "Line",
        "notes": ["thread local"],
    }
