"""Streams and ports: what is connected, once, and to what was meant."""

from dagkit import OperatorContext, PortContext
from tests.compiler.cast import Lines, Needy, New, Old, Source, Step, Typed
from tests.compiler.laws.drawing import Laws
from tests.compiler.sketches import sketch

law = Laws()


_DRY = "stream-unfed: stream 'dry' has no source"


@law.reports(_DRY)
def a_stream_without_a_source(dag):
    dag.add_stream("dry", None, sketch("s>step", dag).operator("step").two)


@law.reports(_DRY)
def a_stream_without_a_source_is_all_that_feeds_others(dag):
    dag.add_stream("dry", None, sketch("step>next", dag, step=Step).operator("step").one)


@law.reports("operator-unknown: stream 'into' is connected to Step.one, whose operator was never added to the Dag")
def an_operator_that_was_never_added(dag):
    stranger, needy = Step(), sketch("needy>next", dag, needy=Needy).operator("needy")
    dag.add_stream("into", dag.add_operator("source", Source()).out, stranger.one)
    dag.add_stream("on", stranger.out, needy.input)
    dag.set_operator_attribute(stranger, OperatorContext.STATELESS, True)


@law.reports("stream-unread: stream 'lost' has no sink")
def a_stream_without_a_sink(dag):
    dag.add_stream("lost", sketch("s>step", dag).operator("step").out)


@law.reports("port-taken: stream 'a' already has the source a.out; b.out is a second one")
def a_stream_with_two_sources(dag):
    sketch("b a>step", dag).stream("a").set_source(dag.operator("b").out)


@law.reports("port-taken: s.out is already on stream 's'")
def an_output_on_two_streams(dag):
    dag.add_stream("two", sketch("s>step", dag).operator("s").out, dag.operator("step").two)


law.sketched("an input on two streams", "s>step t>step.one", "port-taken: step.one is already on stream 's'")
law.sketched("an output into two inputs of one operator", "s>step s>step")
law.sketched(
    "another type",
    "s>step lines>step.two",
    "port-type-mismatch: stream 'lines' joins lines.lines (Line) to step.two (int)",
    lines=Lines,
)
_HIDDEN = "port-hidden: stream 'hidden' is connected to Old.{}, which New hides with a port of its own"


@law.reports(_HIDDEN.format("input"))
def a_hidden_input_is_connected(dag):
    new = dag.add_operator("new", New())
    dag.add_stream("hidden", dag.add_operator("source", Source()).out, super(New, new).input)


@law.reports(_HIDDEN.format("output"))
def a_hidden_output_is_connected(dag):
    new = sketch("s>new", dag, new=New).operator("new")
    dag.add_stream("hidden", super(New, new).output, dag.add_operator("step", Step()).one)


law.sketched("ports that are declared again are connected", "s>new new>next", new=New)
law.sketched("a base class with its own ports", "s>old", old=Old)
law.sketched("a required input is open", "a>next", "input-unconnected: no stream feeds a.input", a=Needy)
law.sketched("optional inputs are open", "s>step.three")
_UNREAD = "output-unconnected: no stream reads needy.output, which must be connected"
law.sketched("a required output is open", "s>needy", _UNREAD, needy=Needy)
law.sketched("both required ports are connected", "s>needy needy>next", needy=Needy)
_UNTYPED = "port-schema-missing: a.{} needs to know the class of its items, and TUPLE_CLASS is not set"
law.sketched("no schema", "s>a a>next", _UNTYPED.format("input"), _UNTYPED.format("output"), a=Typed)


@law.compiles
def a_port_that_needs_a_schema_has_one_and_the_other_is_open(dag):
    typed = sketch("s>typed", dag, typed=Typed).operator("typed")
    dag.set_input_port_attribute(typed.input, PortContext.TUPLE_CLASS, int)
