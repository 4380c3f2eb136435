"""The SVG: well-formed, complete, clear of overlaps, and the same whichever engine placed it."""

from itertools import combinations
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagkit.render import logical, physical, render
from dagkit.render.content import Wording, plain, width
from dagkit.render.dot import ROW, number_of_rows
from dagkit.render.layout import layout
from dagkit.render.svg import svg
from tests.examples import examples
from tests.render import samples

NAMESPACE = "{http://www.w3.org/2000/svg}"

PICTURES = {
    "the example": lambda: logical(samples.graph(samples.line_filter(), "LineFilter")),
    "a loop": lambda: logical(samples.graph(samples.word_count(), "WordCount")),
    "hostile names": lambda: logical(samples.graph(samples.hostile(), 'App <&> "x"\\N')),
    "half-wired": lambda: logical(samples.graph(samples.half_wired(), "")),
    "nothing at all": lambda: logical(samples.graph(samples.Dag(), "Empty")),
    "the example's plan": lambda: physical(samples.line_filter_plan()),
    "three by three": lambda: physical(samples.m_by_n_plan()),
    "a cascade": lambda: physical(samples.cascade_plan()),
    "a loop's plan": lambda: physical(samples.planned(samples.word_count(), "Loop")),
    "sixty operators": lambda: logical(samples.graph(samples.layered(10, 6), "Sixty")),
}

every_picture = pytest.mark.parametrize("picture", PICTURES.values(), ids=PICTURES)


def words_in(drawing):
    """Everything that the SVG says to a reader, text by text."""
    root = ET.fromstring(drawing)  # noqa: S314 - our own SVG
    return {"".join(text.itertext()).strip() for text in root.iter(f"{NAMESPACE}text")}


@every_picture
def test_every_operator_stream_and_shown_port_is_there(picture):
    picture = picture()
    drawing = svg(picture)
    root = ET.fromstring(drawing)  # noqa: S314 - our own SVG
    assert {g.get("data-name") for g in root.iter() if g.get("data-name")} >= {plain(b.name) for b in picture.boxes}
    assert {g.get("data-stream") for g in root.iter() if g.get("data-stream")} >= {
        plain(wire.stream) for wire in picture.wires
    }
    shown = {part for text in words_in(drawing) for part in (text, text.removeprefix("\N{WHITE CIRCLE} "))}
    wording = Wording(picture)
    for box in picture.boxes:
        words = wording.box(box)
        for line in (*words.head, *(runs for _, runs in (*words.inputs, *words.outputs, *words.lanes))):
            assert "".join(run.text for run in line).strip() in shown


@pytest.mark.parametrize("sample", [samples.line_filter, samples.word_count])
def test_ports_streams_and_payloads_can_be_read(sample):
    picture = logical(samples.graph(sample()))
    shown = {text.removeprefix("\N{WHITE CIRCLE} ") for text in words_in(svg(picture))}
    assert shown >= {port.name for box in picture.boxes for port in box.ports}
    assert shown >= {wire.stream for wire in picture.wires}
    assert shown >= {wire.payload for wire in picture.wires if wire.payload}


@every_picture
def test_boxes_and_labels_keep_clear_of_each_other_fit_their_text_and_lie_inside_their_frames(picture):
    picture = picture()
    places, wording = layout(picture), Wording(picture)
    areas = [*places.boxes.values(), *places.hubs.values()]
    for one, other in combinations(areas, 2):
        apart = one.right <= other.left or other.right <= one.left or one.bottom <= other.top or other.bottom <= one.top
        assert apart
    for box in picture.boxes:
        area = places.boxes[box.name]
        words = wording.box(box)
        assert all(width(line) <= area.right - area.left for line in words.head)
        assert ROW * number_of_rows(words) <= area.bottom - area.top
        if box.group:
            frame = places.frames[box.group]
            assert frame.left < area.left < area.right < frame.right
            assert frame.top < area.top < area.bottom < frame.bottom


def test_lanes_of_a_chain_are_level_with_each_other():
    places = layout(physical(samples.line_filter_plan(3)))
    assert places.boxes["Block-reader"].bottom == pytest.approx(places.boxes["Filter"].bottom, abs=3)


def test_the_drawing_brings_its_own_ground_and_needs_nothing_from_elsewhere():
    drawing = render(PICTURES["the example"](), "svg").decode()
    assert drawing.startswith("<svg ")
    assert '<rect width="100%" height="100%" rx="8" fill="#ffffff"/>' in drawing
    assert not {"<script", "<style", "url(", "<image", "<!DOCTYPE"} & set(drawing.split())


@pytest.mark.slow
@settings(max_examples=examples(30))
@given(st.lists(st.text().filter(lambda name: name and "." not in name), min_size=2, max_size=4, unique=True))
def test_any_names_can_be_drawn(names):
    dag = samples.Dag()
    above, *below = (dag.add_operator(name, samples.Merge()) for name in names)
    dag.add_stream(names[0], above.merged, *(merge.left for merge in below))
    graph = samples.graph(dag, names[-1])
    groups = ET.fromstring(svg(logical(graph))).iter(f"{NAMESPACE}g")  # noqa: S314 - our own SVG
    boxes = [g.get("data-name", "") for g in groups if g.get("class", "").startswith("box ")]
    assert sorted(boxes) == sorted(plain(node.name) for node in graph.nodes)
