"""Members of JSON objects: what compiled C reads, Arrow's parser reads in the same way."""

import ctypes
import json
import mmap

import numpy as np
import pyarrow as pa
import pyarrow.json as pa_json
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dagkit_operators.native import compiled, json_members
from dagkit_operators.native.compiled import JSON_LIBRARY, JSON_SOURCE
from dagkit_operators.native.json_members import MemberNames, columns_of, others_of
from hatch_build import MISSING, can_compile, compile_library

pytestmark = pytest.mark.skipif(not can_compile(), reason=MISSING)
TYPES = {"i": pa.int64(), "s": pa.int8(), "f": pa.float64(), "g": pa.float32(), "b": pa.bool_(), "t": pa.string()}
SCHEMA = pa.schema(TYPES.items())


@pytest.fixture(scope="module", autouse=True, params=["SSE2", "no SSE2"])
def _way(request, tmp_path_factory):
    library = tmp_path_factory.mktemp("compiled") / JSON_LIBRARY.name
    assert compile_library(JSON_SOURCE, library, ["-U__SSE2__"] if "no" in request.param else []) is None
    members = compiled.json_members(library)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_members, "json_members", lambda: members)
        yield


def read(text: bytes, schema: pa.Schema = SCHEMA) -> pa.RecordBatch | None:
    found = columns_of(np.frombuffer(text, np.uint8), len(text.splitlines()), schema)
    return None if found is None else found[0]


def by_arrow(text: bytes) -> pa.Table:
    options = pa_json.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="ignore")
    return pa_json.read_json(pa.BufferReader(text), pa_json.ReadOptions(use_threads=False), options)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(-100, 100).map(lambda number: round(number, 2))
    | st.text(max_size=40)
    | st.text("ab", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)
OF_TYPE = {
    "i": st.none() | st.integers(-(2**63), 2**63 - 1),
    "s": st.none() | st.integers(-128, 127),
    "f": st.none() | st.floats(-1000, 1000).map(lambda number: round(number, 3)),
    "g": st.none() | st.floats(-1000, 1000, width=32),
    "b": st.none() | st.booleans(),
    "t": st.none() | st.text("abcäß€ ", max_size=40),
}
FITTING = st.fixed_dictionaries({}, optional={**OF_TYPE, "other": VALUES, "": VALUES})
ANY = st.dictionaries(st.sampled_from("isfgbtxy") | st.text(max_size=3), VALUES, max_size=6)
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": "), ("\t, ", " \t:  ")])


def in_lines(rows: list[dict[str, object]], separators: tuple[str, str], ascii_only: bool, line_end: str) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=ascii_only, separators=separators) + line_end for row in rows).encode()


@given(
    rows=st.lists(FITTING | ANY, min_size=1, max_size=4),
    separators=SEPARATORS,
    ascii_only=st.booleans(),
    line_end=st.sampled_from(["\n", "\r\n"]),
)
def test_what_is_read_is_what_arrow_reads(rows, separators, ascii_only, line_end):
    text = in_lines(rows, separators, ascii_only, line_end)
    batch = read(text)
    if batch is not None:
        batch.validate(full=True)
        assert pa.Table.from_batches([batch]).equals(by_arrow(text))


@given(rows=st.lists(FITTING, min_size=1, max_size=3), data=st.data())
def test_text_that_arrow_refuses_is_not_read(rows, data):
    text = bytearray(in_lines(rows, (",", ":"), False, "\n"))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(text) - 1))
        text[place : place + data.draw(st.integers(0, 2))] = data.draw(
            st.sampled_from([b"", *(bytes([one]) for one in b'{}[]",:\\\0\x1f \t0-.e+tfnu9\x80')])
        )
    if not text.strip():
        return
    batch = read(bytes(text))
    if batch is None:
        return
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:  # a text that is not UTF-8: the reader of the columns refuses it
        return
    assert pa.Table.from_batches([batch]).equals(by_arrow(bytes(text)))


@pytest.mark.parametrize(
    "text",
    [
        b'{"i":1,"s":-2,"f":3.5,"g":0.25,"b":true,"t":"text"}',
        b'{"t":"","b":false,"other":{"a":[1,{"b":null}],"c":"\\\\\\"\\u00e4"},"i":0}\n{}\n{"t":null}\r\n',
        b'{ "i" : 1 , "other" : [ ] , "and" : { } }\n',
        '{"t":"äöü and more than sixteen bytes","other":"äöü and more than \\" sixteen"}\n'.encode(),
    ],
)
def test_common_forms_need_no_parser(text):
    batch = read(text)
    assert batch is not None
    assert pa.Table.from_batches([batch]).equals(by_arrow(text))


@pytest.mark.parametrize(
    "text",
    [
        b'{"t":"a\\nb"}',
        b'{"i":1e2}',
        b'{"i":1.5}',
        b'{"i":"1"}',
        b'{"s":128}',
        b'{"f":' + b"1" * 65 + b"}",
        b'{"i":1,"i":2}',
        b'{"\\u0069":1}',
        b'{"i":[1]}',
        b'{"other":"\\ud800"}',
        b'{"other":' + b"[" * 40 + b"]" * 40 + b"}",
        b'[{"i":1}]',
        b'{"i":1}{"i":2}',
        b' {"i":1}',
        b"\n",
        b'{"i":1',
        b'{"i":01}',
        b'{"i":1,}',
        b'{"other":"a\tb"}',
        b'{"other":nul}',
    ],
)
def test_other_texts_are_left_to_the_parser(text):
    assert read(text) is None


def test_types_that_json_has_not_are_left_to_the_parser():
    assert read(b'{"i":1}', pa.schema([("i", pa.timestamp("s"))])) is None


@given(rows=st.lists(FITTING, min_size=1, max_size=2), cut=st.integers(0, 200))
def test_no_byte_behind_the_end_is_read(rows, cut):
    """The text ends where the page behind it may not be read: reading on would end the process."""
    text = in_lines(rows, (",", ":"), False, "\n")
    text = text[: len(text) - cut % len(text)]
    page = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(page))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(base + mmap.PAGESIZE), mmap.PAGESIZE, 0) == 0
    page[mmap.PAGESIZE - len(text) : mmap.PAGESIZE] = text
    held = np.frombuffer((ctypes.c_char * len(text)).from_address(base + mmap.PAGESIZE - len(text)), np.uint8)
    here, there = columns_of(held, len(rows), SCHEMA), columns_of(np.frombuffer(text, np.uint8), len(rows), SCHEMA)
    assert (here is None) == (there is None)
    assert (others_of(held, WITHIN) is None) == (others_of(np.frombuffer(text, np.uint8), WITHIN) is None)


def test_only_what_was_compiled_of_this_very_text_is_used(tmp_path):
    assert compiled.json_members() is not None, f"{JSON_LIBRARY.name} is missing or old: run `make clean test`"
    (tmp_path / "other.c").write_bytes(JSON_SOURCE.read_bytes() + b"\n")
    assert compile_library(tmp_path / "other.c", tmp_path / "other.so") is None
    assert compiled.json_members(tmp_path / "other.so") is None
    assert compiled.json_members(tmp_path / "absent.so") is None


@given(
    st.lists(st.dictionaries(st.text("ab\n", max_size=3), VALUES, max_size=4), min_size=1, max_size=3), st.booleans()
)
def test_members_without_a_column_are_counted_as_a_parser_finds_them(rows, spaced):
    """Also by Python, if names have escapes."""
    text = "".join(json.dumps(row, separators=(" , ", " : ") if spaced else (",", ":")) + "\n" for row in rows)
    names = [name for row in rows for name, value in row.items() if value is not None and name not in ("a", "b")]
    others = others_of(np.frombuffer(text.encode(), np.uint8), MemberNames(frozenset("ab")))
    if others is None:
        assert any("\n" in name for row in rows for name in row)
    else:
        assert others == (len(names), [*dict.fromkeys(names)][:8])


INNERMOST = MemberNames(frozenset(), path="a.a.")
WITHIN = MemberNames(frozenset("ab"), {"a": MemberNames(frozenset("a"), {"a": INNERMOST}, "a.")})
VALUES_WITHIN = st.recursive(
    st.none() | st.integers() | st.text(",}]", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=12,
)


@example(rows=[{"a": [[{"c": 0}], {"c": 1}]}], spaced=True)
@example(rows=[{"a": [[[{"a": [[{"c": 0}]]}]]], "b": 1}], spaced=False)
@given(
    st.lists(st.dictionaries(st.text("ab", max_size=2), VALUES_WITHIN, max_size=3), min_size=1, max_size=3),
    st.booleans(),
)
def test_members_within_members_are_counted_as_a_walk_through_the_objects_finds_them(rows, spaced):
    text = "".join(json.dumps(row, separators=(" , ", " : ") if spaced else (",", ":")) + "\n" for row in rows)
    found: list[str] = []
    WITHIN.add_others(rows, found)
    others = others_of(np.frombuffer(text.encode(), np.uint8), WITHIN)
    assert others is not None
    assert (others.values, {*others.names}) == (len(found), {*found})
