"""Attributes: what bears them, and what can be sent to workers."""

import threading

from dagkit import DagContext, OperatorContext, PortContext
from tests.compiler.cast import Deal, Parity
from tests.compiler.laws.drawing import Laws
from tests.compiler.sketches import sketch

law = Laws()


class _Locked(Parity):
    """A codec that holds what cannot be sent."""

    def __init__(self):
        self.lock = threading.Lock()


class _LockedDeal(Deal):
    def __init__(self):
        super().__init__(1)
        self.lock = threading.Lock()


class _Incomparable:
    """Compared with anything, it raises."""

    def __eq__(self, other):
        raise RuntimeError

    __hash__ = None


def _set(bearer, attribute, value, *expected):
    """Add the case that an attribute is set on the application, on `step` or on a port of it."""

    def draw(dag):
        step = sketch("s>step step>next" if "read" in bearer else "s>step", dag).operator("step")
        match bearer.split():
            case ["application"]:
                dag.set_attribute(attribute, value)
            case ["operator"]:
                dag.set_operator_attribute(step, attribute, value)
            case ["input", port]:
                dag.set_input_port_attribute(getattr(step, port), attribute, value)
            case ["output", *_]:
                dag.set_output_port_attribute(step.out, attribute, value)
            case ["unifier"]:
                dag.set_unifier_attribute(step.out, attribute, value)

    law.add(f"{attribute.qualified} of an {bearer}", draw, *expected)


_UNSENT = "attribute-unpicklable: {} cannot be sent"
_set("application", DagContext.STRING_CODECS, {int: _Locked().from_bytes}, _UNSENT.format("STRING_CODECS of Dag"))
_set("operator", OperatorContext.PARTITIONER, _LockedDeal(), _UNSENT.format("PARTITIONER of step"))
_set("input one", PortContext.STREAM_CODEC, _Locked(), _UNSENT.format("STREAM_CODEC of step.one"))
_set("output read", PortContext.STREAM_CODEC, _Locked(), _UNSENT.format("STREAM_CODEC of step.out"))
_OFTEN = "attribute-invalid: RECOVERY_ATTEMPTS of step is 'often': it must be a whole number"
_set("operator", OperatorContext.RECOVERY_ATTEMPTS, "often", _OFTEN)

_MODE = "attribute-invalid: PROCESSING_MODE of {} is"
_set("operator", OperatorContext.PROCESSING_MODE, _Incomparable(), _MODE.format("step"))
_set("application", OperatorContext.PROCESSING_MODE, _Incomparable(), _MODE.format("Dag"))

_OPEN = "attribute-stranded: {} is set on step.{}, which no stream uses"
_set("input two", PortContext.PARTITION_PARALLEL, True, _OPEN.format("PARTITION_PARALLEL", "two"))
_set("output", PortContext.UNIFIER_LIMIT, 2, _OPEN.format("UNIFIER_LIMIT", "out"))
_set("unifier", OperatorContext.TIMEOUT_WINDOW_COUNT, 2, _OPEN.format("TIMEOUT_WINDOW_COUNT", "out"))

_WRONG = "attribute-misplaced: {} is set on {}, but it belongs to {}"
_QUEUE, _WINDOW = PortContext.QUEUE_CAPACITY, DagContext.STREAMING_WINDOW_SIZE_MILLIS
_set("operator", _QUEUE, 2, _WRONG.format("PortContext.QUEUE_CAPACITY", "an operator", "a port"))
_set("operator", _WINDOW, 2, _WRONG.format("DAGContext.STREAMING_WINDOW_SIZE_MILLIS", "an operator", "the application"))
_set("input one", OperatorContext.STATELESS, True, _WRONG.format("OperatorContext.STATELESS", "a port", "an operator"))
_set("application", _QUEUE, 2, _WRONG.format("PortContext.QUEUE_CAPACITY", "the application", "a port"))
_set("application", OperatorContext.TIMEOUT_WINDOW_COUNT, 2)
