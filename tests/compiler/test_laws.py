"""The laws of a graph, one case each way: what breaks them is reported under its code, and what keeps them compiles.

The cases stand in `laws/`, by what they are about, as the laws themselves do. Each draws on a Dag; what it is called
says what it draws.
"""

import pytest

from dagkit import AffinityType, Dag, DagContext, OperatorContext, PortContext, ProcessingMode
from tests.compiler.cast import codes, compiled, faults
from tests.compiler.laws import attributes, partitions, places, ports, properties, shape, windows
from tests.compiler.laws.places import a_rule_whose_pattern_fits_one, row, rule
from tests.compiler.sketches import sketch

CASES = (properties, ports, shape, attributes, partitions, windows, places)
BROKEN = [case for cases in CASES for case in cases.BROKEN]
VALID = [case for cases in CASES for case in cases.VALID]


def _sentence(value: object) -> str | None:
    return value.__name__.replace("_", " ").strip() if callable(value) else None


@pytest.mark.parametrize(("draw", "expected"), BROKEN, ids=lambda v: _sentence(v) or "")
def test_what_breaks_a_law_is_reported(draw, expected):
    dag = Dag()
    draw(dag)
    told = [f"{fault.code}: {fault.problem}" for fault in faults(dag)]
    assert len(told) == len(expected), told
    for said, wanted in zip(told, expected, strict=True):
        assert said.startswith(wanted)


@pytest.mark.parametrize("draw", VALID, ids=_sentence)
def test_what_keeps_the_laws_compiles(draw):
    dag = Dag()
    draw(dag)
    assert codes(dag) == []


@pytest.mark.parametrize(("draw", "expected"), BROKEN, ids=lambda v: _sentence(v) or "")
def test_every_fault_has_a_line_and_a_help(draw, expected):
    dag = Dag()
    draw(dag)
    for fault in faults(dag):
        assert fault.help
        assert fault.code == "application-empty" or (
            fault.where and fault.where.file.startswith("tests/compiler/laws/")
        )


def test_what_follows_an_operator_that_may_lose_items_may_lose_them_and_is_reported():
    dag = sketch("s>a", "a>b", "b>c", "a>x")
    dag.set_operator_attribute(dag.operator("a"), OperatorContext.PROCESSING_MODE, ProcessingMode.AT_MOST_ONCE)
    compilation = compiled(dag)
    modes = {
        node.name: compilation.graph.value(node, OperatorContext.PROCESSING_MODE).value
        for node in compilation.graph.nodes
    }
    assert modes == {"s": "AT_LEAST_ONCE", **dict.fromkeys("abcx", "AT_MOST_ONCE")}
    assert sorted(note.problem for note in compilation.notes) == [
        "b becomes AT_MOST_ONCE, because a feeds it and is AT_MOST_ONCE",
        "c becomes AT_MOST_ONCE, because b feeds it and is AT_MOST_ONCE",
        "x becomes AT_MOST_ONCE, because a feeds it and is AT_MOST_ONCE",
    ]


def test_a_rule_whose_pattern_fits_fewer_than_two_is_passed_over_and_reported():
    dag = Dag()
    a_rule_whose_pattern_fits_one(dag)
    assert [(note.code, note.severity.value) for note in compiled(dag).notes] == [("affinity-ignored", "warning")]


def test_attributes_that_mean_nothing_here_are_accepted_and_reported():
    dag = sketch("s>a")
    dag.set_attribute(DagContext.DEBUG, True)
    dag.set_operator_attribute(dag.operator("a"), OperatorContext.VCORES, 2)
    dag.set_input_port_attribute(dag.operator("a").one, PortContext.BUFFER_MEMORY_MB, 64)
    assert [(note.code, note.severity.value, note.problem) for note in compiled(dag).notes] == [
        ("attribute-advisory", "advisory", "DEBUG of Dag is accepted, but has no effect here"),
        ("attribute-advisory", "advisory", "VCORES of a is accepted, but has no effect here"),
        ("attribute-advisory", "advisory", "BUFFER_MEMORY_MB of a.one is accepted, but has no effect here"),
    ]


def test_validating_changes_nothing_so_it_can_be_done_twice():
    dag = Dag()
    row(dag, rule(AffinityType.AFFINITY, "O1", "O3"), rule(AffinityType.ANTI_AFFINITY, "O1", "O3"))
    assert faults(dag) == faults(dag)
