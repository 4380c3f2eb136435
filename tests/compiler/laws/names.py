"""Names, of operators and of streams, which are judged while they are drawn."""

from tests.compiler.cast import Source, Step
from tests.compiler.laws.drawing import Laws
from tests.compiler.sketches import fed, followed

law = Laws()


@law.reports("operator-duplicated: two operators are called 'source of step'")
def a_name_of_two_operators(dag):
    fed(dag, "step")
    dag.add_operator("source of step", Source())


@law.reports("operator-reused: one Source is added as 'source' and as 'another'")
def an_operator_under_two_names(dag):
    dag.add_operator("another", followed(dag, dag.add_operator("source", Source())))


@law.reports("name-malformed: the operator name 'dotted.name' contains a dot")
def a_dot_in_a_name(dag):
    dag.add_operator("dotted.name", Source())


@law.reports("name-missing: a stream has no name")
def a_stream_without_a_name(dag):
    dag.add_stream("", dag.add_operator("source", Source()).out, dag.add_operator("step", Step()).one)


@law.reports("stream-duplicated: two streams are called 'into a'")
def a_name_of_two_streams(dag):
    step = fed(dag, "a")
    dag.add_stream("into a", fed(dag, "b").out, step.two)
