"""Attributes: who bears them, and what can be sent to workers."""

import threading

from dagkit import Dag, DagContext, OperatorContext, PortContext
from tests.compiler.cast import Deal, Parity, Step
from tests.compiler.laws.drawing import Broken, Draw, fed


class _Locked(Parity):
    """A codec that holds what cannot be sent."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


class _LockedDeal(Deal):
    def __init__(self) -> None:
        super().__init__(1)
        self.lock = threading.Lock()


def an_application_attribute_cannot_be_pickled(dag: Dag) -> None:
    fed(dag, "step", Step(), "one")
    dag.set_attribute(DagContext.STRING_CODECS, {int: _Locked().from_bytes})


def an_operator_attribute_cannot_be_pickled(dag: Dag) -> None:
    step = fed(dag, "step", Step(), "one")
    dag.set_operator_attribute(step, OperatorContext.PARTITIONER, _LockedDeal())


def an_input_port_attribute_cannot_be_pickled(dag: Dag) -> None:
    step = fed(dag, "step", Step(), "one")
    dag.set_input_port_attribute(step.one, PortContext.STREAM_CODEC, _Locked())


def an_output_port_attribute_cannot_be_pickled(dag: Dag) -> None:
    step = fed(dag, "step", Step(), "one")
    dag.set_output_port_attribute(step.out, PortContext.STREAM_CODEC, _Locked())
    dag.add_stream("out", step.out, dag.add_operator("next", Step()).one)


def an_attribute_of_an_open_input(dag: Dag) -> None:
    step = fed(dag, "step", Step(), "one")
    dag.set_input_port_attribute(step.two, PortContext.PARTITION_PARALLEL, True)


def an_attribute_of_an_open_output(dag: Dag) -> None:
    step = fed(dag, "step", Step(), "one")
    dag.set_output_port_attribute(step.out, PortContext.UNIFIER_LIMIT, 2)


def a_unifier_attribute_of_an_open_output(dag: Dag) -> None:
    step = fed(dag, "step", Step(), "one")
    dag.set_unifier_attribute(step.out, OperatorContext.TIMEOUT_WINDOW_COUNT, 2)


def a_port_attribute_on_an_operator(dag: Dag) -> None:
    step = fed(dag, "step", Step(), "one")
    dag.set_operator_attribute(step, PortContext.QUEUE_CAPACITY, 2)


def an_application_attribute_on_an_operator(dag: Dag) -> None:
    step = fed(dag, "step", Step(), "one")
    dag.set_operator_attribute(step, DagContext.STREAMING_WINDOW_SIZE_MILLIS, 2)


def an_operator_attribute_on_a_port(dag: Dag) -> None:
    step = fed(dag, "step", Step(), "one")
    dag.set_input_port_attribute(step.one, OperatorContext.STATELESS, True)


def a_port_attribute_on_the_application(dag: Dag) -> None:
    fed(dag, "step", Step(), "one")
    dag.set_attribute(PortContext.QUEUE_CAPACITY, 2)


def an_operator_attribute_on_the_application_is_the_default_of_all(dag: Dag) -> None:
    fed(dag, "step", Step(), "one")
    dag.set_attribute(OperatorContext.TIMEOUT_WINDOW_COUNT, 2)


BROKEN: Broken = [
    (an_application_attribute_cannot_be_pickled, ["attribute-unpicklable: STRING_CODECS of Dag cannot be sent"]),
    (an_operator_attribute_cannot_be_pickled, ["attribute-unpicklable: PARTITIONER of step cannot be sent"]),
    (an_input_port_attribute_cannot_be_pickled, ["attribute-unpicklable: STREAM_CODEC of step.one cannot be sent"]),
    (an_output_port_attribute_cannot_be_pickled, ["attribute-unpicklable: STREAM_CODEC of step.out cannot be sent"]),
    (
        an_attribute_of_an_open_input,
        ["attribute-stranded: PARTITION_PARALLEL is set on step.two, which no stream uses"],
    ),
    (an_attribute_of_an_open_output, ["attribute-stranded: UNIFIER_LIMIT is set on step.out, which no stream uses"]),
    (
        a_unifier_attribute_of_an_open_output,
        ["attribute-stranded: TIMEOUT_WINDOW_COUNT is set on step.out, which no stream uses"],
    ),
    (
        a_port_attribute_on_an_operator,
        ["attribute-misplaced: PortContext.QUEUE_CAPACITY is set on an operator, but it belongs to a port"],
    ),
    (
        an_application_attribute_on_an_operator,
        [
            (
                "attribute-misplaced: DAGContext.STREAMING_WINDOW_SIZE_MILLIS is set on an operator, "
                "but it belongs to the application"
            )
        ],
    ),
    (
        an_operator_attribute_on_a_port,
        ["attribute-misplaced: OperatorContext.STATELESS is set on a port, but it belongs to an operator"],
    ),
    (
        a_port_attribute_on_the_application,
        ["attribute-misplaced: PortContext.QUEUE_CAPACITY is set on the application, but it belongs to a port"],
    ),
]

VALID: list[Draw] = [an_operator_attribute_on_the_application_is_the_default_of_all]
