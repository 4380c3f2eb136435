"""Names, of operators and of streams, which are judged while they are drawn."""

from tests.compiler.cast import Source
from tests.compiler.laws.drawing import Laws
from tests.compiler.sketches import sketch

law = Laws()
_FIRST = "are called 's'; the first is at tests/compiler/"
law.add("a name twice", lambda dag: sketch("s", sketch("s", dag)), f"operator-duplicated: two operators {_FIRST}")


@law.reports("operator-reused: one Source is added as 'source' and as 'another'")
def an_operator_under_two_names(dag):
    dag.add_operator("another", sketch("source", dag).operator("source"))


@law.reports("name-malformed: the operator name 'dotted.name' contains a dot")
def a_dot_in_a_name(dag):
    dag.add_operator("dotted.name", Source())


@law.reports("name-missing: a stream has no name")
def a_stream_without_a_name(dag):
    dag.add_stream("", dag.add_operator("source", Source()).out, sketch("s>step", dag).operator("step").two)


@law.reports(f"stream-duplicated: two streams {_FIRST}")
def a_name_of_two_streams(dag):
    sketch("t s>a", dag)
    dag.add_stream("s", dag.operator("t").out, dag.operator("a").two)
