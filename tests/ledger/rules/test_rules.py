"""Every law, by the fault that it exists for: each forgery breaks exactly one."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from dagkit.ledger import (
    AddData,
    BlockRefused,
    DatasetKind,
    ExecuteTransform,
    Seed,
    SetDataSchema,
    SetTransform,
    checkpoint_of,
    lines_of,
    slice_of,
    transform_of,
)
from dagkit.ledger.audit.chain_replay import ReplayWitness
from dagkit.ledger.chain.chain import Chain
from dagkit.ledger.format.events import (
    DataField,
    DataSchema,
    DataSlice,
    ExecuteTransformInput,
    OffsetInterval,
    SourceState,
    SqlQueryStep,
    Transform,
    TransformInput,
)
from dagkit.ledger.rules import DATA, DECLARATIONS, ORDER, Proposal, judge
from dagkit.ledger.rules.standing import Standing
from dagkit.ledger.stores import MemoryStore
from tests.ledger.desk import STRANGER, Desk, brings_input, forged, new_offsets, remark

ROWS = lines_of([{"row": 1}])
STATE = b'{"state":1}'


def refused(act: Callable[[], Any]) -> list[str]:
    """The codes for which the append was refused."""
    with pytest.raises(BlockRefused) as caught:
        act()
    return [fault.code for fault in caught.value.faults]


def row_at(offset: int) -> DataSlice:
    return slice_of(ROWS, offset, 1)


@pytest.fixture
def bare():
    """A root chain with nothing but its Seed."""
    return Chain.create(MemoryStore(), "chain", "bare", DatasetKind.ROOT, "did:odf:f1620" + "00" * 32)


# ---- order


def test_a_second_seed_is_refused(desk):
    seed = Seed(dataset_id=desk.root.dataset_id, dataset_kind=DatasetKind.ROOT)
    assert refused(lambda: desk.root.append(seed)) == ["seed-misplaced"]


def test_a_first_block_that_is_no_seed_is_refused():
    chain = Chain(MemoryStore(), "chain", "empty")
    assert refused(lambda: chain.append(remark("?"))) == ["seed-missing"]


def test_a_later_block_without_a_link_is_refused(desk):
    block = forged(desk.root, remark("?"), prev_block_hash=None)
    assert refused(lambda: desk.root.append_block(block)) == ["seed-missing"]


def test_a_link_to_nowhere_is_refused(desk):
    block = forged(desk.root, remark("?"), prev_block_hash=STRANGER)
    assert refused(lambda: desk.root.append_block(block)) == ["previous-missing"]


def test_a_link_to_an_older_block_shows_that_the_head_has_moved(desk):
    older = desk.root.read(0)
    block = forged(desk.root, remark("?"), prev_block_hash=older.hash, sequence_number=1)
    assert refused(lambda: desk.root.append_block(block)) == ["head-moved", "sequence-broken"]


def test_an_append_after_another_head_than_expected_is_refused(desk):
    older = desk.root.read(0).pointer
    assert refused(lambda: desk.root.append(remark("?"), expected_head=older)) == ["head-moved"]


def test_a_plan_that_was_overtaken_is_refused(desk):
    desk.discover((0, 10))
    planned = desk.root.plan_next()
    desk.discover((10, 20))
    event = planned.add_data(watermark=desk.clock.now())
    assert refused(lambda: desk.root.append(event, planned=planned)) == ["head-moved"]


@pytest.mark.parametrize("number", [1, 3], ids=["too low", "too high"])
def test_a_number_that_does_not_follow_is_refused(desk, number):
    block = forged(desk.root, remark("?"), sequence_number=number)
    assert refused(lambda: desk.root.append_block(block)) == ["sequence-broken"]


def test_a_time_before_the_previous_block_is_refused(desk):
    early = desk.root.standing.system_time - timedelta(microseconds=1)
    block = forged(desk.root, remark("?"), system_time=early)
    assert refused(lambda: desk.root.append_block(block)) == ["time-reversed"]


def test_an_equal_time_is_fine(desk):
    assert desk.root.append_block(forged(desk.root, remark("?"))).seq == 2


def test_other_bytes_than_expected_are_refused(desk):
    block = forged(desk.root, remark("?"))
    assert refused(lambda: desk.root.append_block(block, expected_hash=STRANGER)) == ["hash-mismatch"]


def test_data_are_not_added_to_a_derivative(desk):
    assert refused(lambda: desk.app.append(AddData(new_watermark=desk.clock.now()))) == ["event-misplaced"]


@pytest.mark.parametrize(
    "event",
    [
        ExecuteTransform(query_inputs=()),
        SetTransform(inputs=(), transform=transform_of("p", "1")),
    ],
    ids=["executed", "declared"],
)
def test_nothing_is_derived_in_a_root(desk, event):
    assert refused(lambda: desk.root.append(event)) == ["event-misplaced"]


# ---- data


def test_an_event_that_says_nothing_is_refused(desk):
    desk.discover((0, 10))
    assert refused(lambda: desk.root.append(AddData(prev_offset=0))) == ["event-empty"]


def test_an_idle_window_is_refused(desk):
    assert refused(lambda: desk.app.append(desk.app.plan_next().execute())) == ["event-empty"]


def test_data_before_a_schema_are_refused(bare):
    assert refused(lambda: bare.append(AddData(new_data=row_at(0)), [ROWS])) == ["schema-missing"]


def test_an_interval_that_ends_before_it_starts_is_refused(desk):
    desk.discover((0, 10), (10, 20))
    backwards = row_at(2).model_copy(update={"offset_interval": OffsetInterval(start=2, end=1)})
    event = desk.root.plan_next().add_data(backwards)
    assert refused(lambda: desk.root.append(event, [ROWS])) == ["interval-reversed"]


@pytest.mark.parametrize("start", [0, 2], ids=["again", "with a gap"])
def test_a_slice_that_does_not_follow_is_refused(desk, start):
    desk.discover((0, 10))
    event = AddData(prev_offset=0, new_data=row_at(start))
    assert refused(lambda: desk.root.append(event, [ROWS])) == ["offsets-broken"]


@pytest.mark.parametrize("claimed", [None, 0, 2], ids=["forgotten", "behind", "ahead"])
def test_a_carried_offset_that_is_not_the_last_is_refused(desk, claimed):
    desk.discover((0, 10), (10, 20))
    event = AddData(prev_offset=claimed, new_watermark=desk.clock.now())
    assert refused(lambda: desk.root.append(event)) == ["offset-mismatch"]


def test_a_first_event_that_claims_an_offset_is_refused(desk):
    """The reference implementation compares only where data precede."""
    event = AddData(prev_offset=9, new_data=row_at(10))
    assert refused(lambda: desk.root.append(event, [ROWS])) == ["offset-unfounded"]


@pytest.mark.parametrize("later", [None, -1], ids=["gone", "back"])
def test_a_watermark_that_goes_back_is_refused(desk, later):
    now = desk.clock.now()
    desk.root.append(AddData(new_watermark=now))
    watermark = None if later is None else now + timedelta(seconds=later)
    event = AddData(new_watermark=watermark, new_data=row_at(0))
    assert refused(lambda: desk.root.append(event, [ROWS])) == ["watermark-reversed"]


def test_an_equal_watermark_is_fine_with_new_data(desk):
    desk.root.append(AddData(new_watermark=desk.clock.now()))
    assert desk.root.append(AddData(new_watermark=desk.clock.now(), new_data=row_at(0)), [ROWS]).seq == 3


@pytest.mark.parametrize("claimed", [None, STRANGER], ids=["from nothing", "from another"])
def test_a_start_from_another_checkpoint_is_refused(desk, claimed):
    desk.root.append(AddData(new_checkpoint=checkpoint_of(STATE)), [STATE])
    event = AddData(prev_checkpoint=claimed, new_checkpoint=checkpoint_of(STATE), new_data=row_at(0))
    assert refused(lambda: desk.root.append(event, [ROWS, STATE])) == ["checkpoint-mismatch"]


def test_a_checkpoint_that_vanishes_is_refused(desk):
    left = checkpoint_of(STATE)
    desk.root.append(AddData(new_checkpoint=left), [STATE])
    event = AddData(prev_checkpoint=left.physical_hash, new_data=row_at(0))
    assert refused(lambda: desk.root.append(event, [ROWS])) == ["checkpoint-vanished"]


def test_a_source_state_that_vanishes_is_refused(desk):
    seen = SourceState(source_name="a", kind="odf/etag", value="1")
    desk.root.append(AddData(new_source_state=seen))
    assert refused(lambda: desk.root.append(AddData(new_data=row_at(0)), [ROWS])) == ["state-vanished"]


def test_data_that_move_nothing_are_refused(desk):
    desk.root.append(AddData(new_checkpoint=checkpoint_of(STATE), new_watermark=desk.clock.now()), [STATE])
    assert refused(lambda: desk.root.append(desk.root.plan_next().add_data())) == ["data-unmoved"]


@pytest.mark.parametrize("kept", ["slice", "checkpoint"])
def test_what_a_block_names_exists(desk, kept):
    named = {"new_data": row_at(0)} if kept == "slice" else {"new_checkpoint": checkpoint_of(STATE)}
    expected = "data-missing" if kept == "slice" else "checkpoint-missing"
    assert refused(lambda: desk.root.append(AddData(**named))) == [expected]


# ---- inputs


def test_a_transform_that_was_never_declared_does_not_run():
    desk = Desk()
    chain = desk.ledger.create_chain("other", DatasetKind.DERIVATIVE)
    event = ExecuteTransform(query_inputs=(), new_watermark=desk.clock.now())
    assert refused(lambda: chain.append(event)) == ["transform-missing"]


@pytest.mark.parametrize("inputs", [(), ("did:odf:other",)], ids=["none", "another"])
def test_other_inputs_than_declared_are_refused(desk, inputs):
    given = tuple(ExecuteTransformInput(dataset_id=i) for i in inputs)
    event = ExecuteTransform(query_inputs=given, new_watermark=desk.clock.now())
    assert refused(lambda: desk.app.append(event)) == ["inputs-mismatch"]


def executed(desk: Desk, **changes: Any) -> list[str]:
    """The codes for which a window is refused that honestly consumes all, but for the changes."""
    planned = desk.app.plan_next()
    given = planned.inputs[0].input.model_copy(update=changes)
    event = planned.execute(watermark=desk.clock.now()).model_copy(update={"query_inputs": (given,)})
    return refused(lambda: desk.app.append(event, planned=planned))


def test_consumption_that_stays_where_it_is_must_be_absent(desk):
    desk.discover((0, 10))
    here = desk.window().block.event.query_inputs[0]
    assert executed(desk, new_block_hash=here.new_block_hash) == ["input-unmoved"]


def test_an_offset_that_stays_where_it_is_must_be_absent(desk):
    desk.discover((0, 10))
    desk.window()
    desk.root.append(desk.root.plan_next().add_data(watermark=desk.clock.now()))
    assert executed(desk, new_offset=0) == ["input-unmoved"]


@pytest.mark.parametrize("field", ["prev_offset", "prev_block_hash"])
def test_consumption_begins_where_it_ended(desk, field):
    desk.discover((0, 10), (10, 20))
    desk.window()
    desk.discover((20, 30))
    assert executed(desk, **{field: 0 if field == "prev_offset" else STRANGER}) == ["input-mismatch"]


def test_a_first_execution_that_claims_a_past_is_refused(desk):
    """The reference implementation skips these rules on the first execution."""
    desk.discover((0, 10), (10, 20))
    assert executed(desk, prev_offset=0, prev_block_hash=desk.root.read(1).hash) == ["input-unfounded"]


def test_the_input_laws_hold_on_the_first_execution_too(desk):
    desk.discover((0, 10))
    assert executed(desk, new_block_hash=None) == ["input-blockless"]


def test_consumption_that_goes_back_in_offset_is_refused(desk):
    """The reference implementation compares for equality only."""
    desk.discover((0, 10), (10, 20), (20, 30))
    desk.window()
    desk.discover((30, 40))
    assert executed(desk, new_offset=1) == ["input-reversed", "input-offset-mismatch"]


def test_consumption_that_goes_back_to_an_earlier_block_is_refused(desk):
    desk.discover((0, 10))
    desk.root.append(desk.root.plan_next().add_data(watermark=desk.clock.now()))
    desk.window()
    planned = desk.app.plan_next(upto={desk.root.dataset_id: 2})
    given = planned.inputs[0].input
    assert given.new_block_hash == desk.root.read(2).hash
    event = planned.execute(watermark=desk.clock.now())
    assert refused(lambda: desk.app.append(event, planned=planned)) == ["input-reversed"]


def test_an_offset_without_its_block_is_refused(desk):
    desk.discover((0, 10))
    desk.window()
    assert executed(desk, new_offset=1) == ["input-blockless"]


def test_a_block_that_the_input_does_not_hold_is_refused(desk):
    desk.discover((0, 10))
    assert executed(desk, new_block_hash=STRANGER) == ["input-block-missing"]


@pytest.mark.parametrize("offset", [0, 2, None], ids=["in the middle", "beyond", "untold"])
def test_an_offset_that_is_not_the_last_of_its_block_is_refused(desk, offset):
    """The reference implementation does not look into the input."""
    desk.discover((0, 10), (10, 20))
    assert executed(desk, new_offset=offset) == ["input-offset-mismatch"]


def test_a_window_that_moves_nothing_is_refused(desk):
    desk.discover((0, 10))
    desk.window(consumed=[(0, 10)])
    assert refused(lambda: desk.app.append(desk.app.plan_next().execute())) == ["transform-unmoved"]


def test_consuming_input_is_progress_even_before_any_watermark_or_checkpoint(desk):
    """The reference implementation refuses it as empty, and scans the same input again."""
    desk.discover((0, 10))
    desk.window()
    assert desk.app.standing.data.new_data is None
    assert not brings_input(desk.app.plan_next())


def test_a_first_input_of_one_record_is_not_up_to_date(desk):
    """The reference implementation takes offset 0 after none for nothing new."""
    desk.discover((0, 10))
    planned = desk.app.plan_next()
    assert brings_input(planned)
    assert new_offsets(planned) == (None, 0)


# ---- declarations


def declared(*names: str, **transform: Any) -> SetTransform:
    inputs = tuple(TransformInput(dataset_ref=name, alias=name[-1]) for name in names)
    how = Transform(engine="dagkit", **transform) if transform else transform_of("plan", "1")
    return SetTransform(inputs=inputs, transform=how)


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (declared(), "transform-inputless"),
        (declared("did:odf:a", "did:odf:a"), "input-duplicated"),
        (declared("a.name"), "input-unresolved"),
        (
            SetTransform(inputs=(TransformInput(dataset_ref="did:odf:a"),), transform=transform_of("plan", "1")),
            "input-unresolved",
        ),
        (declared("did:odf:a", queries=()), "query-malformed"),
        (declared("did:odf:a", queries=(SqlQueryStep(query="a", alias="x"),)), "query-malformed"),
        (declared("did:odf:a", queries=(SqlQueryStep(query="a"), SqlQueryStep(query="b"))), "query-malformed"),
    ],
    ids=[
        "without inputs",
        "with an input twice",
        "with an input by name",
        "with an input without alias",
        "without queries",
        "with a last query that has an alias",
        "with an inner query that has none",
    ],
)
def test_a_malformed_transform_is_refused(desk, event, code):
    assert refused(lambda: desk.app.append(event)) == [code]


def columns(*given: str | DataField) -> SetDataSchema:
    fields = tuple(f if isinstance(f, DataField) else DataField(name=f, type="Int64") for f in given)
    return SetDataSchema(schema=DataSchema(fields=fields))


def optional(name: str) -> DataField:
    return DataField(name=name, type={"kind": "Option", "inner": "Int64"})


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (columns("a", "b"), "schema-unchanged"),
        (columns("a"), "schema-incompatible"),
        (columns("a", DataField(name="b", type="String")), "schema-incompatible"),
        (columns("a", optional("b")), "schema-incompatible"),
        (columns("a", "b", "c"), "schema-incompatible"),
    ],
    ids=["says the same", "drops a column", "retypes one", "makes one optional", "adds one for all"],
)
def test_a_schema_that_breaks_with_the_past_is_refused(bare, event, code):
    bare.append(columns("a", "b"))
    assert refused(lambda: bare.append(event)) == [code]


@pytest.mark.parametrize(
    "event",
    [
        columns("a", "b", optional("c")),
        columns("b", "a"),
        columns("a", DataField(name="b", type={"kind": "Int64"}, extra={"x.org/unit": "ms"})),
    ],
    ids=["adds an optional column", "moves a column", "spells a type otherwise, with an attribute"],
)
def test_a_schema_may_grow(bare, event):
    bare.append(columns("a", "b"))
    assert bare.append(event).seq == 2


def test_every_law_has_a_sentence_and_a_reason():
    for law in (*ORDER, *DATA, *DECLARATIONS):
        assert law.__doc__, law.__name__


def test_a_misplaced_block_is_judged_no_further(desk):
    block = forged(desk.root, AddData(), sequence_number=7)
    proposal = Proposal(block, desk.root.standing, ReplayWitness(lambda _: None))
    assert [fault.code for fault in judge(proposal)] == ["sequence-broken"]
    assert judge(Proposal(block, Standing(), ReplayWitness(lambda _: None)))[0].code == "seed-missing"
