"""Attributes: each takes values of its own type."""

from dagkit import (
    Dag,
    DagContext,
    InputOperator,
    InputPort,
    Locality,
    Operator,
    OperatorContext,
    OutputPort,
    PortContext,
    ProcessingMode,
    StatelessPartitioner,
)


class Source(InputOperator):
    out = OutputPort(int)


class Sink(Operator):
    into = InputPort(int)


dag = Dag()
source, sink = dag.add_operator("source", Source()), dag.add_operator("sink", Sink())

dag.set_attribute(DagContext.STREAMING_WINDOW_SIZE_MILLIS, 100)
dag.set_attribute(DagContext.STREAMING_WINDOW_SIZE_MILLIS, "x")  # error: misc or arg-type
dag.set_attribute(DagContext.APPLICATION_ID, None)
dag.set_attribute(DagContext.APPLICATION_ID, "id")
dag.set_attribute(DagContext.APPLICATION_ID, 3)  # error: misc or arg-type
dag.set_attribute(DagContext.DEBUG, True)
dag.set_attribute(DagContext.DEBUG, "yes")  # error: misc or arg-type
dag.set_attribute("DEBUG", True)  # error: arg-type

dag.set_operator_attribute(sink, OperatorContext.PARTITIONER, StatelessPartitioner(3))
dag.set_operator_attribute(sink, OperatorContext.PROCESSING_MODE, ProcessingMode.AT_MOST_ONCE)
dag.set_operator_attribute(sink, OperatorContext.PROCESSING_MODE, "AT_MOST_ONCE")  # error: misc or arg-type
dag.set_operator_attribute(sink, OperatorContext.SLIDE_BY_WINDOW_COUNT, None)
dag.set_operator_attribute(sink, OperatorContext.APPLICATION_WINDOW_COUNT, None)  # error: misc or arg-type
dag.set_operator_attribute("sink", OperatorContext.STATELESS, True)  # error: arg-type
dag.set_operator_attribute(sink, OperatorContext.STATLESS, True)  # error: attr-defined

dag.set_input_port_attribute(sink.into, PortContext.PARTITION_PARALLEL, True)
dag.set_input_port_attribute(sink.into, PortContext.PARTITION_PARALLEL, 3)  # error: misc or arg-type
dag.set_input_port_attribute(source.out, PortContext.PARTITION_PARALLEL, True)  # error: arg-type
dag.set_output_port_attribute(source.out, PortContext.UNIFIER_LIMIT, 2)
dag.set_output_port_attribute(sink.into, PortContext.UNIFIER_LIMIT, 2)  # error: arg-type
dag.set_unifier_attribute(source.out, OperatorContext.TIMEOUT_WINDOW_COUNT, 2)
dag.set_unifier_attribute(source.out, OperatorContext.TIMEOUT_WINDOW_COUNT, "x")  # error: misc or arg-type

dag.add_stream("near", source.out, sink.into).set_locality(Locality.NODE_LOCAL)
