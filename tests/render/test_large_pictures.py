"""Long chains are wrapped, and what no screen can show is folded."""

import random
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from dagkit.render import logical, render
from dagkit.render.engines import wasm_backend
from dagkit.render.folding import BESIDE, MOST_BOXES, folded, span
from dagkit.render.layout import layout
from dagkit.render.picture import Box, End, Group, GroupKind, Head, Picture, Port, Side, View, Wire
from dagkit.render.wiring import wiring
from tests.render import samples

SCREEN = 1920, 1200


def drawn(edges, **kinds):
    """A picture of numbered boxes; `kinds` are the subtitles of some."""
    names = [str(number) for number in range(1 + max(max(edge) for edge in edges))]
    boxes = tuple(Box(name, f"Step-{name}", subtitle=kinds.get(f"n{name}", "Step")) for name in names)
    wires = tuple(Wire(f"{a}-{b}", (End(str(a)),), (Head(str(b)),)) for a, b in edges)
    return Picture(View.LOGICAL, "Sample", "", boxes, wires)


def chain(length):
    return drawn(list(pairwise(range(length))))


def size_of(picture):
    wide, high = re.findall(r' (?:width|height)="([\d.]+)"', render(picture, "svg").decode())[:2]
    return float(wide), float(high)


@pytest.mark.parametrize("length", [14, 40, 60])
def test_a_chain_fits_a_screen(length):
    wide, high = size_of(chain(length))
    assert (wide, high) < SCREEN
    assert high <= SCREEN[1]
    assert 0.8 < wide / high < 3


def test_rows_follow_each_other_from_top_to_bottom():
    picture = chain(30)
    places = layout(picture)
    rows = places.wires.rows
    boxes = [places.boxes[box.name] for box in picture.boxes]
    assert len(set(rows.values())) > 2
    for (one, other), (upper, lower) in zip(pairwise(picture.boxes), pairwise(boxes), strict=True):
        if rows[one.name] == rows[other.name]:
            assert upper.right < lower.left
        else:
            assert upper.bottom < lower.top
            assert lower.left < upper.left


def framed(picture, *cuts):
    """The picture with a frame for the boxes between each two numbers."""
    groups = tuple(Group(str(start), f"Frame {start}", GroupKind.WORKERS) for start in (0, *cuts))
    boxes = tuple(replace(box, group=str(max(c for c in (0, *cuts) if c <= int(box.name)))) for box in picture.boxes)
    return replace(picture, boxes=boxes, groups=groups)


@pytest.mark.parametrize("cuts", [(), (1,), (2,), (1, 3), (9,), (5, 9)])
def test_rows_in_frames_follow_each_other_from_top_to_bottom(cuts):
    picture = framed(chain(10), *cuts)
    places = layout(picture)
    rows = places.wires.rows
    assert set(rows.values()) == {0, 1, 2}
    for frame in picture.groups:
        tops = [(rows[box.name], places.boxes[box.name].top) for box in picture.members(frame.name)]
        assert all(upper[1] < lower[1] for upper, lower in pairwise(sorted(tops)) if upper[0] < lower[0])


def test_ports_with_a_stream_come_first_so_that_a_chain_is_straight():
    sides = [("input", Side.IN, True), ("rejected", Side.OUT, False), ("output", Side.OUT, True)]
    ports = tuple(Port(name, side, "", connected=connected, required=False) for name, side, connected in sides)
    boxes = tuple(Box(name, name, ports=ports) for name in "abc")
    wires = tuple(Wire(f"{a}:output", (End(a, "output"),), (Head(b, "input"),)) for a, b in pairwise("abc"))
    assert len({box.top for box in layout(Picture(View.LOGICAL, "", "", boxes, wires)).boxes.values()}) == 1


@pytest.mark.parametrize(
    ("first", "last", "title"),
    [
        ("Clean-events-0-3", "Clean-events-99-3", "Clean-events-0…99-3"),
        ("Clean 1", "Clean 10", "Clean 1…10"),
        ("Step1", "Step22", "Step1 … Step22"),
        ("Read", "Write", "Read … Write"),
    ],
)
def test_the_title_of_equal_boxes_has_what_is_equal_once(first, last, title):
    assert span(first, last) == title


def test_a_line_between_rows_crosses_no_box():
    picture = chain(30)
    places = layout(picture)
    boxes = [places.boxes[box.name] for box in picture.boxes]
    for route in places.routes:
        for (x0, y0), (x1, y1) in pairwise(route.points):
            x, y = (x0 + x1) / 2, (y0 + y1) / 2
            assert not any(box.left + 1 < x < box.right - 1 and box.top + 1 < y < box.bottom - 1 for box in boxes)


def test_short_chains_and_branched_pictures_are_not_rows_of():
    assert wiring(chain(7)).rows == {}
    branched = [(0, n) for n in range(1, 6)] + [(n, n + 5) for n in range(1, 60)]
    assert wiring(drawn(branched)).rows == {}


def test_a_picture_in_a_frame_is_wrapped_within_it():
    assert wiring(logical(samples.graph(samples.layered(20, 1)))).rows


@pytest.mark.parametrize(("page", "rows"), [(8.0, 1), (2.5, 2), (1.0, 3)], ids=["wide", "wider than high", "square"])
def test_a_chain_is_wrapped_so_that_it_fills_a_page(page, rows):
    assert 1 + max(wiring(chain(6), page).rows.values(), default=0) == rows
    assert wiring(chain(6)).rows == {}


def test_a_picture_whose_rows_stand_beside_each_other_is_not_wrapped():
    picture = drawn([(0, 1), (0, 2), (2, 3), (2, 4), (4, 5), (5, 6), (5, 7), (7, 8)])
    assert wiring(picture, 1.5).rows
    assert layout(picture, 1.5).wires.rows == {}
    assert layout(chain(6), 1.5).wires.rows


def test_a_name_that_repeats_the_operator_and_its_port_is_not_written():
    wires = (Wire("a:out", (End("a", "out"),), (Head("b"),)), Wire("words", (End("b", "out"),), (Head("a"),)))
    drawing = render(Picture(View.LOGICAL, "", "", (Box("a", "a"), Box("b", "b")), wires), "svg").decode()
    assert ">words</tspan>" in drawing
    assert ">a:out</tspan>" not in drawing


def pipelines(count):
    """One input, and many equal pipelines of five steps."""
    first = [(0, 5 * number + 1) for number in range(count)]
    return first + [(5 * number + step, 5 * number + step + 1) for number in range(count) for step in range(1, 5)]


def test_equal_branches_become_one():
    picture = folded(drawn(pipelines(200)))
    assert [box.title for box in picture.boxes][:2] == ["Step-0", "Step-1\N{HORIZONTAL ELLIPSIS}996"]
    assert [box.subtitle for box in picture.boxes] == ["Step", *["Step, 200 operators"] * 5]
    assert len(picture.wires) == 5


def test_a_branch_that_differs_stays_alone():
    picture = folded(drawn(pipelines(30), n3="Filter"))
    alone = [box.subtitle for box in picture.boxes if box.subtitle.startswith(("Filter", "Step, "))]
    assert sorted(alone) == ["Filter", *["Step, 29 operators"] * 5]


def test_a_long_chain_is_divided_into_parts_and_a_small_picture_is_not_folded():
    picture = folded(chain(1000))
    assert [(box.title, box.subtitle) for box in picture.boxes][:2] == [
        ("steps 1 to 84", "84 operators"),
        ("steps 85 to 168", "84 operators"),
    ]
    assert (len(picture.boxes), len(picture.wires)) == (BESIDE, BESIDE - 1)
    assert folded(chain(60)) == chain(60)


def tangle(count):
    draw = random.Random(7)  # noqa: S311 - any graph will do
    edges = [(draw.randrange(max(0, n - 30), n), n) for n in range(1, count) for _ in range(draw.choice([1, 1, 2]))]
    return drawn(list(dict.fromkeys(edges)))


@pytest.mark.slow
def test_a_thousand_operators_fit_two_screens():
    picture = folded(tangle(1000))
    assert len(picture.boxes) <= MOST_BOXES
    numbers = [box.subtitle.removesuffix(" operators").split()[-1] for box in picture.boxes]
    assert sum(int(number) if number.isdigit() else 1 for number in numbers) == 1000
    wide, high = size_of(tangle(1000))
    assert (wide < 2 * SCREEN[0], high < SCREEN[1]) == (True, True)


def test_text_and_json_show_everything():
    assert render(tangle(300), "json").count(b'"subtitle"') == 300
    assert render(tangle(300), "text").count(b"(Step)") == 300


@pytest.mark.slow
@pytest.mark.parametrize(("home", "kept"), [("", 1), ("/proc/nothing", 0)], ids=["a home", "no place for the cache"])
def test_the_second_drawing_by_wasm_compiles_nothing(monkeypatch, tmp_path, home, kept):
    monkeypatch.setenv("HOME", home or str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    wasm_backend.cache_clear()
    assert b"<svg" in wasm_backend().render("digraph {a -> b}", format="svg")
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size > 1_000_000]
    assert len(files) == kept
    wasm_backend.cache_clear()
