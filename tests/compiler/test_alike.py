"""A fault inside a module is reported once, with every place where the module is used."""

from pydantic import Field

from dagkit import Config, Dag, DagContext, InputPort, Module, OperatorContext, OutputPort, ProcessingMode
from dagkit.compiler import compile_application, compile_until
from dagkit.compiler.alike import merge_alike
from dagkit.errors import Diagnostic, Where
from dagkit.graph import Graph, Node
from tests.compiler.cast import Checked, Deal, Needy, Source, Split, Step, faults


class Hungry(Module):
    """Contains an operator without a stream into it."""

    output = OutputPort(int)

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        dag.expose(self.output, dag.add_operator("needy", Needy()).output)


class Nest(Module):
    """Holds two of them, under names of their own."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        for name in ("left", "right"):
            hungry, step = dag.add_module(name, Hungry()), dag.add_operator(f"after {name}", Step())
            dag.add_stream(f"on {name}", hungry.output, step.one)


class Counting(Module):
    """Holds one whose property is the module's own."""

    count: int = Field(default=2)

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        dag.add_operator("checked", Checked(count=self.count))


class Mismatched(Module):
    """Leads one stream into two modules, of which neither takes what flows."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        a, b = dag.add_module("a", Splitting()), dag.add_module("b", Splitting())
        dag.add_stream("numbers", dag.add_operator("source", Source()).out, a.input, b.input)


class Splitting(Module):
    """Takes lines."""

    input = InputPort(object)

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        dag.expose(self.input, dag.add_operator("split", Split()).lines)


class Losing(Module):
    """Lets items get lost."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        source, step = dag.add_operator("source", Source()), dag.add_operator("step", Step())
        dag.add_stream("on", source.out, step.one)
        dag.set_operator_attribute(source, OperatorContext.PROCESSING_MODE, ProcessingMode.AT_MOST_ONCE)


class Overbearing(Module):
    """Sets what belongs to the application."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        dag.add_operator("source", Source())
        dag.set_attribute(DagContext.STREAMING_WINDOW_SIZE_MILLIS, 2)


class Dealt(Module):
    """Has no partitions."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        source, step = dag.add_operator("source", Source()), dag.add_operator("step", Step())
        dag.add_stream("on", source.out, step.one)
        dag.set_operator_attribute(step, OperatorContext.PARTITIONER, Deal(0))


def _used(*modules: Module) -> Dag:
    dag = Dag()
    for number, module in enumerate(modules):
        dag.add_module("ABCDEFGHIJ"[number], module)
    return dag


def _problems(dag: Dag) -> list[str]:
    return [fault.problem for fault in faults(dag)]


def test_a_breach_inside_a_module_that_is_used_twice_is_reported_once_with_both_places():
    dag = _used(Hungry(), Hungry())
    for name in "AB":
        dag.add_stream(f"out of {name}", dag.operator(name).output, dag.add_operator(f"after {name}", Step()).one)
    (fault,) = faults(dag)
    assert (fault.code, fault.problem) == ("input-unconnected", "no stream feeds A$needy.input; likewise in B")
    assert fault.where is not None
    assert fault.where.file == "tests/compiler/test_alike.py"


def test_modules_in_modules_are_reported_by_their_full_names():
    assert _problems(_used(Nest(), Nest())) == [
        "no stream feeds A$left$needy.input; likewise in A$right, B$left and B$right"
    ]


def test_of_very_many_some_are_named_and_the_rest_is_counted():
    assert _problems(_used(*(Nest() for _ in range(5)))) == [
        "no stream feeds A$left$needy.input; likewise in A$right, B$left, B$right, C$left, C$right and 4 more"
    ]


def test_what_is_wrong_in_one_use_alone_names_that_one():
    (problem,) = _problems(_used(Counting(count=1), Counting(count=2)))
    assert problem == "A$checked.count cannot be 1: input should be greater than or equal to 2"


def test_faults_that_differ_in_more_than_the_module_stay_two():
    assert [problem[:27] for problem in _problems(_used(Counting(count=1), Counting(count=0)))] == [
        "A$checked.count cannot be 1",
        "B$checked.count cannot be 0",
    ]


def test_what_one_module_says_of_two_others_stays_two_faults():
    told = [problem.partition(" (")[0] for problem in _problems(_used(Mismatched(), Mismatched()))]
    assert told == ["stream 'A$numbers' joins A$source.out", "stream 'A$numbers' joins A$source.out"]
    assert all(problem.endswith("; likewise in B") for problem in _problems(_used(Mismatched(), Mismatched())))


def test_a_fault_of_a_module_before_the_laws_is_reported_once_too():
    notes = compile_until("resolved", _used(Losing(), Losing())).notes
    assert [note.problem for note in notes] == [
        "A$step becomes AT_MOST_ONCE, because A$source feeds it and is AT_MOST_ONCE; likewise in B"
    ]


def test_a_mistake_in_drawing_a_module_is_reported_once_too():
    dag = Dag()
    for name in ("A", "B"):
        dag.add_module(name, Overbearing())
    assert _problems(dag) == [
        "DAGContext.STREAMING_WINDOW_SIZE_MILLIS is set in module A, but it belongs to the application; likewise in B"
    ]


def test_a_fault_of_partitions_is_reported_once_too():
    assert _problems(_used(Dealt(), Dealt())) == ["the Deal of A$step returned no partitions; likewise in B"]


def test_operators_of_the_application_are_reported_one_by_one():
    dag = Dag()
    for name in ("a", "b"):
        dag.add_stream(name, dag.add_operator(name, Needy()).output, dag.add_operator(f"after {name}", Step()).one)
    assert _problems(dag) == ["no stream feeds a.input", "no stream feeds b.input"]


def test_names_that_end_alike_are_distinguished():
    where = Where("app.py", 1)
    graph = Graph("app", tuple(Node(f"{module}$x", Step(), where) for module in ("A", "BA", "A$C")))
    told = [Diagnostic("input-unconnected", f"no stream feeds {m}$x.one", "", where) for m in ("A", "BA", "A$C")]
    assert [once.problem for once in merge_alike(told, graph)] == ["no stream feeds A$x.one; likewise in BA and A$C"]


def test_for_a_valid_application_nothing_is_reported():
    assert compile_application(_used(Counting(), Counting())).notes == ()
