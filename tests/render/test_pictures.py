"""The logical picture shows what the author drew, right or wrong, and the physical one what the plan has."""

from itertools import product

import pytest

from dagkit import OperatorContext, StatelessPartitioner
from dagkit.render import logical, physical
from dagkit.render.picture import Role, Side, WireKind
from tests.render import samples


def test_boxes_have_their_ports_with_payloads_and_wires_their_streams_with_localities():
    picture = logical(samples.graph(samples.line_filter()))
    reader, records = picture.by_name["Block-reader"], picture.wires[1]
    assert reader.subtitle == "LineReader"
    assert [(p.name, p.side, p.payload, p.connected) for p in reader.ports] == [
        ("blocks_metadata_input", Side.IN, "FileBlock", True),
        ("messages", Side.OUT, "Line", True),
        ("blocks_metadata_output", Side.OUT, "FileBlock", False),
    ]
    assert (records.stream, records.payload, records.notes) == ("records", "Line", ("thread local",))


def test_operators_of_a_module_stand_in_its_frame_under_their_inner_names():
    dag = samples.Dag()
    dag.add_operator("clean$deep$dedupe", samples.Filter())
    picture = logical(samples.graph(dag))
    box, groups = picture.by_name["clean$deep$dedupe"], [("clean", "clean", None), ("clean$deep", "deep", "clean")]
    assert (box.title, box.group) == ("dedupe", "clean$deep")
    assert [(group.name, group.title, group.parent) for group in picture.groups] == groups


def test_a_half_wired_dag_has_a_picture_of_what_there_is():
    picture = logical(samples.graph(samples.half_wired()))
    ends = {"from nowhere": (0, 1), "to nowhere": (1, 0), "from both": (2, 1), "nothing": (0, 0), "round": (1, 1)}
    assert {wire.stream: (len(wire.tails), len(wire.heads)) for wire in picture.wires} == ends
    assert len(picture.by_name) == 6


WHY = "File-splitter is an input operator: it finds work on the driver"


def heads(picture, stream):
    return {(tail.box, head.box): head for wire, tail, head in picture.edges() if wire.stream == stream}


@pytest.mark.parametrize(
    ("count", "lanes"), [(1, 0), (2, 2), (8, 8), (9, 0)], ids=["one needs none", "two", "eight", "nine are too many"]
)
def test_few_partitions_are_drawn_one_by_one_and_many_are_counted(count, lanes):
    reader = physical(samples.line_filter_plan(count)).by_name["Block-reader"]
    assert (reader.count, len(reader.lanes)) == (count, lanes)


def test_lanes_of_a_parallel_chain_run_side_by_side_and_work_may_come_to_each():
    picture = physical(samples.line_filter_plan(3))
    head = heads(picture, "records")["Block-reader", "Filter"]
    assert (head.kind, head.lines) == (WireKind.PARALLEL, ((0, 0), (1, 1), (2, 2)))
    head = heads(picture, "file-block metadata")["File-splitter", "Block-reader"]
    assert (head.kind, head.lines) == (WireKind.DRIVER, ((None, 0), (None, 1), (None, 2)))
    assert (head.notes, head.why) == (("from the driver", "by key"), WHY)


def test_each_of_n_partitions_shows_its_keys_and_has_a_unifier_that_reads_all_m():
    picture = physical(samples.m_by_n_plan(3, 3))
    (unifier,) = (box for box in picture.boxes if box.role is Role.UNIFIER and box.count == 3)
    words = heads(picture, "words")
    before, behind = words["split", unifier.name], words[unifier.name, "count"]
    assert ([lane.text for lane in unifier.lanes], unifier.group) == (["for 0", "for 1", "for 2"], "count")
    assert (set(before.lines), before.notes) == (set(product(range(3), range(3))), ("by key", "shuffled"))
    assert (behind.lines, behind.kind) == (((0, 0), (1, 1), (2, 2)), WireKind.FUSED)
    assert [lane.text for lane in picture.by_name["count"].lanes] == ["keys 0, 3", "key 1", "key 2"]


def test_more_lines_than_an_eye_can_follow_become_one_with_its_counts():
    head = next(head for wire, _, head in physical(samples.m_by_n_plan(6, 6)).edges() if wire.stream == "words")
    assert (head.lines, head.notes[-1]) == ((), "6 × 6")  # noqa: RUF001 - the sign that is shown


def test_a_cascade_merges_rank_by_rank():
    picture = physical(samples.cascade_plan())
    first, last = (box for box in picture.boxes if box.role is Role.UNIFIER)
    words = heads(picture, "words")
    assert words["split", first.name].lines == ((0, 0), (1, 0), (2, 1), (3, 1))
    assert words[first.name, last.name].lines == ((0, None), (1, None))
    assert words[last.name, "count"].kind is WireKind.FUSED
    assert (first.group, last.group) == (None, "count + report")


def test_what_a_delay_hands_on_is_drawn_as_a_way_back():
    picture = physical(samples.planned(samples.word_count(1), "Loop"))
    into, out = (
        heads(picture, "counts")["count", "last window"],
        heads(picture, "counts so far")["last window", "count"],
    )
    assert (into.kind, into.notes) == (WireKind.PLAIN, ("held back",))
    assert (out.kind, out.notes) == (WireKind.DELAYED, ("next window",))


def test_a_large_plan_is_drawn_without_lanes():
    dag = samples.layered(6, 5)
    dag.set_attribute(OperatorContext.PARTITIONER, StatelessPartitioner(2))
    assert {len(box.lanes) for box in physical(samples.planned(dag, "Crowd")).boxes} == {0}


def test_a_unifier_that_alike_sinks_share_feeds_each_of_them():
    dag = samples.m_by_n(limit=2)
    dag.stream("words").add_sink(dag.add_operator("other", samples.Total()).words)
    picture = physical(samples.planned(dag, "Shared", {"split": 4}))
    last = [box.name for box in picture.boxes if box.role is Role.UNIFIER][-1]
    assert {head for tail, head in heads(picture, "words") if tail == last} == {"count", "other"}


@pytest.mark.parametrize(
    ("payload", "shown"), [("T", ""), ("T_co", ""), ("Record[str]", "Record[str]"), ("Tea", "Tea")]
)
def test_items_of_which_nothing_is_known_have_no_label(payload, shown):
    plan = samples.line_filter_plan()
    streams = tuple(stream.model_copy(update={"payload": payload}) for stream in plan.streams)
    picture = physical(plan.model_copy(update={"streams": streams}))
    assert {wire.payload for wire, _, _ in picture.edges()} == {shown}
