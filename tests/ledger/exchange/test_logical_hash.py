"""The logical hash is of the rows: the same however they lie, and another for any other rows."""

import io
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from dagkit.ledger import ChainBroken, DatasetKind, checkpoint_of, slice_of
from dagkit.ledger.audit.content_checks import flaws_of, logical_hash_of
from dagkit.ledger.audit.replay import replay
from dagkit.ledger.chain.chain import Chain
from dagkit.ledger.chain.contents import lines_hash, lines_of, rows_of
from dagkit.ledger.exchange.logical_hash import arrow0, table_hash, table_of
from dagkit.ledger.format.events import DataField, DataSchema, SetDataSchema
from dagkit.ledger.stores import MemoryStore


def column(values, kind=None) -> pa.Table:
    return pa.table({"a": pa.array(values, type=kind)})


COLLIDING = [
    (column([0, None], pa.int64()), column([None, 0], pa.int64())),
    (column(["", None]), column([None, ""])),
    (column([0], pa.int64()), column([None] * 8, pa.int64())),
]


@pytest.mark.parametrize(("one", "other"), COLLIDING, ids=["nulls moved", "empty strings", "zero and eight nulls"])
def test_what_collides_in_arrow0_does_not_collide_here(one, other):
    assert arrow0(one) == arrow0(other)
    assert table_hash(one) != table_hash(other)


KINDS = st.sampled_from(
    [
        (pa.int64(), st.integers(-3, 3)),
        (pa.uint8(), st.integers(0, 3)),
        (pa.float64(), st.sampled_from([0.0, -0.0, 1.5])),
        (pa.bool_(), st.booleans()),
        (pa.string(), st.text("ab", max_size=2)),
        (pa.binary(), st.binary(max_size=2)),
        (pa.date32(), st.sampled_from([date(1970, 1, 1), date(2024, 1, 1)])),
        (
            pa.timestamp("us", "UTC"),
            st.sampled_from([datetime(1970, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)]),
        ),
        (pa.decimal128(5, 2), st.sampled_from([Decimal("0.00"), Decimal("1.25")])),
        (pa.list_(pa.int8()), st.lists(st.integers(0, 1) | st.none(), max_size=3)),
        (pa.list_(pa.string()), st.lists(st.text("a", max_size=2), max_size=3)),
        (
            pa.struct([("x", pa.int8()), ("y", pa.string())]),
            st.fixed_dictionaries({"x": st.integers(0, 1), "y": st.just("")}),
        ),
        (
            pa.map_(pa.string(), pa.int8()),
            st.lists(st.tuples(st.text("ab", min_size=1, max_size=1), st.integers(0, 1)), max_size=2),
        ),
    ]
)


@st.composite
def tables(draw) -> tuple[pa.DataType, list]:
    kind, values = draw(KINDS)
    return kind, draw(st.lists(values | st.none(), max_size=5))


def same(left, right) -> bool:
    """Told by what is written, for 0.0 == -0.0 and nan != nan; in which order a row names its fields says nothing."""
    return left[0] == right[0] and repr(in_order(left[1])) == repr(in_order(right[1]))


def in_order(value):
    """The value with the keys of every mapping sorted."""
    if isinstance(value, dict):
        return {key: in_order(value[key]) for key in sorted(value)}
    return [in_order(part) for part in value] if isinstance(value, list) else value


@given(tables(), tables())
def test_hashes_are_equal_exactly_for_equal_rows_of_equal_type(left, right):
    one, other = column(left[1], left[0]), column(right[1], right[0])
    assert (table_hash(one) == table_hash(other)) == same(left, right)


@given(tables(), st.integers(0, 5))
def test_chunks_slices_and_files_do_not_matter(given_table, cut):
    kind, values = given_table
    whole = column(values, kind)
    cut = min(cut, len(values))
    parts = pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])
    assert table_hash(parts) == table_hash(whole)
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, whole.schema) as file:
        file.write_table(parts)
    assert table_hash(table_of(sink.getvalue())) == table_hash(whole)


def test_encodings_of_the_same_rows_do_not_matter():
    plain = column(["a", "b", None, "a"])
    assert table_hash(column(["a", "b", None, "a"], pa.large_string())) == table_hash(plain)
    assert table_hash(pa.table({"a": plain["a"].dictionary_encode()})) == table_hash(plain)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (column([1], pa.int32()), column([1], pa.int64())),
        (column([1]), pa.table({"b": [1]})),
        (pa.table({"a": [1], "b": [2]}), pa.table({"b": [2], "a": [1]})),
        (column([[1], [2, 3]]), column([[1, 2], [3]])),
        (column(["ab", "c"]), column(["a", "bc"])),
        (column([b"a"]), column(["a"])),
        (column([[], None], pa.list_(pa.int8())), column([None, []], pa.list_(pa.int8()))),
        (column([]), pa.table({})),
    ],
    ids=["width", "name", "order of columns", "lists", "texts", "bytes and text", "empty and null", "no column"],
)
def test_what_differs_differs(one, other):
    assert table_hash(one) != table_hash(other)


def test_arrow0_has_the_fabrics_prefix_and_refuses_nested_columns():
    assert arrow0(column([1])).startswith("f9680c00120")
    with pytest.raises(NotImplementedError, match="flat columns"):
        arrow0(column([[1]]))


def test_lines_come_back_and_have_one_text():
    rows = [{"b": 1, "a": "ü\u2028\n"}, [None, 1.5]]
    assert rows_of(lines_of(rows)) == rows
    assert lines_hash(lines_of([{"b": 1, "a": 2}])) == lines_hash(lines_of([{"a": 2, "b": 1}]))
    assert lines_hash(lines_of([1, 2])) != lines_hash(lines_of([12]))


def test_a_parquet_slice_is_proven_by_its_rows():
    table = column([1, 2, 3])
    sink = io.BytesIO()
    parquet.write_table(table, sink)
    content = sink.getvalue()
    chain = Chain.create(MemoryStore(), "c", "c", DatasetKind.ROOT, "did:odf:a")
    chain.append(SetDataSchema(schema=DataSchema(fields=(DataField(name="a", type="Int64"),))))
    for said in (table_hash(table), arrow0(table), "f1620" + "00" * 32):
        planned = chain.plan_next()
        chain.append(planned.add_data(slice_of(content, planned.next_offset, 3, said)), [content], planned=planned)
    flaws = [[f.code for f in flaws_of(chain, record)] for _, record in replay(chain, lambda _: None)]
    assert flaws == [[], [], [], [], ["data-damaged"]]
    assert logical_hash_of(content, table_hash(table)) == table_hash(table)


def test_a_content_that_was_changed_on_its_shelf_is_noticed():
    store = MemoryStore()
    chain = Chain.create(store, "c", "c", DatasetKind.ROOT, "did:odf:a")
    chain.append(SetDataSchema(schema=DataSchema(fields=(DataField(name="a", type="Int64"),))))
    content = lines_of([{"a": "x" * 10_000}])
    record = chain.append(chain.plan_next().add_data(slice_of(content, 0, 1)), [content])
    name = record.block.event.new_data.physical_hash
    store.replace(chain.objects.key("data", name), content[:-2] + b"!\n")
    assert [f.code for f in flaws_of(chain, record)] == ["data-damaged"]
    with pytest.raises(ChainBroken, match="another content"):
        chain.data(record)
    store.delete([chain.objects.key("data", name)])
    assert [f.code for f in flaws_of(chain, record)] == ["data-missing"]


def test_a_checkpoint_that_was_changed_on_its_shelf_is_noticed(desk):
    state = b"x" * 10_000
    record = desk.root.append(desk.root.plan_next().add_data(checkpoint=checkpoint_of(state)), [state])
    key = desk.root.objects.key("checkpoints", desk.root.standing.checkpoint)
    desk.store.replace(key, state[:-1] + b"y")
    assert [f.code for f in flaws_of(desk.root, record)] == ["checkpoint-damaged"]
    desk.store.delete([key])
    assert [f.code for f in flaws_of(desk.root, record)] == ["checkpoint-missing"]


@pytest.mark.parametrize(("what", "code"), [("slice", "data-damaged"), ("checkpoint", "checkpoint-damaged")])
def test_a_size_that_is_not_the_contents_is_noticed(desk, what, code):
    content = lines_of([{"a": 1}])
    wrong = {"update": {"size": 999}}
    given = (
        {"new_data": slice_of(content, 0, 1).model_copy(**wrong)}
        if what == "slice"
        else {"checkpoint": checkpoint_of(content).model_copy(**wrong)}
    )
    record = desk.root.append(desk.root.plan_next().add_data(**given), [content])
    assert [f.code for f in flaws_of(desk.root, record)] == [code]
