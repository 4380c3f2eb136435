"""Graphs by the hundred: blueprints that compile, the Dags they draw in any order, and what breaks them.

A blueprint is plain data, so that one graph can be drawn in many orders. Operators are made in an order in which each
is fed by earlier ones; delays alone lead back.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from hypothesis import strategies as st

from dagkit import (
    AffinityRule,
    AffinityRulesSet,
    AffinityType,
    Config,
    Dag,
    DagContext,
    DelayOperator,
    InputOperator,
    InputPort,
    Module,
    Operator,
    OperatorContext,
    OutputPort,
    PortContext,
    ProcessingMode,
    StatelessPartitioner,
)
from dagkit.errors import Code
from tests.compiler.cast import Animal, Deal, Dog, Needy, New, Parity, Settled

T = TypeVar("T")


class Numbers(InputOperator):
    """A root that sends numbers."""

    first: int = 0
    out = OutputPort(int)
    more = OutputPort(int)


class Dogs(InputOperator):
    """A root that sends dogs."""

    out = OutputPort(Dog)
    more = OutputPort(list[Dog])


class Add(Operator):
    """Numbers in, numbers out."""

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
    """Animals in, dogs out."""

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

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        step = dag.add_operator("step", Add(addend=self.depth))
        dag.expose(self.one, step.one)
        last = step.out
        if self.depth:
            inner = dag.add_module("inner", Relay(depth=self.depth - 1))
            dag.add_stream("on", step.out, inner.one)
            last = inner.out
        dag.expose(self.out, last)


@dataclass(frozen=True)
class Kind:
    """A sort of operator: how it is made, what it sends (or what flows in), and what its inputs take."""

    make: Callable[..., Any]
    sends: Any
    inputs: dict[str, Sequence[str]]
    outputs: Sequence[str] = ("out", "more")


NUMBER, DOG = "number", "dog"

KINDS: dict[str, Kind] = {
    "numbers": Kind(Numbers, NUMBER, {}),
    "dogs": Kind(Dogs, DOG, {}, ("out",)),
    "add": Kind(Add, NUMBER, {"one": [NUMBER], "two": [NUMBER], "three": [NUMBER]}),
    "walk": Kind(Walk, DOG, {"one": [DOG], "two": [NUMBER, DOG]}),
    "carry": Kind(Carry, ..., {"one": [NUMBER, DOG]}),
    "relay": Kind(Relay, NUMBER, {"one": [NUMBER]}, ("out",)),
    "later": Kind(Later, ..., {}, ()),
}
ROOTS, INNER = ("numbers", "dogs"), ("add", "walk", "carry", "relay")


@dataclass(frozen=True)
class Placed:
    """An operator to be: its name, its kind, and its properties."""

    name: str
    kind: str
    properties: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Drawn:
    """A stream to be: a source, sinks, and how near they run."""

    source: tuple[str, str]
    sinks: tuple[tuple[str, str], ...]
    locality: str | None = None

    @property
    def name(self) -> str:
        return f"{self.source[0]}:{self.source[1]}"


@dataclass(frozen=True)
class Set:
    """An attribute to be set: on the application, an operator, or a port of one."""

    attribute: Any
    value: Any
    operator: str | None = None
    inlet: str | None = None
    outlet: str | None = None


@dataclass(frozen=True)
class Blueprint:
    """A graph to be drawn."""

    operators: tuple[Placed, ...]
    streams: tuple[Drawn, ...]
    settings: tuple[Set, ...] = field(default=())


def draw(blueprint: Blueprint) -> Dag:
    """The Dag of a blueprint, in the order in which the blueprint stands."""
    dag = Dag()
    for placed in blueprint.operators:
        dag.add_operator(placed.name, KINDS[placed.kind].make(**dict(placed.properties)))
    for drawn in blueprint.streams:
        source, sinks = _port(dag, drawn.source), [_port(dag, sink) for sink in drawn.sinks]
        dag.add_stream(drawn.name, source, *sinks).set_locality(drawn.locality)
    for setting in blueprint.settings:
        if setting.operator is None:
            dag.set_attribute(setting.attribute, setting.value)
        elif setting.inlet is not None:
            inlet = _port(dag, (setting.operator, setting.inlet))
            dag.set_input_port_attribute(inlet, setting.attribute, setting.value)
        elif setting.outlet is not None:
            outlet = _port(dag, (setting.operator, setting.outlet))
            dag.set_output_port_attribute(outlet, setting.attribute, setting.value)
        else:
            dag.set_operator_attribute(dag.operator(setting.operator), setting.attribute, setting.value)
    return dag


def _port(dag: Dag, end: tuple[str, str]) -> Any:
    return getattr(dag.operator(end[0]), end[1])


NAMES = st.text(st.sampled_from("abcXY -+éß$[]#'\""), min_size=1, max_size=6)
COUNTS = st.integers(1, 5)


@st.composite
def blueprints(draw_: st.DrawFn, most: int = 10) -> Blueprint:
    """A graph that compiles: typed, of several roots, with modules, delays, partitions, mirrors and attributes."""
    names = draw_(st.lists(NAMES, min_size=2, max_size=most, unique=True))
    operators: list[Placed] = []
    sinks: dict[tuple[str, str], list[tuple[str, str]]] = {}
    carried: dict[str, str] = {}
    fed: dict[str, list[str]] = {}
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


def _feeding(
    draw_: st.DrawFn, kind: str, operators: Sequence[Placed], carried: dict[str, str]
) -> dict[str, tuple[str, str]]:
    """What feeds the inputs of a new operator: at least one, where anything fits."""
    feeding: dict[str, tuple[str, str]] = {}
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


def _properties(draw_: st.DrawFn, kind: str) -> tuple[tuple[str, Any], ...]:
    named = {"numbers": "first", "add": "addend", "relay": "depth"}
    values = st.integers(0, 2) if kind == "relay" else st.integers()
    return ((named[kind], draw_(values)),) if kind in named and draw_(st.booleans()) else ()


def _delays(
    draw_: st.DrawFn, operators: Sequence[Placed], sinks: dict[Any, list[tuple[str, str]]], fed: dict[str, list[str]]
) -> list[Placed]:
    """Delays from an operator back to itself or to one that leads to it."""
    leads: dict[str, set[str]] = {placed.name: set() for placed in operators}
    for placed in operators:
        for (source, _), ends in sinks.items():
            if any(name == placed.name for name, _ in ends):
                leads[placed.name] |= {source, *leads[source]}
    made: list[Placed] = []
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


def _drawn(
    draw_: st.DrawFn, source: tuple[str, str], ends: tuple[tuple[str, str], ...], fed: dict[str, list[str]]
) -> Drawn:
    near = ["NODE_LOCAL", "RACK_LOCAL", "CONTAINER_LOCAL"]
    if all(len(fed[name]) == 1 for name, _ in ends):
        near.append("THREAD_LOCAL")
    return Drawn(source, ends, draw_(st.sampled_from([None, *near])))


def _settings(
    draw_: st.DrawFn, operators: Sequence[Placed], streams: Sequence[Drawn], fed: dict[str, list[str]]
) -> tuple[Set, ...]:
    settings: list[Set] = []

    def perhaps(attribute: Any, values: Any, *, often: int = 4, **where: str) -> None:
        if draw_(st.integers(0, often)) == 0:
            settings.append(Set(attribute, draw_(values), **where))

    perhaps(DagContext.STREAMING_WINDOW_SIZE_MILLIS, st.integers(1, 1000))
    perhaps(OperatorContext.TIMEOUT_WINDOW_COUNT, st.integers(1, 9))
    for placed in operators:
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
def shuffled(draw_: st.DrawFn, blueprint: Blueprint) -> Blueprint:
    """The same graph, written down in another order."""
    return Blueprint(
        tuple(draw_(st.permutations(blueprint.operators))),
        tuple(
            replace(drawn, sinks=tuple(draw_(st.permutations(drawn.sinks))))
            for drawn in draw_(st.permutations(blueprint.streams))
        ),
        tuple(draw_(st.permutations(blueprint.settings))),
    )


@st.composite
def varied(draw_: st.DrawFn, blueprint: Blueprint) -> Blueprint:
    """A graph like this one: perhaps with a setting less, another property, another locality, another count."""
    settings = list(blueprint.settings)
    operators = list(blueprint.operators)
    streams = list(blueprint.streams)
    what = draw_(st.sampled_from(["nothing", "setting", "property", "locality", "count"]))
    if what == "setting" and settings:
        settings.remove(draw_(st.sampled_from(settings)))
    if what == "property":
        index = draw_(st.integers(0, len(operators) - 1))
        operators[index] = replace(operators[index], properties=_properties(draw_, operators[index].kind))
    if what == "locality" and streams:
        index = draw_(st.integers(0, len(streams) - 1))
        streams[index] = replace(streams[index], locality=draw_(st.sampled_from([None, "NODE_LOCAL"])))
    if what == "count":
        name = draw_(st.sampled_from(operators)).name
        kept = [s for s in settings if (s.operator, s.attribute) != (name, OperatorContext.PARTITIONER)]
        settings = [*kept, Set(OperatorContext.PARTITIONER, StatelessPartitioner(draw_(COUNTS)), operator=name)]
    return Blueprint(tuple(operators), tuple(streams), tuple(settings))


# -- what breaks a graph -----------

Break = Callable[[Dag], Code]


def _root(dag: Dag) -> Any:
    return next(p.component for p in dag.placements if isinstance(p.component, InputOperator))


def _new_source(dag: Dag) -> Numbers:
    return dag.add_operator(f"another {len(dag.placements)}", Numbers())


def _fed(dag: Dag, operator: Any, port: str = "input") -> Any:
    dag.add_operator(f"broken {len(dag.placements)}", operator)
    dag.add_stream(f"into broken {len(dag.placements)}", _new_source(dag).out, getattr(operator, port))
    return operator


def name_an_operator_twice(dag: Dag) -> Code:
    dag.add_operator(dag.placements[0].name, Numbers())
    return "operator-duplicated"


def place_an_operator_twice(dag: Dag) -> Code:
    dag.add_operator("under another name", dag.placements[0].component)
    return "operator-reused"


def put_a_dot_into_a_name(dag: Dag) -> Code:
    dag.add_operator(f"dotted.name {len(dag.placements)}", Numbers())
    return "name-malformed"


def leave_a_name_out(dag: Dag) -> Code:
    dag.add_stream("", _new_source(dag).out, dag.add_operator(f"nameless {len(dag.placements)}", Add()).one)
    return "name-missing"


def name_a_stream_twice(dag: Dag) -> Code:
    adds = [_fed(dag, Add(), "one") for _ in range(2)]
    for add in adds:
        dag.add_stream("twice", _new_source(dag).out, add.two)
    return "stream-duplicated"


def leave_a_source_out(dag: Dag) -> Code:
    dag.add_stream(f"dry {len(dag.streams)}", None, _fed(dag, Add(), "one").two)
    return "stream-unfed"


def leave_the_sinks_out(dag: Dag) -> Code:
    dag.add_stream(f"lost {len(dag.streams)}", _new_source(dag).out)
    return "stream-unread"


def lead_two_streams_into_an_input(dag: Dag) -> Code:
    add = _fed(dag, Add(), "one")
    dag.add_stream(f"taken {len(dag.streams)}", _new_source(dag).out, add.one)
    return "port-taken"


def forget_to_add_an_operator(dag: Dag) -> Code:
    dag.add_stream(f"strange {len(dag.streams)}", _new_source(dag).out, Add().one)
    return "operator-unknown"


def send_what_cannot_be_read(dag: Dag) -> Code:
    dag.add_stream(f"mistyped {len(dag.streams)}", _new_source(dag).out, _fed(dag, Add(), "one").two)
    walk = dag.add_operator(f"walk {len(dag.placements)}", Walk())
    dag.add_stream(f"unreadable {len(dag.streams)}", _new_source(dag).out, walk.one)
    return "port-type-mismatch"


def connect_a_hidden_port(dag: Dag) -> Code:
    new = dag.add_operator(f"new {len(dag.placements)}", New())
    dag.add_stream(f"hidden {len(dag.streams)}", _new_source(dag).out, super(New, new).input)
    return "port-hidden"


def leave_a_required_input_open(dag: Dag) -> Code:
    needy, add = dag.add_operator(f"needy {len(dag.placements)}", Needy()), Add()
    dag.add_stream(f"fed {len(dag.streams)}", needy.output, dag.add_operator(f"add {len(dag.placements)}", add).one)
    return "input-unconnected"


def leave_a_required_output_open(dag: Dag) -> Code:
    _fed(dag, Needy())
    return "output-unconnected"


def add_a_root_that_makes_nothing(dag: Dag) -> Code:
    dag.add_operator(f"idle {len(dag.placements)}", Add())
    return "root-not-input"


def wire_an_operator_to_itself(dag: Dag) -> Code:
    add = _fed(dag, Add(), "one")
    dag.add_stream(f"self {len(dag.streams)}", add.out, add.two)
    return "loop-undelayed"


def wire_a_loop(dag: Dag) -> Code:
    add, other = _fed(dag, Add(), "one"), dag.add_operator(f"other {len(dag.placements)}", Add())
    dag.add_stream(f"on {len(dag.streams)}", add.out, other.one)
    dag.add_stream(f"back {len(dag.streams)}", other.out, add.two)
    return "loop-undelayed"


def add_a_loop_that_nothing_reaches(dag: Dag) -> Code:
    later, add = Later[int](), Add()
    dag.add_operator(f"unreached {len(dag.placements)}", later)
    dag.add_operator(f"unreached {len(dag.placements)}", add)
    dag.add_stream(f"round {len(dag.streams)}", add.out, later.input)
    dag.add_stream(f"round {len(dag.streams)}", later.output, add.back)
    return "operator-unreached"


def lead_a_delay_onwards(dag: Dag) -> Code:
    later = _fed(dag, Later[int]())
    dag.add_stream(f"onwards {len(dag.streams)}", later.output, _fed(dag, Add(), "one").back)
    return "delay-misplaced"


def set_a_property_wrong(dag: Dag) -> Code:
    dag.add_operator(f"wrong {len(dag.placements)}", Numbers(first="x"))
    return "property-invalid"


def misspell_a_property(dag: Dag) -> Code:
    dag.add_operator(f"misspelt {len(dag.placements)}", Numbers(frist=1))
    return "property-unknown"


def set_an_attribute_wrong(dag: Dag) -> Code:
    dag.set_operator_attribute(_root(dag), OperatorContext.RECOVERY_ATTEMPTS, "often")
    return "attribute-invalid"


def set_an_attribute_where_it_does_not_belong(dag: Dag) -> Code:
    dag.set_operator_attribute(_root(dag), PortContext.QUEUE_CAPACITY, 1)
    return "attribute-misplaced"


def set_an_attribute_that_cannot_be_sent(dag: Dag) -> Code:
    codec = Parity()
    codec.lock = threading.Lock()
    dag.set_input_port_attribute(_fed(dag, Add(), "one").one, PortContext.STREAM_CODEC, codec)
    return "attribute-unpicklable"


def set_an_attribute_of_an_open_port(dag: Dag) -> Code:
    dag.set_output_port_attribute(_fed(dag, Add(), "one").out, PortContext.UNIFIER_LIMIT, 2)
    return "attribute-stranded"


def mirror_with_what_may_not_be_partitioned(dag: Dag) -> Code:
    dag.set_input_port_attribute(_fed(dag, Settled()).input, PortContext.PARTITION_PARALLEL, True)
    return "partition-forbidden"


def mirror_two_groups(dag: Dag) -> Code:
    add = _fed(dag, Add(), "one")
    dag.add_stream(f"group {len(dag.streams)}", _new_source(dag).out, add.three)
    for inlet in (add.one, add.three):
        dag.set_input_port_attribute(inlet, PortContext.PARTITION_PARALLEL, True)
    return "parallel-unrelated"


def put_a_codec_into_a_mirror(dag: Dag) -> Code:
    add = _fed(dag, Add(), "one")
    dag.set_input_port_attribute(add.one, PortContext.PARTITION_PARALLEL, True)
    dag.set_input_port_attribute(add.one, PortContext.STREAM_CODEC, Parity())
    return "parallel-rekeyed"


def share_a_thread_between_two_roots(dag: Dag) -> Code:
    add = dag.add_operator(f"threaded {len(dag.placements)}", Add())
    for port in ("one", "two"):
        dag.add_stream(f"thread {len(dag.streams)}", _new_source(dag).out, getattr(add, port)).set_locality(
            "THREAD_LOCAL"
        )
    return "locality-invalid"


def promise_what_upstream_may_lose(dag: Dag) -> Code:
    source, add = _new_source(dag), dag.add_operator(f"promising {len(dag.placements)}", Add())
    dag.add_stream(f"promise {len(dag.streams)}", source.out, add.one)
    dag.set_operator_attribute(source, OperatorContext.PROCESSING_MODE, ProcessingMode.AT_MOST_ONCE)
    dag.set_operator_attribute(add, OperatorContext.PROCESSING_MODE, ProcessingMode.EXACTLY_ONCE)
    return "mode-mismatch"


def ask_for_affinity_with_none(dag: Dag) -> Code:
    rule = AffinityRule(type=AffinityType.AFFINITY, operators=(dag.placements[0].name, "none at all"))
    dag.set_attribute(DagContext.AFFINITY_RULES_SET, AffinityRulesSet(affinity_rules=(rule,)))
    return "affinity-invalid"


BREAKS: tuple[Break, ...] = (
    name_an_operator_twice,
    place_an_operator_twice,
    put_a_dot_into_a_name,
    leave_a_name_out,
    name_a_stream_twice,
    leave_a_source_out,
    leave_the_sinks_out,
    lead_two_streams_into_an_input,
    forget_to_add_an_operator,
    send_what_cannot_be_read,
    connect_a_hidden_port,
    leave_a_required_input_open,
    leave_a_required_output_open,
    add_a_root_that_makes_nothing,
    wire_an_operator_to_itself,
    wire_a_loop,
    add_a_loop_that_nothing_reaches,
    lead_a_delay_onwards,
    set_a_property_wrong,
    misspell_a_property,
    set_an_attribute_wrong,
    set_an_attribute_where_it_does_not_belong,
    set_an_attribute_that_cannot_be_sent,
    set_an_attribute_of_an_open_port,
    mirror_with_what_may_not_be_partitioned,
    mirror_two_groups,
    put_a_codec_into_a_mirror,
    share_a_thread_between_two_roots,
    promise_what_upstream_may_lose,
    ask_for_affinity_with_none,
)


def make_no_partitions(dag: Dag) -> Code:
    """Found only where the shape is right: partitions are counted last."""
    dag.set_operator_attribute(_fed(dag, Add(), "one"), OperatorContext.PARTITIONER, Deal(0))
    return "partition-invalid"


@st.composite
def broken(draw_: st.DrawFn) -> tuple[Dag, list[Code]]:
    """A Dag with some faults, and the codes under which the compiler must report them."""
    dag = draw(draw_(blueprints(most=6)))
    breaks = draw_(st.lists(st.sampled_from(BREAKS), min_size=1, max_size=6, unique=True))
    return dag, [breaking(dag) for breaking in breaks]
