"""Streams and ports: what is connected, once, and to what was meant."""

from dagkit import OperatorContext, PortContext
from tests.compiler.cast import Lines, Needy, New, Old, Source, Step, Typed
from tests.compiler.laws.drawing import Laws
from tests.compiler.sketches import fed, followed, steps

law = Laws()


@law.reports("stream-unfed: stream 'dry' has no source")
def a_stream_without_a_source(dag):
    dag.add_stream("dry", None, fed(dag, "step").two)


@law.reports("stream-unfed: stream 'dry' has no source")
def a_stream_without_a_source_is_all_that_feeds_others(dag):
    (step,) = steps(dag, ["step"])
    dag.add_stream("dry", None, step.one)
    followed(dag, step)


@law.reports("operator-unknown: stream 'into' is connected to Step.one, whose operator was never added to the Dag")
def an_operator_that_was_never_added(dag):
    stranger, needy = Step(), dag.add_operator("needy", Needy())
    dag.add_stream("into", dag.add_operator("source", Source()).out, stranger.one)
    dag.add_stream("on", stranger.out, needy.input)
    followed(dag, needy, "output")
    dag.set_operator_attribute(stranger, OperatorContext.STATELESS, True)


@law.reports("stream-unread: stream 'lost' has no sink")
def a_stream_without_a_sink(dag):
    dag.add_stream("lost", fed(dag, "step").out)


@law.reports("port-taken: stream 'one' already has the source a.out; b.out is a second one")
def a_stream_with_two_sources(dag):
    a, b = dag.add_operator("a", Source()), dag.add_operator("b", Source())
    dag.add_stream("one", a.out, steps(dag, ["step"])[0].one).set_source(b.out)


@law.reports("port-taken: source.out is already on stream 'one'")
def an_output_on_two_streams(dag):
    source, (step,) = dag.add_operator("source", Source()), steps(dag, ["step"])
    dag.add_stream("one", source.out, step.one)
    dag.add_stream("two", source.out, step.two)


@law.reports("port-taken: step.one is already on stream 'into step'")
def an_input_on_two_streams(dag):
    dag.add_stream("two", dag.add_operator("another", Source()).out, fed(dag, "step").one)


@law.compiles
def an_output_into_two_inputs_of_one_operator(dag):
    (step,) = steps(dag, ["step"])
    dag.add_stream("both", dag.add_operator("source", Source()).out, step.one, step.two)


@law.reports("port-type-mismatch: stream 'in' joins lines.lines (Line) to step.two (int)")
def an_output_into_an_input_of_another_type(dag):
    dag.add_stream("in", dag.add_operator("lines", Lines()).lines, fed(dag, "step").two)


@law.reports("port-hidden: stream 'hidden' is connected to Old.input, which New hides with a port of its own")
def a_hidden_input_is_connected(dag):
    new = dag.add_operator("new", New())
    dag.add_stream("hidden", dag.add_operator("source", Source()).out, super(New, new).input)


@law.reports("port-hidden: stream 'hidden' is connected to Old.output, which New hides with a port of its own")
def a_hidden_output_is_connected(dag):
    dag.add_stream("hidden", super(New, fed(dag, "new", New())).output, steps(dag, ["step"])[0].one)


@law.compiles
def ports_that_are_declared_again_are_connected(dag):
    followed(dag, fed(dag, "new", New()), "output")


@law.compiles
def a_base_class_with_its_own_ports(dag):
    fed(dag, "old", Old())


@law.reports("input-unconnected: no stream feeds needy.input")
def a_required_input_is_open(dag):
    followed(dag, dag.add_operator("needy", Needy()), "output")


@law.compiles
def optional_inputs_are_open(dag):
    dag.add_stream("into", dag.add_operator("source", Source()).out, steps(dag, ["step"])[0].three)


@law.reports("output-unconnected: no stream reads needy.output, which must be connected")
def a_required_output_is_open(dag):
    fed(dag, "needy", Needy())


@law.compiles
def both_required_ports_are_connected(dag):
    followed(dag, fed(dag, "needy", Needy()), "output")


@law.reports(
    "port-schema-missing: typed.input needs to know the class of its items, and TUPLE_CLASS is not set",
    "port-schema-missing: typed.output needs to know the class of its items, and TUPLE_CLASS is not set",
)
def ports_that_need_a_schema_have_none(dag):
    followed(dag, fed(dag, "typed", Typed()), "output")


@law.compiles
def a_port_that_needs_a_schema_has_one_and_the_other_is_open(dag):
    dag.set_input_port_attribute(fed(dag, "typed", Typed()).input, PortContext.TUPLE_CLASS, int)
