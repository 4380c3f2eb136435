"""A fault inside a module is reported once, with every place where the module is used."""

from pydantic import Field

from dagkit import Dag, DagContext, Module, OperatorContext, ProcessingMode
from dagkit.compiler import compile_application, compile_until
from dagkit.compiler.alike import merge_alike
from dagkit.errors import Diagnostic, Where
from dagkit.graph import Graph, Node
from tests.compiler.cast import Checked, Deal, Needy, Source, Split, Step, faults, problems
from tests.compiler.sketches import module, sketch


@module("output")
def hungry(self, dag):
    """Contains an operator without a stream into it."""
    dag.expose(self.output, dag.add_operator("needy", Needy()).output)


@module()
def nest(self, dag):
    """Holds two of them, under names of their own."""
    for name in ("left", "right"):
        step = dag.add_operator(f"after {name}", Step())
        dag.add_stream(f"on {name}", dag.add_module(name, hungry()).output, step.one)


class Counting(Module):
    """Holds one whose property is the module's own."""

    count: int = Field(default=2)

    def populate_dag(self, dag, conf):
        dag.add_operator("checked", Checked(count=self.count))


@module("input")
def splitting(self, dag):
    """Takes lines."""
    dag.expose(self.input, dag.add_operator("split", Split()).lines)


@module()
def mismatched(self, dag):
    """Leads one stream into two modules, of which neither takes what flows."""
    a, b = dag.add_module("a", splitting()), dag.add_module("b", splitting())
    dag.add_stream("numbers", dag.add_operator("source", Source()).out, a.input, b.input)


@module()
def losing(self, dag):
    source = sketch("source>step", dag).operator("source")
    dag.set_operator_attribute(source, OperatorContext.PROCESSING_MODE, ProcessingMode.AT_MOST_ONCE)


@module()
def overbearing(self, dag):
    """Sets what belongs to the application."""
    dag.add_operator("source", Source())
    dag.set_attribute(DagContext.STREAMING_WINDOW_SIZE_MILLIS, 2)


@module()
def dealt(self, dag):
    """Has no partitions."""
    step = sketch("s>step", dag).operator("step")
    dag.set_operator_attribute(step, OperatorContext.PARTITIONER, Deal(0))


def _used(*modules):
    dag = Dag()
    for name, held in zip("ABCDEFGHIJ", modules, strict=False):
        dag.add_module(name, held)
    return dag


def test_a_breach_inside_a_module_that_is_used_twice_is_reported_once_with_both_places():
    dag = _used(hungry(), hungry())
    for name in "AB":
        dag.add_stream(f"out of {name}", dag.operator(name).output, dag.add_operator(f"after {name}", Step()).one)
    (fault,) = faults(dag)
    assert (fault.code, fault.problem) == ("input-unconnected", "no stream feeds A$needy.input; likewise in B")
    assert fault.where.file == "tests/compiler/test_alike.py"


def test_modules_in_modules_are_reported_by_their_full_names_some_of_very_many_and_the_rest_is_counted():
    told = "no stream feeds A$left$needy.input; likewise in A$right, B$left"
    assert problems(_used(nest(), nest())) == [f"{told} and B$right"]
    assert problems(_used(*(nest() for _ in range(5)))) == [f"{told}, B$right, C$left, C$right and 4 more"]


def test_faults_that_differ_in_more_than_the_module_stay_apart_and_so_do_those_of_the_application_itself():
    wrong = "{} cannot be {}: input should be greater than or equal to {}"
    assert compile_application(_used(Counting(), Counting())).notes == ()
    assert problems(_used(Counting(count=1), Counting(count=2))) == [wrong.format("A$checked.count", 1, 2)]
    assert problems(_used(Counting(count=1), Counting(count=0))) == [
        wrong.format("A$checked.count", 1, 2),
        wrong.format("B$checked.count", 0, 2),
    ]
    dag = sketch("a>after_a b>after_b", a=Needy, b=Needy)
    assert problems(dag) == ["no stream feeds a.input", "no stream feeds b.input"]


def test_what_one_module_says_of_two_others_stays_two_faults():
    told = problems(_used(mismatched(), mismatched()))
    assert [problem.partition(" (")[0] for problem in told] == ["stream 'A$numbers' joins A$source.out"] * 2
    assert all(problem.endswith("; likewise in B") for problem in told)


def test_faults_before_the_laws_in_drawing_and_of_partitions_are_reported_once_too():
    notes = compile_until("resolved", _used(losing(), losing())).notes
    assert [note.problem for note in notes] == [
        "A$step becomes AT_MOST_ONCE, because A$source feeds it and is AT_MOST_ONCE; likewise in B"
    ]
    assert problems(_used(overbearing(), overbearing())) == [
        "DAGContext.STREAMING_WINDOW_SIZE_MILLIS is set in module A, but it belongs to the application; likewise in B"
    ]
    assert problems(_used(dealt(), dealt())) == ["the Deal of A$step returned no partitions; likewise in B"]


def test_names_that_end_alike_are_distinguished():
    where, names = Where("app.py", 1), ("A$x", "BA$x", "A$C$x")
    graph = Graph("app", tuple(Node(name, Step(), where) for name in names))
    told = [Diagnostic("input-unconnected", f"no stream feeds {name}.one", "", where) for name in names]
    assert [once.problem for once in merge_alike(told, graph)] == ["no stream feeds A$x.one; likewise in BA and A$C"]
