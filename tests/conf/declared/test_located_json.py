"""JSON that knows its lines."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.conf.declared.declared_json import JsonObject, read_json
from dagkit.conf.sources.written import ParseError
from tests.cases import cases


@cases(
    "data, problem, line",
    ("a missing value", b'{\n"a": }', "it is not JSON: expecting value", 2),
    ("more than one value", b'{"a": 1}\n}', "it is not JSON: extra data", 2),
    ("nothing", b"", "it is not JSON: expecting value", 1),
    ("bytes of another encoding", b'{\n"a": "\xe9"}', "byte 0xE9 on this line is not UTF-8", 2),
    ("too deep", b"[" * 100_000, "it is nested too deeply", None),
)
def test_what_cannot_be_read(data, problem, line):
    with pytest.raises(ParseError, match=problem) as raised:
        read_json(data)
    assert raised.value.line == line


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON, st.sampled_from([None, 2]))
def test_it_reads_what_json_reads(data, indent):
    assert read_json(json.dumps(data, indent=indent).encode()) == data


@given(st.dictionaries(st.text(st.characters(categories=["L"]), min_size=1), st.dictionaries(st.text(), st.integers())))
def test_every_object_is_on_the_line_where_it_begins(data):
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in data.items()]
    document = read_json(("{\n" + ",\n".join(lines) + "\n}").encode())
    assert [value.line for value in document.values()] == list(range(2, len(data) + 2))
    assert all(isinstance(value, JsonObject) for value in document.values())
