"""The logical picture shows what the author drew, right or wrong."""

from dagkit.render import logical
from dagkit.render.picture import Side
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
