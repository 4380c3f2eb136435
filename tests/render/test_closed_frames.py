"""A large picture is folded: by module, or by stage and level; an opened frame shows what is in it."""

from dataclasses import replace
from itertools import pairwise

import pytest

from dagkit import Config
from dagkit.compiler import compile_application
from dagkit.render import Picture, logical
from dagkit.render.folding import PARTS, READABLE, by_stage, closed, in_parts
from dagkit.render.logical import logical_of
from dagkit.render.picture import Box, End, Group, GroupKind, Head, Port, Side, View, Wire
from tests.console.conftest import copying
from tests.render import samples


def chain(modules, each):
    """Modules of operators, all in one line."""
    names = [(f"m{module}", f"m{module}$o{index}") for module in range(modules) for index in range(each)]
    ports = (Port("in", Side.IN), Port("out", Side.OUT))
    return Picture(
        View.LOGICAL,
        "Chain",
        "",
        tuple(Box(name, name.partition("$")[2], ports=ports, group=module) for module, name in names),
        tuple(
            Wire(f"s{index}", (End(before, "out"),), (Head(after, "in"),))
            for index, ((_, before), (_, after)) in enumerate(pairwise(names))
        ),
        tuple(Group(f"m{module}", f"m{module}", GroupKind.MODULE) for module in range(modules)),
    )


def edges(picture):
    return [(tail.box, head.box) for _, tail, head in picture.edges()]


def test_each_closed_module_is_one_box_and_streams_within_it_are_not_drawn():
    few = chain(6, 10)
    assert (len(few.boxes), closed(few) is few) == (READABLE, True)
    picture = closed(chain(20, 50))
    assert [box.name for box in picture.boxes] == [f"m{module}" for module in range(20)]
    assert {box.subtitle for box in picture.boxes} == {"50 operators"}
    assert edges(picture) == [(f"m{module}", f"m{module + 1}") for module in range(19)]
    assert picture.groups == ()


def test_an_opened_module_shows_its_operators_in_its_frame():
    picture = closed(chain(20, 50), {"m1"})
    assert (len(picture.boxes), [group.name for group in picture.groups]) == (19 + 50, ["m1"])
    assert {("m0", "m1$o0"), ("m1$o49", "m2")} <= set(edges(picture))
    assert len(edges(picture)) == 49 + 19


def test_several_streams_between_two_closed_modules_are_one_wire():
    picture = chain(10, 10)
    second = Wire("also", (End("m0$o3", "out"),), (Head("m1$o4", "in"),))
    wires = closed(replace(picture, wires=(*picture.wires, second))).wires
    assert [wire.stream for wire in wires if wire.tails[0].box == "m0"] == ["2 streams"]


def test_a_stage_that_is_named_like_an_operator_in_it_opens():
    picture = chain(10, 10)
    groups = (Group("m0$o0", "m0$o0", GroupKind.WORKERS), *picture.groups[1:])
    boxes = tuple(replace(box, group="m0$o0" if box.group == "m0" else box.group) for box in picture.boxes)
    opened = closed(replace(picture, boxes=boxes, groups=groups), {"m0$o0"})
    assert len(opened.boxes) == 10 + 9
    assert ("m0$o0", "m0$o1") in edges(opened)


@pytest.mark.slow
def test_a_thousand_operators_without_modules_are_folded_by_stage_and_step():
    plan = compile_application(samples.layered(40, 25)).plan
    assert len(plan.operators) == 1000
    whole = in_parts(by_stage(logical_of(plan), plan))
    picture = closed(whole)
    assert len(picture.boxes) == PARTS
    assert len(picture.wires) < 3 * PARTS, "stages of neighbouring steps are in one part"
    inside = {group.name for group in whole.groups if group.parent == "part 3"}
    opened = closed(whole, {"part 3"})
    assert {box.name for box in opened.boxes} - {box.name for box in picture.boxes} == inside
    assert len(opened.boxes) <= READABLE
    (stage,) = list(inside)[:1]
    operators = next(found.operators for found in plan.stages if found.name == stage)
    assert set(operators) <= {box.name for box in closed(whole, {"part 3", stage}).boxes}


def test_the_logical_picture_of_a_plan_has_the_boxes_and_wires_of_its_graph():
    compilation = compile_application(
        copying, Config.of({"dt.operator.Splitter.prop.scanner.files": "in", "dt.operator.Writer.prop.filePath": "out"})
    )
    of_graph, of_plan = logical(compilation.graph), logical_of(compilation.plan)
    assert {(box.name, box.title, box.subtitle, box.role, box.group) for box in of_plan.boxes} == {
        (box.name, box.title, box.subtitle, box.role, box.group) for box in of_graph.boxes
    }
    assert set(edges(of_plan)) == set(edges(of_graph))
    assert {(wire.stream, wire.payload, wire.heads[0].kind) for wire in of_plan.wires} == {
        (wire.stream, wire.payload, wire.heads[0].kind) for wire in of_graph.wires
    }
