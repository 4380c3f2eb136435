"""Graphs by the hundred: blueprints that compile, the Dags they draw in any order, and what breaks them.

A blueprint is plain data, so that one graph can be drawn in many orders. Operators are made in an order in which each
is fed by earlier ones; delays alone lead back.
"""

from typing import Any, Generic, NamedTuple, TypeVar

from hypothesis import strategies as st

from dagkit import Dag, DelayOperator, InputOperator, InputPort, Module, Operator, OutputPort, StatelessPartitioner
from dagkit.api.attributes import DagContext, OperatorContext, PortContext, ProcessingMode
from tests.compiler.cast import Animal, Dog, Parity
from tests.compiler.laws.of_attributes import law

T = TypeVar("T")


class Numbers(InputOperator):
    first: int = 0
    out = OutputPort(int)
    more = OutputPort(int)


class Dogs(InputOperator):
    out = OutputPort(Dog)
    more = OutputPort(list[Dog])


class Add(Operator):
    addend: int = 1
    one = InputPort(int, optional=True)
    two = InputPort(float, optional=True)
    three = InputPort(int | str, optional=True)
    back = InputPort(int, optional=True)
    out = OutputPort(int)
    more = OutputPort(int)

    @one.process
    @two.process
    @three.process
    @back.process
    def process(self, item: object) -> None: ...


class Walk(Operator):
    one = InputPort(Animal, optional=True)
    two = InputPort(object, optional=True)
    out = OutputPort(Dog)
    more = OutputPort(Dog)

    @one.process
    @two.process
    def process(self, item: object) -> None: ...


class Carry(Operator, Generic[T]):
    """Whatever comes in goes out."""

    one = InputPort[T](optional=True)
    out = OutputPort[T]()
    more = OutputPort[T]()

    def process(self, item: T) -> None: ...


class Later(DelayOperator[T], Generic[T]):
    """Whatever comes in goes out in the next window."""

    kind = "test.later/1"


class Relay(Module):
    """Numbers through a step, and through as many modules of this kind as it is deep."""

    depth: int = 0
    one = InputPort(int)
    out = OutputPort(int)

    def populate_dag(self, dag, conf):
        step = dag.add_operator("step", Add(addend=self.depth))
        dag.expose(self.one, step.one)
        last = step.out
        if self.depth:
            inner = dag.add_module("inner", Relay(depth=self.depth - 1))
            dag.add_stream("on", step.out, inner.one)
            last = inner.out
        dag.expose(self.out, last)


class Kind(NamedTuple):
    make: Any
    sends: Any
    inputs: Any
    outputs: Any = ("out", "more")


NUMBER, DOG = "number", "dog"

KINDS = {
    "numbers": Kind(Numbers, NUMBER, {}),
    "dogs": Kind(Dogs, DOG, {}, ("out",)),
    "add": Kind(Add, NUMBER, {"one": [NUMBER], "two": [NUMBER], "three": [NUMBER]}),
    "walk": Kind(Walk, DOG, {"one": [DOG], "two": [NUMBER, DOG]}),
    "carry": Kind(Carry, ..., {"one": [NUMBER, DOG]}),
    "relay": Kind(Relay, NUMBER, {"one": [NUMBER]}, ("out",)),
    "later": Kind(Later, ..., {}, ()),
}
ROOTS, INNER = ("numbers", "dogs"), ("add", "walk", "carry", "relay")


class Placed(NamedTuple):
    name: str
    kind: str
    properties: Any = ()


class Drawn(NamedTuple):
    source: Any
    sinks: Any
    locality: Any = None


class Set(NamedTuple):
    attribute: Any
    value: Any
    operator: Any = None
    inlet: Any = None
    outlet: Any = None


class Blueprint(NamedTuple):
    operators: Any
    streams: Any
    settings: Any


def draw(blueprint):
    """The Dag of a blueprint, in the order in which the blueprint stands."""
    dag = Dag()
    for placed in blueprint.operators:
        dag.add_operator(placed.name, KINDS[placed.kind].make(**dict(placed.properties)))
    for drawn in blueprint.streams:
        source, sinks = _port(dag, drawn.source), [_port(dag, sink) for sink in drawn.sinks]
        dag.add_stream(":".join(drawn.source), source, *sinks).set_locality(drawn.locality)
    for setting in blueprint.settings:
        given, operator = (setting.attribute, setting.value), setting.operator
        if operator is None:
            dag.set_attribute(*given)
        elif setting.inlet is not None:
            dag.set_input_port_attribute(_port(dag, (operator, setting.inlet)), *given)
        elif setting.outlet is not None:
            dag.set_output_port_attribute(_port(dag, (operator, setting.outlet)), *given)
        else:
            dag.set_operator_attribute(dag.operator(operator), *given)
    return dag


def _port(dag, end):
    return getattr(dag.operator(end[0]), end[1])


NAMES = st.text(st.sampled_from("ABXYZ -+éß$[]#'\""), min_size=1, max_size=6)
"""Names that no case of the laws uses."""
COUNTS = st.integers(1, 5)


@st.composite
def blueprints(draw_, most=10):
    """A graph that compiles: typed, of several roots, with modules, delays, partitions, mirrors and attributes."""
    names = draw_(st.lists(NAMES, min_size=2, max_size=most, unique=True))
    operators, sinks, carried, fed = [], {}, {}, {}
    for index, name in enumerate(names):
        kind = draw_(st.sampled_from(ROOTS if index == 0 else (*ROOTS, *INNER, *INNER)))
        sources = _feeding(draw_, kind, operators, carried)
        if kind not in ROOTS and not sources:
            kind = "numbers"
        operators.append(Placed(name, kind, _properties(draw_, kind)))
        carried[name] = KINDS[kind].sends
        fed[name] = []
        for port, source in sources.items() if kind not in ROOTS else ():
            sinks.setdefault(source, []).append((name, port))
            fed[name].append(port)
            if carried[name] is ...:
                carried[name] = carried[source[0]]
    operators += _delays(draw_, operators, sinks, fed)
    streams = tuple(_drawn(draw_, source, tuple(ends), fed) for source, ends in sinks.items())
    return Blueprint(tuple(operators), streams, _settings(draw_, operators, streams, fed))


def _feeding(draw_, kind, operators, carried):
    """What feeds the inputs of a new operator: at least one, where anything fits."""
    feeding = {}
    for port, taken in KINDS[kind].inputs.items():
        fitting = [
            (placed.name, outlet)
            for placed in operators
            if carried[placed.name] in taken
            for outlet in KINDS[placed.kind].outputs
        ]
        if fitting and (not feeding or draw_(st.booleans())):
            feeding[port] = draw_(st.sampled_from(fitting))
    return feeding


def _properties(draw_, kind):
    named = {"numbers": "first", "add": "addend", "relay": "depth"}
    values = st.integers(0, 2) if kind == "relay" else st.integers()
    return ((named[kind], draw_(values)),) if kind in named and draw_(st.booleans()) else ()


def _delays(draw_, operators, sinks, fed):
    """Delays from an operator back to itself or to one that leads to it."""
    leads = {placed.name: set() for placed in operators}
    for placed in operators:
        for (source, _), ends in sinks.items():
            if any(name == placed.name for name, _ in ends):
                leads[placed.name] |= {source, *leads[source]}
    made = []
    adds = [placed.name for placed in operators if placed.kind == "add"]
    for name in adds:
        back = [a for a in adds if (a == name or a in leads[name]) and "back" not in fed[a]]
        if back and draw_(st.integers(0, 3)) == 0:
            delay, head = f"back from {name}", draw_(st.sampled_from(back))
            made.append(Placed(delay, "later"))
            sinks.setdefault((name, "more"), []).append((delay, "input"))
            sinks[delay, "output"] = [(head, "back")]
            fed[delay] = ["input"]
            fed[head].append("back")
    return made


def _drawn(draw_, source, ends, fed):
    near = ["NODE_LOCAL", "RACK_LOCAL", "CONTAINER_LOCAL"]
    if all(len(fed[name]) == 1 for name, _ in ends):
        near.append("THREAD_LOCAL")
    return Drawn(source, ends, draw_(st.sampled_from([None, *near])))


def _settings(draw_, operators, streams, fed):
    settings = []

    def perhaps(attribute, values, *, often=4, **where):
        if draw_(st.integers(0, often)) == 0:
            settings.append(Set(attribute, draw_(values), **where))

    perhaps(DagContext.STREAMING_WINDOW_SIZE_MILLIS, st.integers(1, 1000))
    perhaps(OperatorContext.TIMEOUT_WINDOW_COUNT, st.integers(1, 9))
    for placed in operators:
        if placed.kind not in ROOTS:
            perhaps(OperatorContext.PARTITIONER, st.builds(StatelessPartitioner, COUNTS), often=2, operator=placed.name)
        perhaps(OperatorContext.PROCESSING_MODE, st.just(ProcessingMode.AT_MOST_ONCE), operator=placed.name)
        if placed.kind != "later":
            perhaps(OperatorContext.APPLICATION_WINDOW_COUNT, COUNTS, operator=placed.name)
            perhaps(OperatorContext.SLIDE_BY_WINDOW_COUNT, COUNTS, operator=placed.name)
        inputs = fed[placed.name]
        if len(inputs) == 1:
            perhaps(PortContext.PARTITION_PARALLEL, st.booleans(), often=1, operator=placed.name, inlet=inputs[0])
    parallel = {(s.operator, s.inlet) for s in settings if s.attribute is PortContext.PARTITION_PARALLEL}
    for drawn in streams:
        operator, outlet = drawn.source
        perhaps(PortContext.UNIFIER_LIMIT, st.integers(1, 4), operator=operator, outlet=outlet)
        perhaps(PortContext.UNIFIER_SINGLE_FINAL, st.booleans(), operator=operator, outlet=outlet)
        for name, port in drawn.sinks:
            if (name, port) not in parallel:
                perhaps(PortContext.STREAM_CODEC, st.builds(Parity), operator=name, inlet=port)
    return tuple(settings)


@st.composite
def shuffled(draw_, blueprint):
    """The same graph, written down in another order."""
    return Blueprint(
        tuple(draw_(st.permutations(blueprint.operators))),
        tuple(
            drawn._replace(sinks=tuple(draw_(st.permutations(drawn.sinks))))
            for drawn in draw_(st.permutations(blueprint.streams))
        ),
        tuple(draw_(st.permutations(blueprint.settings))),
    )


LATE = ("parallel-count-mismatch", "partition-invalid")
"""Codes of what is reported only where the shape is right: partitions are counted last."""

BREAKS = {}
"""What breaks any graph: for each code, the first case of the laws that is reported under it."""
for _, _breaking, _expected in law.cases:
    if _expected and "application-empty" not in _expected[0]:
        BREAKS.setdefault(_expected[0].partition(":")[0], _breaking)


class Apart:
    """A Dag whose new names begin with a prefix, so that several cases can be drawn on it."""

    def __init__(self, dag, prefix):
        self.dag, self.prefix = dag, prefix

    def __getattr__(self, name):
        return getattr(self.dag, name)

    def operator(self, name):
        return self.dag.operator(self.prefix + name)

    def stream(self, name):
        return self.dag.stream(self.prefix + name)

    def add_operator(self, name, operator):
        return self.dag.add_operator(self.prefix + name, operator)

    def add_stream(self, name, *ends):
        return self.dag.add_stream(name and self.prefix + name, *ends)


@st.composite
def broken(draw_):
    """A Dag with some faults, and the codes under which the compiler must report them."""
    dag = draw(draw_(blueprints(most=6)))
    codes = draw_(st.lists(st.sampled_from(sorted(BREAKS.keys() - {*LATE})), min_size=1, max_size=6, unique=True))
    for code in codes:
        BREAKS[code](Apart(dag, f"{code} "))
    return dag, codes
