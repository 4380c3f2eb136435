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
from dagkit.testing import FakeClock
from tests.cases import cases
from tests.ledger.desk import STRANGER, Desk, forged, remark


def refused(act: Callable[[], Any]) -> list[str]:
    with pytest.raises(BlockRefused) as caught:
        act()
    return [fault.code for fault in caught.value.faults]


@pytest.fixture
def bare():
    chain = Chain(MemoryStore(), "chain", "bare")
    chain.create(DatasetKind.ROOT, "did:odf:f1620" + "00" * 32)
    return chain


# ---- order


def fields(value: Any) -> str:
    """A row is named by the fields that it changes, and by its code."""
    return " ".join(value) if isinstance(value, dict) else value if isinstance(value, str) else ""


def made(changes: dict[str, Any], desk: Desk) -> dict[str, Any]:
    """The values of these fields, some of which depend on the chains."""
    return {name: value(desk) if callable(value) else value for name, value in changes.items()}


OLDER = {"prev_block_hash": lambda desk: desk.root.read(0).hash, "sequence_number": 1}
EARLY = {"system_time": lambda desk: desk.root.standing.system_time - timedelta(microseconds=1)}


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ({"prev_block_hash": None}, ["seed-missing"]),
        ({"prev_block_hash": STRANGER}, ["previous-missing"]),
        (OLDER, ["head-moved", "sequence-broken"]),
        ({"sequence_number": 1}, ["sequence-broken"]),
        ({"sequence_number": 3}, ["sequence-broken"]),
        (EARLY, ["time-reversed"]),
    ],
    ids=fields,
)
def test_a_block_that_does_not_follow_is_refused(desk, changes, codes):
    block = forged(desk.root, remark("?"), **made(changes, desk))
    assert refused(lambda: desk.root.append_block(block)) == codes


def test_an_equal_time_is_fine_and_an_equal_watermark_with_new_data(desk):
    assert desk.root.append_block(forged(desk.root, remark("?"))).seq == 2
    assert add(desk.root, new_watermark=NOW).seq == 3
    assert add(desk.root, new_watermark=NOW, **row(0)).seq == 4


def test_a_first_block_that_is_no_seed_is_refused():
    chain = Chain(MemoryStore(), "chain", "empty")
    assert refused(lambda: chain.append(remark("?"))) == ["seed-missing"]


def test_an_append_after_another_head_than_planned_is_refused(desk):
    planned = desk.root.plan_next()
    desk.discover((0, 10))
    event = planned.add_data(watermark=desk.clock.now())
    assert refused(lambda: desk.root.append(event, planned=planned)) == ["head-moved"]


@pytest.mark.parametrize(
    ("chain", "event", "code"),
    [
        ("root", Seed(dataset_id="did:odf:f1620" + "00" * 32, dataset_kind=DatasetKind.ROOT), "seed-misplaced"),
        ("root", ExecuteTransform(query_inputs=()), "event-misplaced"),
        ("root", SetTransform(inputs=(), transform=transform_of("p", "1")), "event-misplaced"),
        ("app", AddData(new_watermark=FakeClock().now()), "event-misplaced"),
    ],
    ids=["a second seed", "an execution in a root", "a transform in a root", "data in a derivative"],
)
def test_an_event_that_has_no_place_in_the_chain_is_refused(desk, chain, event, code):
    assert refused(lambda: getattr(desk, chain).append(event)) == [code]


# ---- data

ROW, ROWS, STATE = lines_of([{"row": 1}]), lines_of([{"row": 1}, {"row": 2}]), b'{"state":1}'
NOW = FakeClock().now()
KEPT = checkpoint_of(STATE)


def row(offset: int, **changes: Any) -> dict[str, Any]:
    return {"new_data": slice_of(ROW, offset, 1).model_copy(update=changes)}


def add(chain: Chain, **event: Any) -> Any:
    """Append an event with the contents that it names."""
    contents = {slice_of(rows, 0, 1).physical_hash: rows for rows in (ROW, ROWS)} | {KEPT.physical_hash: STATE}
    named = [event[name].physical_hash for name in ("new_data", "new_checkpoint") if name in event]
    return chain.append(AddData(**event), [contents[name] for name in named])


TWO = {"new_data": slice_of(ROWS, 0, 2)}
STATED = {"new_checkpoint": KEPT}
SEEN = {"new_source_state": SourceState(source_name="a", kind="odf/etag", value="1")}


MARKED = {"new_watermark": NOW}
EARLIER = {"new_watermark": NOW - timedelta(seconds=1)}
BACKWARDS = row(2, offset_interval=OffsetInterval(start=2, end=1))


@pytest.mark.parametrize(
    ("before", "event", "code"),
    [
        (TWO, {"prev_offset": 1}, "event-empty"),
        (TWO, {"prev_offset": 1, **BACKWARDS}, "interval-reversed"),
        (TWO, {"prev_offset": 1, **row(1)}, "offsets-broken"),
        (TWO, {"prev_offset": 1, **row(3)}, "offsets-broken"),
        (TWO, MARKED, "offset-mismatch"),
        (TWO, {"prev_offset": 0, **MARKED}, "offset-mismatch"),
        (TWO, {"prev_offset": 2, **MARKED}, "offset-mismatch"),
        # The reference implementation compares only where data precede.
        ({}, {"prev_offset": 9, **row(10)}, "offset-unfounded"),
        (MARKED, row(0), "watermark-reversed"),
        (MARKED, {**EARLIER, **row(0)}, "watermark-reversed"),
        (STATED, {**STATED, **row(0)}, "checkpoint-mismatch"),
        (STATED, {"prev_checkpoint": STRANGER, **STATED, **row(0)}, "checkpoint-mismatch"),
        (STATED, {"prev_checkpoint": KEPT.physical_hash, **row(0)}, "checkpoint-vanished"),
        (SEEN, row(0), "state-vanished"),
    ],
    ids=fields,
)
def test_data_that_do_not_follow_are_refused(desk, before, event, code):
    if before:
        add(desk.root, **before)
    assert refused(lambda: add(desk.root, **event)) == [code]


def test_data_before_a_schema_are_refused(bare):
    assert refused(lambda: add(bare, **row(0))) == ["schema-missing"]


def test_data_that_move_nothing_are_refused(desk):
    add(desk.root, new_watermark=NOW, **STATED)
    assert refused(lambda: desk.root.append(desk.root.plan_next().add_data())) == ["data-unmoved"]


@pytest.mark.parametrize(("named", "code"), [(row(0), "data-missing"), (STATED, "checkpoint-missing")])
def test_what_a_block_names_exists(desk, named, code):
    assert refused(lambda: desk.root.append(AddData(**named))) == [code]


# ---- inputs


def test_a_transform_that_was_never_declared_does_not_run(desk):
    chain = desk.ledger.create_chain("other", DatasetKind.DERIVATIVE)
    event = ExecuteTransform(query_inputs=(), new_watermark=desk.clock.now())
    assert refused(lambda: chain.append(event)) == ["transform-missing"]


@pytest.mark.parametrize("inputs", [(), ("did:odf:other",)], ids=["none", "another"])
def test_other_inputs_than_declared_are_refused(desk, inputs):
    given = tuple(ExecuteTransformInput(dataset_id=i) for i in inputs)
    event = ExecuteTransform(query_inputs=given, new_watermark=desk.clock.now())
    assert refused(lambda: desk.app.append(event)) == ["inputs-mismatch"]


def find(*spans: tuple[int, int]) -> Callable[[Desk], Any]:
    return lambda desk: desk.discover(*spans)


ONE, TWO_MORE, MORE = find((0, 10)), find((10, 20), (20, 30)), find((30, 40))
READ = (ONE, Desk.window)
STAYS = {"new_block_hash": lambda desk: desk.app.last("ExecuteTransform").block.event.query_inputs[0].new_block_hash}
CLAIMED = {"prev_offset": 0, "prev_block_hash": lambda desk: desk.root.read(1).hash}


@pytest.mark.parametrize(
    ("acts", "changes", "codes"),
    [
        (READ, STAYS, ["input-unmoved"]),
        ((*READ, Desk.mark), {"new_offset": 0}, ["input-unmoved"]),
        ((ONE, TWO_MORE, Desk.window, MORE), {"prev_offset": 0}, ["input-mismatch"]),
        ((ONE, TWO_MORE, Desk.window, MORE), {"prev_block_hash": STRANGER}, ["input-mismatch"]),
        # The reference implementation skips these rules on the first execution.
        ((ONE, TWO_MORE), CLAIMED, ["input-unfounded"]),
        ((ONE,), {"new_block_hash": None}, ["input-blockless"]),
        (READ, {"new_offset": 1}, ["input-blockless"]),
        # The reference implementation compares for equality only.
        ((ONE, TWO_MORE, Desk.window, MORE), {"new_offset": 1}, ["input-reversed", "input-offset-mismatch"]),
        ((ONE,), {"new_block_hash": STRANGER}, ["input-block-missing"]),
        # The reference implementation does not look into the input.
        ((TWO_MORE,), {"new_offset": 0}, ["input-offset-mismatch"]),
        ((TWO_MORE,), {"new_offset": 2}, ["input-offset-mismatch"]),
        ((TWO_MORE,), {"new_offset": None}, ["input-offset-mismatch"]),
    ],
    ids=fields,
)
def test_a_window_that_does_not_consume_what_follows_is_refused(desk, acts, changes, codes):
    """It honestly consumes all, but for the changes."""
    for act in acts:
        act(desk)
    planned = desk.app.plan_next()
    given = planned.inputs[0].input.model_copy(update=made(changes, desk))
    event = planned.execute(watermark=desk.clock.now()).model_copy(update={"query_inputs": (given,)})
    assert refused(lambda: desk.app.append(event, planned=planned)) == codes


def test_consumption_that_goes_back_to_an_earlier_block_is_refused(desk):
    desk.discover((0, 10))
    desk.mark()
    desk.window()
    planned = desk.app.plan_next(upto={desk.root.dataset_id: 2})
    assert planned.inputs[0].input.new_block_hash == desk.root.read(2).hash
    event = planned.execute(watermark=desk.clock.now())
    assert refused(lambda: desk.app.append(event, planned=planned)) == ["input-reversed"]


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_window_that_moves_nothing_is_refused(desk, checkpoint):
    if checkpoint:
        desk.discover((0, 10))
        desk.window(consumed=[(0, 10)])
    code = "transform-unmoved" if checkpoint else "event-empty"
    assert refused(lambda: desk.app.append(desk.app.plan_next().execute())) == [code]


# ---- declarations


def declared(*names: str, **transform: Any) -> SetTransform:
    inputs = tuple(TransformInput(dataset_ref=name, alias=name[-1]) for name in names)
    how = Transform(engine="dagkit", **transform) if transform else transform_of("plan", "1")
    return SetTransform(inputs=inputs, transform=how)


NAMELESS = SetTransform(inputs=(TransformInput(dataset_ref="did:odf:a"),), transform=transform_of("plan", "1"))
INNER, LAST = SqlQueryStep(query="a"), SqlQueryStep(query="b")
ALIASED = SqlQueryStep(query="a", alias="x")


@cases(
    "event, code",
    ("without inputs", declared(), "transform-inputless"),
    ("with an input twice", declared("did:odf:a", "did:odf:a"), "input-duplicated"),
    ("with an input by name", declared("a.name"), "input-unresolved"),
    ("with an input without alias", NAMELESS, "input-unresolved"),
    ("without queries", declared("did:odf:a", queries=()), "query-malformed"),
    ("the last query has an alias", declared("did:odf:a", queries=(ALIASED,)), "query-malformed"),
    ("an inner query has none", declared("did:odf:a", queries=(INNER, LAST)), "query-malformed"),
)
def test_a_malformed_transform_is_refused(desk, event, code):
    assert refused(lambda: desk.app.append(event)) == [code]


def columns(*given: str | DataField) -> SetDataSchema:
    fields = tuple(f if isinstance(f, DataField) else DataField(name=f, type="Int64") for f in given)
    return SetDataSchema(schema=DataSchema(fields=fields))


def optional(name: str) -> DataField:
    return DataField(name=name, type={"kind": "Option", "inner": "Int64"})


@cases(
    "event, code",
    ("says the same", columns("a", "b"), "schema-unchanged"),
    ("drops a column", columns("a"), "schema-incompatible"),
    ("retypes one", columns("a", DataField(name="b", type="String")), "schema-incompatible"),
    ("makes one optional", columns("a", optional("b")), "schema-incompatible"),
    ("adds one for all", columns("a", "b", "c"), "schema-incompatible"),
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
    assert [law.__name__ for law in (*ORDER, *DATA, *DECLARATIONS) if not law.__doc__] == []


def test_a_misplaced_block_is_judged_no_further(desk):
    block = forged(desk.root, AddData(), sequence_number=7)
    proposal = Proposal(block, desk.root.standing, ReplayWitness(lambda _: None))
    assert [fault.code for fault in judge(proposal)] == ["sequence-broken"]
    assert judge(Proposal(block, Standing(), ReplayWitness(lambda _: None)))[0].code == "seed-missing"
