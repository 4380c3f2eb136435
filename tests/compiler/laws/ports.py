"""Streams and ports: what is connected, once, and to what was meant."""

from dagkit import Dag, OperatorContext, PortContext
from tests.compiler.cast import Needy, New, Old, Source, Step, Typed
from tests.compiler.laws.drawing import Broken, Draw, fed


def a_stream_without_a_source(dag: Dag) -> None:
    step = fed(dag, "step", Step(), "one")
    dag.add_stream("dry", None, step.two)


def a_stream_without_a_source_is_all_that_feeds_others(dag: Dag) -> None:
    step = dag.add_operator("step", Step())
    dag.add_stream("dry", None, step.one)
    dag.add_stream("on", step.out, dag.add_operator("next", Step()).one)


def an_operator_that_was_never_added(dag: Dag) -> None:
    stranger = Step()
    dag.add_stream("into", dag.add_operator("source", Source()).out, stranger.one)
    dag.add_stream("on", stranger.out, dag.add_operator("next", Needy()).input)
    dag.add_stream("out", dag.operator("next").output, dag.add_operator("last", Step()).one)
    dag.set_operator_attribute(stranger, OperatorContext.STATELESS, True)


def a_stream_without_a_sink(dag: Dag) -> None:
    step = fed(dag, "step", Step(), "one")
    dag.add_stream("lost", step.out)


def a_stream_with_two_sources(dag: Dag) -> None:
    a, b, step = dag.add_operator("a", Source()), dag.add_operator("b", Source()), dag.add_operator("step", Step())
    dag.add_stream("one", a.out, step.one).set_source(b.out)


def an_output_on_two_streams(dag: Dag) -> None:
    source, step = dag.add_operator("source", Source()), dag.add_operator("step", Step())
    dag.add_stream("one", source.out, step.one)
    dag.add_stream("two", source.out, step.two)


def an_input_on_two_streams(dag: Dag) -> None:
    a, b, step = dag.add_operator("a", Source()), dag.add_operator("b", Source()), dag.add_operator("step", Step())
    dag.add_stream("one", a.out, step.one)
    dag.add_stream("two", b.out, step.one)


def an_output_into_two_inputs_of_one_operator(dag: Dag) -> None:
    step = dag.add_operator("step", Step())
    dag.add_stream("both", dag.add_operator("source", Source()).out, step.one, step.two)


def a_hidden_input_is_connected(dag: Dag) -> None:
    new, source = dag.add_operator("new", New()), dag.add_operator("source", Source())
    dag.add_stream("hidden", source.out, super(New, new).input)


def a_hidden_output_is_connected(dag: Dag) -> None:
    new = fed(dag, "new", New())
    dag.add_stream("hidden", super(New, new).output, dag.add_operator("step", Step()).one)


def ports_declared_anew_are_connected(dag: Dag) -> None:
    new = fed(dag, "new", New())
    dag.add_stream("seen", new.output, dag.add_operator("step", Step()).one)


def a_base_class_with_its_own_ports(dag: Dag) -> None:
    fed(dag, "old", Old())


def a_required_input_is_open(dag: Dag) -> None:
    needy = dag.add_operator("needy", Needy())
    dag.add_stream("out", needy.output, dag.add_operator("step", Step()).one)


def optional_inputs_are_open(dag: Dag) -> None:
    fed(dag, "step", Step(), "three")


def a_required_output_is_open(dag: Dag) -> None:
    fed(dag, "needy", Needy())


def both_required_ports_are_connected(dag: Dag) -> None:
    needy = fed(dag, "needy", Needy())
    dag.add_stream("out", needy.output, dag.add_operator("step", Step()).one)


def ports_that_need_a_schema_have_none(dag: Dag) -> None:
    typed = fed(dag, "typed", Typed())
    dag.add_stream("out", typed.output, dag.add_operator("step", Step()).one)


def a_port_that_needs_a_schema_has_one_and_the_other_is_open(dag: Dag) -> None:
    typed = fed(dag, "typed", Typed())
    dag.set_input_port_attribute(typed.input, PortContext.TUPLE_CLASS, int)


BROKEN: Broken = [
    (a_stream_without_a_source, ["stream-unfed: stream 'dry' has no source"]),
    (a_stream_without_a_source_is_all_that_feeds_others, ["stream-unfed: stream 'dry' has no source"]),
    (
        an_operator_that_was_never_added,
        ["operator-unknown: stream 'into' is connected to Step.one, whose operator was never added to the Dag"],
    ),
    (a_stream_without_a_sink, ["stream-unread: stream 'lost' has no sink"]),
    (a_stream_with_two_sources, ["port-taken: stream 'one' already has the source a.out; b.out is a second one"]),
    (an_output_on_two_streams, ["port-taken: source.out is already on stream 'one'"]),
    (an_input_on_two_streams, ["port-taken: step.one is already on stream 'one'"]),
    (
        a_hidden_input_is_connected,
        ["port-hidden: stream 'hidden' is connected to Old.input, which New hides with a port of its own"],
    ),
    (
        a_hidden_output_is_connected,
        ["port-hidden: stream 'hidden' is connected to Old.output, which New hides with a port of its own"],
    ),
    (a_required_input_is_open, ["input-unconnected: no stream feeds needy.input"]),
    (a_required_output_is_open, ["output-unconnected: no stream reads needy.output, which must be connected"]),
    (
        ports_that_need_a_schema_have_none,
        [
            "port-schema-missing: typed.input needs to know the class of its items, and TUPLE_CLASS is not set",
            "port-schema-missing: typed.output needs to know the class of its items, and TUPLE_CLASS is not set",
        ],
    ),
]

VALID: list[Draw] = [
    an_output_into_two_inputs_of_one_operator,
    ports_declared_anew_are_connected,
    a_base_class_with_its_own_ports,
    optional_inputs_are_open,
    both_required_ports_are_connected,
    a_port_that_needs_a_schema_has_one_and_the_other_is_open,
]
