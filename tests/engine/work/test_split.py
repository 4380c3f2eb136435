"""Cutting blocks before they are read: nothing is lost, all slots get alike, and nothing is cut without need."""

import json
import pickle
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from dagkit import Block, Dag, PortContext
from dagkit.compiler import compile_application
from dagkit.engine.program.address import Address
from dagkit.engine.program.lower import program_of
from dagkit.engine.work.cost import CostEstimate
from dagkit.engine.work.item import Deferral, DoneBefore, ItemTimes, WorkItem
from dagkit.engine.work.queue import WorkQueue
from dagkit.engine.work.schedule import WindowSchedule
from dagkit.engine.work.split import (
    EVEN,
    LEAST,
    LEAST_MILLIS,
    LONGEST_PATIENCE,
    CutNear,
    SplitBackoff,
    SplitPlanner,
    allocated,
    anywhere,
    nowhere,
)
from dagkit.engine.work.summary import ProgramSummary
from dagkit.ranges import OFFSET_INFINITY
from dagkit_operators import FileSplitterInput, Filter, LineReader, PartWriter, RecordWriter
from tests.engine.cast import chain
from tests.engine.items import block_in, item_of, waiting

MIB = 1 << 20
INTO = "reader.blocks"


def of_lengths(*lengths: int) -> list[WorkItem]:
    """One block of each length, side by side in one source."""
    blocks, start = [], 0
    for number, length in enumerate(lengths):
        blocks.append(waiting(number, start, start + length))
        start += length
    return blocks


def cutter(near: CutNear = anywhere, usual: float | None = None) -> SplitPlanner:
    return SplitPlanner(CostEstimate(usual), {INTO: near})


def load_of(hand: list[WorkItem]) -> int:
    return sum(each.length for each in hand)


def stretches(slot_work: list[list[WorkItem]]) -> list[list[tuple[int, int, int]]]:
    """The blocks of each slot: number, start and end, in mebibytes."""
    return [[(w.number[0], w.start // MIB, w.end // MIB) for w in hand] for hand in slot_work]


@pytest.mark.parametrize(
    ("lengths", "slots", "expected"),
    [
        ([64, 64, 64, 64], 2, [[(0, 0, 64), (2, 128, 192)], [(1, 64, 128), (3, 192, 256)]]),
        ([100], 2, [[(0, 0, 50)], [(0, 50, 100)]]),
        ([64, 32], 2, [[(0, 0, 48)], [(0, 48, 64), (1, 64, 96)]]),  # only what goes over its share is cut
        ([90], 3, [[(0, 0, 30)], [(0, 30, 60)], [(0, 60, 90)]]),
        ([1], 2, [[(0, 0, 1)], []]),  # what is small stays whole
    ],
)
def test_work_is_allocated_evenly(lengths, slots, expected):
    assert stretches(allocated(of_lengths(*(length * MIB for length in lengths)), slots, cutter())) == expected


@given(st.lists(st.integers(0, 200 * MIB), max_size=12), st.integers(1, 9))
def test_every_position_is_allocated_once_and_no_more_is_cut_than_there_are_slots(lengths, slots):
    blocks, cutting = of_lengths(*lengths), cutter()
    slot_work = allocated(blocks, slots, cutting)
    pieces = sorted((w.number[0], w.start, w.end) for hand in slot_work for w in hand)
    glued: dict[int, list[int]] = {}
    for number, start, end in pieces:
        known = glued.setdefault(number, [start, start])
        assert known[1] == start
        known[1] = end
    assert glued == {w.number[0]: [w.start, w.end] for w in blocks}
    assert len(pieces) < len(blocks) + slots
    assert [w for hand in slot_work for w in hand if w.length < LEAST and w not in blocks] == []
    assert len(cutting.made) == len(pieces) - len(blocks)
    assert {(cut.fact.element_id, cut.fact.at) for cut in cutting.made} == {
        (number, start) for number, start, _ in pieces if start not in {w.start for w in blocks}
    }


@given(st.lists(st.integers(32 * MIB, 200 * MIB), min_size=1, max_size=12), st.integers(1, 9))
def test_long_blocks_are_allocated_so_that_no_slot_has_much_more_than_its_share(lengths, slots):
    slot_work = allocated(of_lengths(*lengths), slots, cutter())
    assert max(map(load_of, slot_work)) <= 1.05 * sum(lengths) / slots + 2 * LEAST


@pytest.mark.parametrize(
    ("near", "ends"),
    [(anywhere, [50 * MIB, 100 * MIB]), (nowhere, [100 * MIB]), (lambda _, at: at - 7, [50 * MIB - 7, 100 * MIB])],
)
def test_a_cut_is_made_where_the_reader_allows_it(near, ends):
    (block,) = of_lengths(100 * MIB)
    assert [hand[0].end for hand in allocated([block], 2, cutter(near)) if hand] == ends


def test_what_has_no_end_is_never_cut():
    endless = waiting(0, 0, OFFSET_INFINITY)
    assert allocated([endless], 2, cutter()) == [[endless], []]


def test_only_the_last_piece_ends_its_source():
    block = item_of(INTO, Block(0, "a", 0, 100 * MIB, last=True), "a")
    assert [block_in(hand[0]).last for hand in allocated([block], 2, cutter())] == [False, True]


def test_a_cut_is_reported_with_its_place_and_its_reason():
    cutting = cutter()
    allocated(of_lengths(100 * MIB), 2, cutting)
    (split,) = (cut.fact for cut in cutting.made)
    assert (split.into, split.source, split.start, split.at, split.end) == (INTO, "a", 0, 50 * MIB, 100 * MIB)
    assert (split.element_id, split.slot, split.why) == (0, None, EVEN)


def test_what_is_known_to_be_dear_is_cut_by_what_it_costs():
    dear = replace(waiting(0, 0, 1000), done=DoneBefore(100, 10_000.0))
    first, second = allocated([dear], 2, cutter(usual=1.0))
    # a hundred positions more are thought to cost 100 ms each, and all others one: 10,900 ms
    assert [(w.start, w.end) for w in first] == [(0, 54)]
    assert [(w.start, w.end) for w in second] == [(54, 1000)]


def test_no_piece_takes_less_than_is_worth_a_cut():
    cutting = cutter(usual=1.0)
    slot_work = allocated(of_lengths(120), 8, cutting)
    assert [load_of(hand) for hand in slot_work if hand] == [LEAST_MILLIS, 70]


def test_a_source_whose_reader_refuses_is_asked_less_and_less():
    asked: list[int] = []
    patience = SplitBackoff()
    for window in range(1000):

        def refuse(_: WorkItem, position: int, window: int = window) -> int | None:
            asked.append(window)
            return None

        allocated(of_lengths(100 * MIB), 2, SplitPlanner(CostEstimate(), {INTO: refuse}, patience, window))
    assert asked[:5] == [0, 2, 5, 10, 19]
    assert len(asked) <= 7 + 1000 / LONGEST_PATIENCE


def test_a_source_that_can_be_cut_after_all_is_cut_as_any_other():
    patience = SplitBackoff()
    (block,) = of_lengths(100 * MIB)
    patience.refused(block, 1)
    assert not patience.allows(block, 2)
    patience.came_of_it(block)
    assert patience.allows(block, 2)


def test_sources_that_are_no_longer_cut_are_forgotten():
    patience = SplitBackoff()
    for window in range(1000):
        patience.refused(waiting(window, 0, 100 * MIB, path=f"{window}.gz"), window)
    assert len(patience._refused) <= LONGEST_PATIENCE + 2


def test_a_promised_cut_is_made_again():
    first, second = (WorkQueue.of(of_lengths(100 * MIB, 7 * MIB)) for _ in range(2))
    allocation = first.take({INTO: 2}, {INTO: 1e9}, cutter())
    assert stretches([*map(list, allocation[INTO])]) == [[(0, 0, 53)], [(0, 53, 100), (1, 100, 107)]]
    promise = WindowSchedule(allocation, 0.0, CostEstimate()).promise(last=False)
    assert (second.take_these(promise.deal, {INTO: 2}), len(second)) == (allocation, 0)


def test_work_is_allocated_by_what_its_operator_counts():
    light, heavy = (waiting(number, 0, 100 * MIB, size=size * MIB) for number, size in enumerate((100.0, 300.0)))
    queue = WorkQueue.of([light, heavy])
    allocation = queue.take({INTO: 2}, {INTO: 1e12}, cutter())
    sizes = [sum(each.size or 0 for each in hand) / MIB for hand in allocation[INTO]]
    assert sizes == pytest.approx([200, 200], rel=1e-6)


BLOCKS = "reader.blocks_metadata_input"


@pytest.mark.parametrize(
    ("writer", "fused", "cut"),
    [
        (RecordWriter, True, {BLOCKS}),  # a writer in the reader's slots knows where each piece of a block belongs
        (RecordWriter, False, set()),
        (PartWriter, True, {BLOCKS}),  # files of no block have no order that a cut could change
        (PartWriter, False, {BLOCKS}),
    ],
)
def test_a_block_is_read_by_several_at_once_where_its_order_can_be_kept(tmp_path, writer, fused, cut):
    def draw(dag: Dag, conf: object) -> None:
        chain(
            splitter=FileSplitterInput(scanner={"files": [str(tmp_path / "in")]}),
            reader=LineReader(min_readers=2),
            filter=Filter(bool) if fused else (Filter(bool), 3),
            writer=writer(file_path=str(tmp_path / "out")),
        )(dag, conf)
        for name in ("filter", "writer") if fused else ():
            dag.set_input_port_attribute(dag.operator(name).input, PortContext.PARTITION_PARALLEL, True)

    assert set(ProgramSummary(program_of(compile_application(draw))).near) == cut


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
    restriction=["b", "c"],
    done=DoneBefore(positions=5, millis=2.5, apart=1, completed=4.0, turn=7, seen_end=120),
    deferral=Deferral(NOON, in_vain=True, idle_since=NOON, unanswered=True, waits_for="a.csv is still being written"),
    times=ItemTimes(reached=NOON, not_before=NOON),
)
"""No field has its default."""


def changed(item: WorkItem) -> dict[str, Any]:
    before, after = STORED.dump_python(ITEM, mode="json"), STORED.dump_python(item, mode="json")
    return {name: value for name, value in after.items() if value != before[name]}


def test_the_item_of_these_tests_has_no_default():
    assert not [field.name for field in fields(WorkItem) if getattr(ITEM, field.name) == field.default]
    for group in (ITEM.done, ITEM.deferral, ITEM.times):
        assert not [name for name, default in group._field_defaults.items() if getattr(group, name) == default]


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


FORM = {
    "into": "reader.blocks",
    "number": [3, 1],
    "element": {"path": "a"},
    "start": 10,
    "end": 110,
    "source": "a",
    "block": 3,
    "size": 200.0,
    "due": "2024-01-01T12:00:00Z",
    "in_vain": True,
    "turn": 7,
    "reached": "2024-01-01T12:00:00Z",
    "done_positions": 5,
    "done_millis": 2.5,
    "done_apart": 1,
    "completed": 4.0,
    "restriction": ["b", "c"],
    "not_before": "2024-01-01T12:00:00Z",
    "idle_since": "2024-01-01T12:00:00Z",
    "unanswered": True,
    "waits_for": "a.csv is still being written",
    "seen_end": 120,
}
"""What ledgers hold of the item."""


def test_the_ledger_holds_the_fields_of_groups_among_the_others():
    assert json.dumps(STORED.dump_python(ITEM, mode="json")) == json.dumps(FORM)
    usual = STORED.dump_python(replace(ITEM, deferral=Deferral(), done=DoneBefore()), mode="json")
    assert FORM.keys() - usual.keys() == {"unanswered", "waits_for", "seen_end"}
    earliest = {name: FORM[name] for name in ("into", "number", "element", "start", "end")}
    assert STORED.validate_python(earliest) == WorkItem(ITEM.into, ITEM.number, ITEM.element, ITEM.start, ITEM.end)


def test_the_ledger_names_the_element_as_earlier_versions_do_and_an_unknown_field_is_refused():
    stored = STORED.dump_python(ITEM, mode="json")
    assert (stored["block"], "element_id" in stored) == (3, False)
    with pytest.raises(ValidationError, match="later"):
        STORED.validate_python({**stored, "later": 1})
