"""The logical picture shows what the author drew, right or wrong."""

import pytest

from dagkit.render import logical
from dagkit.render.picture import Role, Side, WireKind
from tests.render import samples


def test_a_box_has_its_ports_with_payloads_and_knows_which_are_wired():
    picture = logical(samples.graph(samples.line_filter()))
    reader = picture.by_name["Block-reader"]
    assert reader.subtitle == "LineReader"
    assert [(p.name, p.side, p.payload, p.connected) for p in reader.ports] == [
        ("blocks_metadata_input", Side.IN, "FileBlock", True),
        ("messages", Side.OUT, "Line", True),
        ("blocks_metadata_output", Side.OUT, "FileBlock", False),
    ]


def test_a_wire_has_the_streams_name_payload_and_locality():
    picture = logical(samples.graph(samples.line_filter()))
    records = picture.wires[1]
    assert (records.stream, records.payload, records.notes) == ("records", "Line", ("thread local",))


@pytest.mark.parametrize(("parallel", "kind"), [(True, WireKind.PARALLEL), (False, WireKind.PLAIN)])
def test_a_parallel_partitioned_input_is_distinguished_from_others(parallel, kind):
    picture = logical(samples.graph(samples.line_filter(parallel=parallel)))
    assert [head.kind for wire in picture.wires for head in wire.heads] == [WireKind.PLAIN, kind, kind]


def test_roles_and_counts_are_those_of_the_operators():
    picture = logical(samples.graph(samples.word_count()))
    assert picture.by_name["files"].role is Role.INPUT
    assert picture.by_name["last window"].role is Role.DELAY
    assert picture.by_name["count"].count == 3


def test_what_leaves_a_delay_comes_in_the_next_window():
    picture = logical(samples.graph(samples.word_count()))
    delayed = [wire.stream for wire, _, head in picture.edges() if head.kind is WireKind.DELAYED]
    assert delayed == ["counts so far"]


def test_operators_of_a_module_stand_in_its_frame_under_their_inner_names():
    dag = samples.Dag()
    dag.add_operator("clean$deep$dedupe", samples.Filter())
    picture = logical(samples.graph(dag))
    box = picture.by_name["clean$deep$dedupe"]
    assert (box.title, box.group) == ("dedupe", "clean$deep")
    assert [(group.name, group.title, group.parent) for group in picture.groups] == [
        ("clean", "clean", None),
        ("clean$deep", "deep", "clean"),
    ]


def test_a_half_wired_dag_has_a_picture_of_what_there_is():
    picture = logical(samples.graph(samples.half_wired()))
    ends = {wire.stream: (len(wire.tails), len(wire.heads)) for wire in picture.wires}
    assert ends == {
        "from nowhere": (0, 1),
        "to nowhere": (1, 0),
        "from both": (2, 1),
        "nothing": (0, 0),
        "round": (1, 1),
    }
    assert len(picture.by_name) == 6
