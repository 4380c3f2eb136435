"""The laws of a graph, one case each way: what breaks them is reported under its code, and what keeps them compiles.

The cases stand in `laws/`, by what they are about, as the laws themselves do. Each draws on a Dag; what it is called
says what it draws.
"""

from dagkit import AffinityRulesSet, Dag, DagContext, InputPort, Operator, OperatorContext, PortContext, ProcessingMode
from tests.cases import cases
from tests.compiler.cast import compiled, faults
from tests.compiler.laws.of_attributes import FITS_ONE, law
from tests.compiler.sketches import sketch


@cases("draw, expected", *law.cases)
def test_what_breaks_a_law_is_reported_and_what_keeps_the_laws_compiles(draw, expected):
    dag = Dag()
    draw(dag)
    told = faults(dag)
    assert faults(dag) == told, "compiling changes nothing"
    problems = [f"{fault.code}: {fault.problem}" for fault in told]
    assert len(problems) == len(expected), problems
    for problem, beginning in zip(problems, expected, strict=True):
        assert problem.startswith(beginning)
    for fault in told:
        assert fault.help
        assert fault.code == "application-empty" or fault.where.file.startswith("tests/compiler/")


def test_what_follows_an_operator_that_may_lose_items_may_lose_them_and_is_reported():
    dag = sketch("s>a a>b b>c a>x")
    dag.set_operator_attribute(dag.operator("a"), OperatorContext.PROCESSING_MODE, ProcessingMode.AT_MOST_ONCE)
    compilation = compiled(dag)
    graph = compilation.graph
    modes = {node.name: graph.value(node, OperatorContext.PROCESSING_MODE).value for node in graph.nodes}
    assert modes == {"s": "AT_LEAST_ONCE", **dict.fromkeys("abcx", "AT_MOST_ONCE")}
    assert sorted(note.problem for note in compilation.notes) == [
        f"{name} becomes AT_MOST_ONCE, because {feeder} feeds it and is AT_MOST_ONCE"
        for feeder, name in ("ab", "bc", "ax")
    ]


def test_a_rule_whose_pattern_fits_fewer_than_two_is_passed_over_and_reported():
    dag = sketch("O1>O2")
    dag.set_attribute(DagContext.AFFINITY_RULES_SET, AffinityRulesSet(affinity_rules=(FITS_ONE,)))
    assert [(note.code, note.severity.value) for note in compiled(dag).notes] == [("affinity-ignored", "warning")]


def test_attributes_that_mean_nothing_here_are_accepted_and_reported():
    dag = sketch("s>a")
    dag.set_attribute(DagContext.DEBUG, True)
    dag.set_operator_attribute(dag.operator("a"), OperatorContext.VCORES, 2)
    dag.set_input_port_attribute(dag.operator("a").one, PortContext.BUFFER_MEMORY_MB, 64)
    assert [(note.code, note.severity.value, note.problem) for note in compiled(dag).notes] == [
        ("attribute-advisory", "advisory", f"{name} is accepted, but has no effect here")
        for name in ("DEBUG of Dag", "VCORES of a", "BUFFER_MEMORY_MB of a.one")
    ]


class Meet(Operator):
    left = InputPort(int)
    right = InputPort(int)
    windows: int | None = 1

    def windows_joined(self) -> int | None:
        return self.windows

    @left.process
    @right.process
    def process(self, item: int) -> None: ...


APART = "meet brings together items of {}, and s1 and s2 may send them in other windows"


@cases(
    "right, windows, apart",
    ("one source", "a", 1, []),
    ("all windows", "d", None, []),
    ("two sources", "d", 1, [APART.format("one window")]),
    ("some windows", "d", 5, [APART.format("at most 5 windows")]),
)
def test_items_that_meet_in_a_window_and_may_arrive_in_others_are_reported(right, windows, apart):
    dag = sketch(f"s1>a a>b s2>d b>meet.left {right}.more>meet.right", meet=Meet(windows=windows))
    assert [note.problem for note in compiled(dag).notes if note.code == "windows-apart"] == apart
