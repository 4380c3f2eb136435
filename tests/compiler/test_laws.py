"""The laws of a graph, one case each way: what breaks them is reported under its code, and what keeps them compiles.

The cases follow the order of `RULES`. Each draws on a Dag; what it is called says what it draws.
"""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from dagkit import (
    AffinityRule,
    AffinityRulesSet,
    AffinityType,
    Dag,
    DagContext,
    Locality,
    OperatorContext,
    PortContext,
    ProcessingMode,
    StatelessPartitioner,
)
from dagkit.api.component import Component
from dagkit.api.dag import Stream
from tests.compiler.cast import (
    Checked,
    Deal,
    Dealer,
    Delay,
    Needy,
    New,
    Old,
    Parity,
    Settled,
    SettledDealer,
    Source,
    Step,
    Typed,
    Whole,
    codes,
    compiled,
    faults,
)
from tests.compiler.sketches import sketch

Draw = Callable[[Dag], None]


def _fed(dag: Dag, name: str, operator: Any, port: str = "input") -> Any:
    """An operator that a source feeds."""
    source = dag.add_operator(f"source of {name}", Source())
    dag.add_operator(name, operator)
    dag.add_stream(f"into {name}", source.out, getattr(operator, port))
    return operator


# -- properties --------------------


def a_property_is_below_its_bound(dag: Dag) -> None:
    dag.add_operator("checked", Checked(count=1))


def a_property_of_a_nested_model_is_below_its_bound(dag: Dag) -> None:
    dag.add_operator("checked", Checked(nested={"depth": 0}))


def properties_that_hold_one_by_one_disagree(dag: Dag) -> None:
    dag.add_operator("checked", Checked(count=3, label="4"))


def a_property_is_misspelt(dag: Dag) -> None:
    dag.add_operator("checked", Checked(cuont=3))


def properties_that_agree(dag: Dag) -> None:
    dag.add_operator("checked", Checked(count=3, label="a3"))


# -- streams and ports --------------------


def a_stream_without_a_source(dag: Dag) -> None:
    step = _fed(dag, "step", Step(), "one")
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
    step = _fed(dag, "step", Step(), "one")
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
    new = _fed(dag, "new", New())
    dag.add_stream("hidden", super(New, new).output, dag.add_operator("step", Step()).one)


def ports_declared_anew_are_connected(dag: Dag) -> None:
    new = _fed(dag, "new", New())
    dag.add_stream("seen", new.output, dag.add_operator("step", Step()).one)


def a_base_class_with_its_own_ports(dag: Dag) -> None:
    _fed(dag, "old", Old())


def a_required_input_is_open(dag: Dag) -> None:
    needy = dag.add_operator("needy", Needy())
    dag.add_stream("out", needy.output, dag.add_operator("step", Step()).one)


def optional_inputs_are_open(dag: Dag) -> None:
    _fed(dag, "step", Step(), "three")


def a_required_output_is_open(dag: Dag) -> None:
    _fed(dag, "needy", Needy())


def both_required_ports_are_connected(dag: Dag) -> None:
    needy = _fed(dag, "needy", Needy())
    dag.add_stream("out", needy.output, dag.add_operator("step", Step()).one)


def ports_that_need_a_schema_have_none(dag: Dag) -> None:
    typed = _fed(dag, "typed", Typed())
    dag.add_stream("out", typed.output, dag.add_operator("step", Step()).one)


def a_port_that_needs_a_schema_has_one_and_the_other_is_open(dag: Dag) -> None:
    typed = _fed(dag, "typed", Typed())
    dag.set_input_port_attribute(typed.input, PortContext.TUPLE_CLASS, int)


# -- shape --------------------


def nothing_at_all(dag: Dag) -> None:
    pass


def a_root_that_is_no_input_operator(dag: Dag) -> None:
    dag.add_operator("step", Step())


def a_root_that_is_no_input_operator_feeds_others(dag: Dag) -> None:
    step = dag.add_operator("step", Step())
    dag.add_stream("out", step.out, dag.add_operator("next", Step()).one)


def a_loop_that_no_root_leads_to(dag: Dag) -> None:
    step, delay = dag.add_operator("step", Step()), dag.add_operator("delay", Delay())
    dag.add_stream("out", step.out, delay.input)
    dag.add_stream("back", delay.output, step.one)


def a_loop_of_two(dag: Dag) -> None:
    a = _fed(dag, "a", Step(), "one")
    b = dag.add_operator("b", Step())
    dag.add_stream("on", a.out, b.one)
    dag.add_stream("back", b.out, a.two)


def a_loop_of_two_that_no_root_leads_to_leads_on(dag: Dag) -> None:
    a, b = dag.add_operator("a", Step()), dag.add_operator("b", Step())
    dag.add_stream("on", a.out, b.one, dag.add_operator("c", Step()).one)
    dag.add_stream("back", b.out, a.one)


def an_operator_wired_to_itself(dag: Dag) -> None:
    step = _fed(dag, "step", Step(), "one")
    dag.add_stream("back", step.out, step.two)


def a_delay_wired_to_itself(dag: Dag) -> None:
    delay = dag.add_operator("delay", Delay())
    dag.add_stream("back", delay.output, delay.input)


def a_loop_of_three_and_one_of_one(dag: Dag) -> None:
    two = _fed(dag, "2", Step(), "one")
    three, four = dag.add_operator("3", Step()), dag.add_operator("4", Step())
    dag.add_stream("2>3", two.out, three.one)
    dag.add_stream("3>4", three.out, four.one)
    dag.add_stream("4>2", four.out, two.two)
    seven = _fed(dag, "7", Step(), "one")
    dag.add_stream("7>7", seven.out, seven.two)


def a_delay_that_leads_beside_its_way(dag: Dag) -> None:
    b = _fed(dag, "b", Step(), "one")
    c, d, delay = dag.add_operator("c", Step()), dag.add_operator("d", Step()), dag.add_operator("delay", Delay())
    dag.add_stream("b>c", b.out, c.one)
    dag.add_stream("c>d", c.out, d.one)
    dag.add_stream("c>delay", c.more, delay.input)
    dag.add_stream("delay>d", delay.output, d.two)


def _looped(dag: Dag, locality: Locality | None = None) -> Delay:
    c, delay = _fed(dag, "c", Step(), "one"), dag.add_operator("delay", Delay())
    dag.add_stream("c>delay", c.out, delay.input).set_locality(locality)
    dag.add_stream("delay>c", delay.output, c.two).set_locality(locality)
    return delay


def a_delay_of_two_windows(dag: Dag) -> None:
    dag.set_operator_attribute(_looped(dag), OperatorContext.APPLICATION_WINDOW_COUNT, 2)


def a_delay_back_into_its_own_feeder(dag: Dag) -> None:
    _looped(dag)


def a_delay_two_operators_back(dag: Dag) -> None:
    b = _fed(dag, "b", Step(), "one")
    c, delay = dag.add_operator("c", Step()), dag.add_operator("delay", Delay())
    dag.add_stream("b>c", b.out, c.one)
    dag.add_stream("c>delay", c.out, delay.input)
    dag.add_stream("delay>b", delay.output, b.two)


def loops_within_loops(dag: Dag) -> None:
    b = _fed(dag, "b", Step(), "one")
    c, d = dag.add_operator("c", Step()), dag.add_operator("d", Step())
    inner, outer = dag.add_operator("delay", Delay()), dag.add_operator("delay2", Delay())
    dag.add_stream("b>c", b.out, c.one)
    dag.add_stream("c>d", c.out, d.one)
    dag.add_stream("c>delay", c.more, inner.input)
    dag.add_stream("delay>b", inner.output, b.two)
    dag.add_stream("d>delay2", d.out, outer.input)
    dag.add_stream("delay2>c", outer.output, c.two)


def two_streams_side_by_side_in_a_delayed_loop(dag: Dag) -> None:
    first, second = _fed(dag, "first", Step(), "one"), dag.add_operator("second", Step())
    delay = dag.add_operator("delay", Delay())
    dag.add_stream("a", first.out, second.one)
    dag.add_stream("b", first.more, second.two)
    dag.add_stream("c", second.out, delay.input)
    dag.add_stream("d", delay.output, first.two)


# -- attributes --------------------


class _Locked(Parity):
    """A codec that holds what cannot be sent."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


class _LockedDeal(Deal):
    def __init__(self) -> None:
        super().__init__(1)
        self.lock = threading.Lock()


def an_application_attribute_cannot_be_pickled(dag: Dag) -> None:
    _fed(dag, "step", Step(), "one")
    dag.set_attribute(DagContext.STRING_CODECS, {int: _Locked().from_bytes})  # type: ignore[dict-item]


def an_operator_attribute_cannot_be_pickled(dag: Dag) -> None:
    step = _fed(dag, "step", Step(), "one")
    dag.set_operator_attribute(step, OperatorContext.PARTITIONER, _LockedDeal())


def an_input_port_attribute_cannot_be_pickled(dag: Dag) -> None:
    step = _fed(dag, "step", Step(), "one")
    dag.set_input_port_attribute(step.one, PortContext.STREAM_CODEC, _Locked())


def an_output_port_attribute_cannot_be_pickled(dag: Dag) -> None:
    step = _fed(dag, "step", Step(), "one")
    dag.set_output_port_attribute(step.out, PortContext.STREAM_CODEC, _Locked())
    dag.add_stream("out", step.out, dag.add_operator("next", Step()).one)


def an_attribute_of_an_open_input(dag: Dag) -> None:
    step = _fed(dag, "step", Step(), "one")
    dag.set_input_port_attribute(step.two, PortContext.PARTITION_PARALLEL, True)


def an_attribute_of_an_open_output(dag: Dag) -> None:
    step = _fed(dag, "step", Step(), "one")
    dag.set_output_port_attribute(step.out, PortContext.UNIFIER_LIMIT, 2)


def a_unifier_attribute_of_an_open_output(dag: Dag) -> None:
    step = _fed(dag, "step", Step(), "one")
    dag.set_unifier_attribute(step.out, OperatorContext.TIMEOUT_WINDOW_COUNT, 2)


def a_port_attribute_on_an_operator(dag: Dag) -> None:
    step = _fed(dag, "step", Step(), "one")
    dag.set_operator_attribute(step, PortContext.QUEUE_CAPACITY, 2)


def an_application_attribute_on_an_operator(dag: Dag) -> None:
    step = _fed(dag, "step", Step(), "one")
    dag.set_operator_attribute(step, DagContext.STREAMING_WINDOW_SIZE_MILLIS, 2)


def an_operator_attribute_on_a_port(dag: Dag) -> None:
    step = _fed(dag, "step", Step(), "one")
    dag.set_input_port_attribute(step.one, OperatorContext.STATELESS, True)


def a_port_attribute_on_the_application(dag: Dag) -> None:
    _fed(dag, "step", Step(), "one")
    dag.set_attribute(PortContext.QUEUE_CAPACITY, 2)


def an_operator_attribute_on_the_application_is_the_default_of_all(dag: Dag) -> None:
    _fed(dag, "step", Step(), "one")
    dag.set_attribute(OperatorContext.TIMEOUT_WINDOW_COUNT, 2)


# -- partitions --------------------


def an_unpartitionable_operator_mirrors(dag: Dag) -> None:
    dag.set_input_port_attribute(_fed(dag, "settled", Settled()).input, PortContext.PARTITION_PARALLEL, True)


def an_unpartitionable_operator_is_told_not_to_mirror(dag: Dag) -> None:
    dag.set_input_port_attribute(_fed(dag, "settled", Settled()).input, PortContext.PARTITION_PARALLEL, False)


def an_unpartitionable_operator_has_a_partitioner(dag: Dag) -> None:
    settled = _fed(dag, "settled", Settled())
    dag.set_operator_attribute(settled, OperatorContext.PARTITIONER, StatelessPartitioner(2))


def an_unpartitionable_operator_gets_the_partitioner_of_all(dag: Dag) -> None:
    _fed(dag, "settled", Settled())
    dag.set_attribute(OperatorContext.PARTITIONER, StatelessPartitioner(2))


def an_unpartitionable_operator_partitions_itself(dag: Dag) -> None:
    _fed(dag, "settled", SettledDealer())


def an_unpartitionable_operator_is_told_to_have_no_partitioner(dag: Dag) -> None:
    dag.set_operator_attribute(_fed(dag, "settled", SettledDealer()), OperatorContext.PARTITIONER, None)


def _two_roots_into(dag: Dag, *parallel: str) -> Step:
    a, b = _fed(dag, "a", Step(), "one"), _fed(dag, "b", Step(), "one")
    step = dag.add_operator("step", Step())
    dag.add_stream("a>step", a.out, step.one)
    dag.add_stream("b>step", b.out, step.two)
    for port in parallel:
        dag.set_input_port_attribute(getattr(step, port), PortContext.PARTITION_PARALLEL, True)
    return step


def parallel_inputs_from_unrelated_operators(dag: Dag) -> None:
    _two_roots_into(dag, "one", "two")


def one_parallel_input_and_one_plain_one(dag: Dag) -> None:
    _two_roots_into(dag, "one")


def _two_arms(dag: Dag, *, parallel_arms: bool) -> None:
    head, a, b, foot = (dag.add_operator(name, Step()) for name in ("head", "a", "b", "foot"))
    dag.add_stream("into", dag.add_operator("source", Source()).out, head.one)
    dag.add_stream("fan", head.out, a.one, b.one)
    dag.add_stream("a>foot", a.out, foot.one)
    dag.add_stream("b>foot", b.out, foot.two)
    dag.set_operator_attribute(head, OperatorContext.PARTITIONER, StatelessPartitioner(2))
    for port in (foot.one, foot.two, *((a.one, b.one) if parallel_arms else ())):
        dag.set_input_port_attribute(port, PortContext.PARTITION_PARALLEL, True)


def parallel_inputs_whose_feeders_mirror_one_operator(dag: Dag) -> None:
    _two_arms(dag, parallel_arms=True)


def parallel_inputs_whose_feeders_only_share_an_ancestor(dag: Dag) -> None:
    _two_arms(dag, parallel_arms=False)


def two_parallel_streams_between_the_same_pair(dag: Dag) -> None:
    head, foot = _fed(dag, "head", Step(), "one"), dag.add_operator("foot", Step())
    dag.add_stream("a", head.out, foot.one)
    dag.add_stream("b", head.more, foot.two)
    for port in (foot.one, foot.two):
        dag.set_input_port_attribute(port, PortContext.PARTITION_PARALLEL, True)


def _mirrored_by(dag: Dag, count: int) -> None:
    head, mirror = _fed(dag, "head", Step(), "one"), dag.add_operator("mirror", Step())
    dag.add_stream("on", head.out, mirror.one)
    dag.set_operator_attribute(head, OperatorContext.PARTITIONER, StatelessPartitioner(3))
    dag.set_operator_attribute(mirror, OperatorContext.PARTITIONER, Deal(count))
    dag.set_input_port_attribute(mirror.one, PortContext.PARTITION_PARALLEL, True)


def a_mirror_makes_more_partitions_than_it_mirrors(dag: Dag) -> None:
    _mirrored_by(dag, 4)


def a_mirror_makes_fewer_partitions_than_it_mirrors(dag: Dag) -> None:
    _mirrored_by(dag, 2)


def a_mirror_makes_as_many_partitions_as_it_mirrors(dag: Dag) -> None:
    _mirrored_by(dag, 3)


def a_mirrors_input_has_a_codec(dag: Dag) -> None:
    head, mirror = _fed(dag, "head", Step(), "one"), dag.add_operator("mirror", Step())
    dag.add_stream("on", head.out, mirror.one)
    dag.set_input_port_attribute(mirror.one, PortContext.PARTITION_PARALLEL, True)
    dag.set_input_port_attribute(mirror.one, PortContext.STREAM_CODEC, Parity())


def a_partitioner_makes_none(dag: Dag) -> None:
    dag.set_operator_attribute(_fed(dag, "step", Step(), "one"), OperatorContext.PARTITIONER, Deal(0))


def an_operator_that_partitions_itself(dag: Dag) -> None:
    _fed(dag, "dealer", Dealer())


# -- windows --------------------


def _saved(checkpoint: int, window: int, operator: Component, port: str = "input") -> Draw:
    def draw(dag: Dag) -> None:
        _fed(dag, "op", operator, port)
        dag.set_operator_attribute(operator, OperatorContext.CHECKPOINT_WINDOW_COUNT, checkpoint)
        dag.set_operator_attribute(operator, OperatorContext.APPLICATION_WINDOW_COUNT, window)

    draw.__name__ = f"{type(operator).__name__} saved every {checkpoint} windows of {window}"
    return draw


def _modes(upstream: str, downstream: str | None) -> Draw:
    def draw(dag: Dag) -> None:
        a, b = _fed(dag, "a", Step(), "one"), dag.add_operator("b", Step())
        dag.add_stream("on", a.out, b.one)
        dag.set_operator_attribute(a, OperatorContext.PROCESSING_MODE, ProcessingMode(upstream))
        if downstream:
            dag.set_operator_attribute(b, OperatorContext.PROCESSING_MODE, ProcessingMode(downstream))

    draw.__name__ = f"{upstream} before {downstream or 'one that is told nothing'}"
    return draw


def a_loop_that_may_lose_items(dag: Dag) -> None:
    delay = _looped(dag)
    dag.set_operator_attribute(delay, OperatorContext.PROCESSING_MODE, ProcessingMode.AT_MOST_ONCE)


# -- places --------------------

_THREAD = Locality.THREAD_LOCAL


def _joined(dag: Dag, first: Locality | None, second: Locality | None) -> None:
    a, b, join = dag.add_operator("a", Source()), dag.add_operator("b", Source()), dag.add_operator("join", Step())
    dag.add_stream("a>join", a.out, join.one).set_locality(first)
    dag.add_stream("b>join", b.out, join.two).set_locality(second)


def a_thread_with_two_roots(dag: Dag) -> None:
    _joined(dag, _THREAD, _THREAD)


def a_thread_with_one_input_of_two(dag: Dag) -> None:
    _joined(dag, _THREAD, None)


def no_thread_for_two_inputs(dag: Dag) -> None:
    _joined(dag, None, None)


def a_thread_for_a_chain(dag: Dag) -> None:
    a = dag.add_operator("a", Source())
    b, c = dag.add_operator("b", Step()), dag.add_operator("c", Step())
    dag.add_stream("a>b", a.out, b.one).set_locality(_THREAD)
    dag.add_stream("b>c", b.out, c.one).set_locality(_THREAD)


def a_thread_for_the_only_connected_input_of_several(dag: Dag) -> None:
    a, b = dag.add_operator("a", Source()), dag.add_operator("b", Step())
    dag.add_stream("a>b", a.out, b.two).set_locality(_THREAD)


def _diamond(dag: Dag, *localities: Locality | None) -> tuple[Stream, ...]:
    root, left, right, join = (
        dag.add_operator("root", Source()),
        *(dag.add_operator(name, Step()) for name in ("left", "right", "join")),
    )
    streams = (
        dag.add_stream("fan", root.out, left.one, right.one),
        dag.add_stream("left>join", left.out, join.one),
        dag.add_stream("right>join", right.out, join.two),
    )
    return tuple(stream.set_locality(locality) for stream, locality in zip(streams, localities, strict=True))


def a_thread_for_a_diamond(dag: Dag) -> None:
    _diamond(dag, _THREAD, _THREAD, _THREAD)


def a_thread_for_three_sides_of_a_diamond(dag: Dag) -> None:
    _diamond(dag, _THREAD, _THREAD, None)


def a_thread_that_begins_at_a_diamonds_arms(dag: Dag) -> None:
    _diamond(dag, None, _THREAD, _THREAD)


def _long_diamond(dag: Dag, inner: Locality | None) -> None:
    _diamond(dag, _THREAD, _THREAD, _THREAD)
    left, right, foot = (dag.add_operator(name, Step()) for name in ("left 2", "right 2", "foot"))
    dag.add_stream("again", dag.operator("join").out, left.one, right.one).set_locality(_THREAD)
    dag.add_stream("left 2>foot", left.out, foot.one).set_locality(_THREAD)
    dag.add_stream("right 2>foot", right.out, foot.two).set_locality(inner)


def a_thread_for_two_diamonds(dag: Dag) -> None:
    _long_diamond(dag, _THREAD)


def a_thread_for_two_diamonds_but_one_inner_stream(dag: Dag) -> None:
    _long_diamond(dag, None)


def a_thread_around_a_delay(dag: Dag) -> None:
    _looped(dag, _THREAD)


_TOGETHER, _APART = AffinityType.AFFINITY, AffinityType.ANTI_AFFINITY


def _row(dag: Dag, *rules: AffinityRule, locality: str | None = None, hosts: tuple[str, ...] = ()) -> None:
    """O1 > O2 > O3 with a locality between the last two, O4 and O5 beside them, hosts for O2 and O3."""
    operators: list[Any] = [
        dag.add_operator("O1", Source()),
        *(dag.add_operator(f"O{i}", Step()) for i in range(2, 6)),
    ]
    dag.add_stream("1", operators[0].out, operators[1].one)
    dag.add_stream("2", operators[1].out, operators[2].one).set_locality(locality)
    dag.add_stream("3", operators[2].out, operators[3].one, operators[4].one)
    for operator, host in zip(operators[1:3], hosts, strict=False):
        dag.set_operator_attribute(operator, OperatorContext.LOCALITY_HOST, host)
    dag.set_attribute(DagContext.AFFINITY_RULES_SET, AffinityRulesSet(affinity_rules=rules))


def _rule(kind: AffinityType, *operators: str, locality: str = "NODE_LOCAL", relaxed: bool = False) -> AffinityRule:
    return AffinityRule(type=kind, operators=operators, locality=Locality(locality), relax_locality=relaxed)


def apart_but_joined_in_one_container(dag: Dag) -> None:
    _row(dag, _rule(_APART, "O2", "O3"), locality="CONTAINER_LOCAL")


def apart_and_joined_in_one_rack(dag: Dag) -> None:
    _row(dag, _rule(_APART, "O2", "O3"), locality="RACK_LOCAL")


def apart_and_together(dag: Dag) -> None:
    _row(dag, _rule(_TOGETHER, "O1", "O3"), _rule(_APART, "O1", "O3"))


def apart_and_together_in_one_rack(dag: Dag) -> None:
    _row(dag, _rule(_TOGETHER, "O1", "O3", locality="RACK_LOCAL"), _rule(_APART, "O1", "O3"))


def apart_where_possible_and_together(dag: Dag) -> None:
    _row(dag, _rule(_TOGETHER, "O1", "O3"), _rule(_APART, "O1", "O3", relaxed=True))


def apart_but_on_one_host(dag: Dag) -> None:
    _row(dag, _rule(_APART, "O2", "O3"), hosts=("host1", "host1"))


def together_but_on_two_hosts(dag: Dag) -> None:
    _row(dag, _rule(_TOGETHER, "O2", "O3"), hosts=("host1", "host2"))


def one_thread_but_no_stream(dag: Dag) -> None:
    _row(dag, _rule(_TOGETHER, "O1", "O3", locality="THREAD_LOCAL"))


def apart_but_together_through_a_third(dag: Dag) -> None:
    _row(dag, _rule(_TOGETHER, "O3", "O4"), _rule(_TOGETHER, "O4", "O5"), _rule(_APART, "O3", "O5"))


def joined_in_one_node_but_on_two_hosts(dag: Dag) -> None:
    _row(dag, locality="NODE_LOCAL", hosts=("host1", "host2"))


def on_two_hosts_and_free(dag: Dag) -> None:
    _row(dag, hosts=("host1", "host2"))


def a_rule_about_nobody(dag: Dag) -> None:
    _row(dag, _rule(_TOGETHER, "O2", "O33"))


def a_rule_with_a_broken_pattern(dag: Dag) -> None:
    _row(dag, AffinityRule(type=_TOGETHER, operator_regex="O["))


def a_rule_by_pattern(dag: Dag) -> None:
    _row(dag, AffinityRule(type=_APART, operator_regex="O[23]"), locality="NODE_LOCAL")


def a_rule_whose_pattern_fits_one(dag: Dag) -> None:
    _row(dag, AffinityRule(type=_APART, operator_regex="O2"), locality="NODE_LOCAL")


# -- the tables --------------------

BROKEN: list[tuple[Draw, list[str]]] = [
    (nothing_at_all, ["application-empty: Dag has no operators"]),
    (
        a_property_is_below_its_bound,
        ["property-invalid: checked.count is wrong: input should be greater than or equal to 2"],
    ),
    (
        a_property_of_a_nested_model_is_below_its_bound,
        ["property-invalid: checked.nested.depth is wrong: input should be greater than or equal to 1"],
    ),
    (
        properties_that_hold_one_by_one_disagree,
        ["property-invalid: checked.properties is wrong: value error, label must end like the count"],
    ),
    (a_property_is_misspelt, ["property-unknown: checked has no property 'cuont'"]),
    (a_stream_without_a_source, ["stream-unfed: stream 'dry' has no source"]),
    (a_stream_without_a_source_is_all_that_feeds_others, ["stream-unfed: stream 'dry' has no source"]),
    (
        an_operator_that_was_never_added,
        ["operator-unknown: stream 'into' is led to Step.one, whose operator was never added to the Dag"],
    ),
    (a_stream_without_a_sink, ["stream-unread: stream 'lost' has no sink"]),
    (
        a_stream_with_two_sources,
        ["port-taken: stream 'one' already has the source a.out; b.out is a second one"],
    ),
    (an_output_on_two_streams, ["port-taken: source.out is already on stream 'one'"]),
    (an_input_on_two_streams, ["port-taken: step.one is already on stream 'one'"]),
    (
        a_hidden_input_is_connected,
        ["port-hidden: stream 'hidden' is led to Old.input, which New hides with a port of its own"],
    ),
    (
        a_hidden_output_is_connected,
        ["port-hidden: stream 'hidden' is led to Old.output, which New hides with a port of its own"],
    ),
    (a_required_input_is_open, ["input-unconnected: no stream feeds needy.input"]),
    (a_required_output_is_open, ["output-unconnected: no stream reads needy.output, which must not stay open"]),
    (
        ports_that_need_a_schema_have_none,
        [
            "port-schema-missing: typed.input needs to know the class of its items, and TUPLE_CLASS is not set",
            "port-schema-missing: typed.output needs to know the class of its items, and TUPLE_CLASS is not set",
        ],
    ),
    (a_root_that_is_no_input_operator, ["root-not-input: nothing feeds step, and Step is no InputOperator"]),
    (
        a_root_that_is_no_input_operator_feeds_others,
        ["root-not-input: nothing feeds step, and Step is no InputOperator"],
    ),
    (
        a_loop_that_no_root_leads_to,
        ["operator-unreached: no input operator leads to step", "operator-unreached: no input operator leads to delay"],
    ),
    (a_loop_of_two, ["loop-undelayed: the operators a > b > a form a loop without a delay"]),
    (
        a_loop_of_two_that_no_root_leads_to_leads_on,
        ["loop-undelayed: the operators a > b > a form a loop without a delay"],
    ),
    (an_operator_wired_to_itself, ["loop-undelayed: the operators step > step form a loop without a delay"]),
    (a_delay_wired_to_itself, ["loop-undelayed: the operators delay > delay form a loop without a delay"]),
    (
        a_loop_of_three_and_one_of_one,
        [
            "loop-undelayed: the operators 2 > 3 > 4 > 2 form a loop without a delay",
            "loop-undelayed: the operators 7 > 7 form a loop without a delay",
        ],
    ),
    (
        a_delay_that_leads_beside_its_way,
        ["delay-misplaced: delay leads to d, which does not lead back to delay"],
    ),
    (a_delay_of_two_windows, ["delay-misplaced: delay delays by one window, but its APPLICATION_WINDOW_COUNT is 2"]),
    (an_application_attribute_cannot_be_pickled, ["attribute-unpicklable: STRING_CODECS of Dag cannot be sent"]),
    (an_operator_attribute_cannot_be_pickled, ["attribute-unpicklable: PARTITIONER of step cannot be sent"]),
    (an_input_port_attribute_cannot_be_pickled, ["attribute-unpicklable: STREAM_CODEC of step.one cannot be sent"]),
    (an_output_port_attribute_cannot_be_pickled, ["attribute-unpicklable: STREAM_CODEC of step.out cannot be sent"]),
    (
        an_attribute_of_an_open_input,
        ["attribute-stranded: PARTITION_PARALLEL is set on step.two, which no stream touches"],
    ),
    (an_attribute_of_an_open_output, ["attribute-stranded: UNIFIER_LIMIT is set on step.out, which no stream touches"]),
    (
        a_unifier_attribute_of_an_open_output,
        ["attribute-stranded: TIMEOUT_WINDOW_COUNT is set on step.out, which no stream touches"],
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
    (
        an_unpartitionable_operator_mirrors,
        ["partition-forbidden: settled may not be partitioned, but PARTITION_PARALLEL is set on settled.input"],
    ),
    (
        an_unpartitionable_operator_has_a_partitioner,
        ["partition-forbidden: settled may not be partitioned, but it has a PARTITIONER"],
    ),
    (
        an_unpartitionable_operator_gets_the_partitioner_of_all,
        ["partition-forbidden: settled may not be partitioned, but it has a PARTITIONER"],
    ),
    (
        an_unpartitionable_operator_partitions_itself,
        ["partition-forbidden: settled may not be partitioned, but it is its own Partitioner"],
    ),
    (
        parallel_inputs_from_unrelated_operators,
        ["parallel-unrelated: step mirrors the partitions of a and of b, which do not follow one operator"],
    ),
    (
        parallel_inputs_whose_feeders_only_share_an_ancestor,
        ["parallel-unrelated: foot mirrors the partitions of a and of b, which do not follow one operator"],
    ),
    (
        a_mirror_makes_more_partitions_than_it_mirrors,
        [
            (
                "parallel-count-mismatch: mirror mirrors the 3 partitions of head, but its partitioner makes 4: "
                "some would get nothing"
            )
        ],
    ),
    (
        a_mirror_makes_fewer_partitions_than_it_mirrors,
        [
            (
                "parallel-count-mismatch: mirror mirrors the 3 partitions of head, but its partitioner makes 2: "
                "the items of some would be lost"
            )
        ],
    ),
    (
        a_mirrors_input_has_a_codec,
        ["parallel-rekeyed: mirror.one is PARTITION_PARALLEL, so its STREAM_CODEC cannot route anything"],
    ),
    (a_partitioner_makes_none, ["partition-invalid: the Deal of step gave no partitions"]),
    *(
        (
            _saved(checkpoint, 30, Whole()),
            [
                (
                    "checkpoint-misaligned: op cannot be saved inside an application window, but its "
                    f"CHECKPOINT_WINDOW_COUNT {checkpoint} is no multiple of its APPLICATION_WINDOW_COUNT 30"
                )
            ],
        )
        for checkpoint in (15, 45)
    ),
    (
        _modes("AT_MOST_ONCE", "AT_LEAST_ONCE"),
        ["mode-mismatch: a is AT_MOST_ONCE, but b is AT_LEAST_ONCE, and stream 'on' joins them"],
    ),
    (
        _modes("AT_MOST_ONCE", "EXACTLY_ONCE"),
        ["mode-mismatch: a is AT_MOST_ONCE, but b is EXACTLY_ONCE, and stream 'on' joins them"],
    ),
    (
        _modes("EXACTLY_ONCE", None),
        ["mode-mismatch: a is EXACTLY_ONCE, but b is told nothing, and stream 'on' joins them"],
    ),
    (
        _modes("EXACTLY_ONCE", "AT_LEAST_ONCE"),
        ["mode-mismatch: a is EXACTLY_ONCE, but b is AT_LEAST_ONCE, and stream 'on' joins them"],
    ),
    (
        _modes("EXACTLY_ONCE", "EXACTLY_ONCE"),
        ["mode-mismatch: a is EXACTLY_ONCE, but b is EXACTLY_ONCE, and stream 'on' joins them"],
    ),
    (
        a_thread_with_two_roots,
        [
            (
                "locality-invalid: join cannot share a thread with what feeds it: "
                "its input streams do not begin at one operator"
            )
        ],
    ),
    (
        a_thread_with_one_input_of_two,
        [
            (
                "locality-invalid: join cannot share a thread with what feeds it: "
                "it has several input streams, and not all of them are THREAD_LOCAL"
            )
        ],
    ),
    (
        a_thread_for_three_sides_of_a_diamond,
        [
            (
                "locality-invalid: join cannot share a thread with what feeds it: "
                "it has several input streams, and not all of them are THREAD_LOCAL"
            )
        ],
    ),
    (
        a_thread_that_begins_at_a_diamonds_arms,
        [
            (
                "locality-invalid: join cannot share a thread with what feeds it: "
                "its input streams do not begin at one operator"
            )
        ],
    ),
    (
        a_thread_for_two_diamonds_but_one_inner_stream,
        [
            (
                "locality-invalid: foot cannot share a thread with what feeds it: "
                "it has several input streams, and not all of them are THREAD_LOCAL"
            )
        ],
    ),
    (
        a_thread_around_a_delay,
        ["locality-invalid: c cannot share a thread with what feeds it: one of its inputs comes"],
    ),
    (
        apart_but_joined_in_one_container,
        ["affinity-conflicting: O2 and O3 must run apart (NODE_LOCAL), but streams or other rules keep them together"],
    ),
    (
        apart_and_together,
        ["affinity-conflicting: O1 and O3 must run apart (NODE_LOCAL), but streams or other rules keep them together"],
    ),
    (
        apart_but_on_one_host,
        ["affinity-conflicting: O2 and O3 must run apart, but both are pinned to host 'host1'"],
    ),
    (
        together_but_on_two_hosts,
        ["affinity-conflicting: O2 and O3 must run together, but are pinned to hosts 'host1' and 'host2'"],
    ),
    (
        one_thread_but_no_stream,
        ["affinity-conflicting: O1 and O3 must share a thread, but no stream joins them"],
    ),
    (
        apart_but_together_through_a_third,
        ["affinity-conflicting: O3 and O5 must run apart (NODE_LOCAL), but streams or other rules keep them together"],
    ),
    (
        joined_in_one_node_but_on_two_hosts,
        ["affinity-conflicting: O2 and O3 are joined NODE_LOCAL by stream '2', but pinned to different hosts"],
    ),
    (a_rule_about_nobody, ["affinity-invalid: an affinity rule names 'O33', which is no operator"]),
    (a_rule_with_a_broken_pattern, ["affinity-invalid: the affinity rule's 'O[' is no regular expression"]),
    (
        a_rule_by_pattern,
        ["affinity-conflicting: O2 and O3 must run apart (NODE_LOCAL), but streams or other rules keep them together"],
    ),
]

VALID: list[Draw] = [
    properties_that_agree,
    an_output_into_two_inputs_of_one_operator,
    ports_declared_anew_are_connected,
    a_base_class_with_its_own_ports,
    optional_inputs_are_open,
    both_required_ports_are_connected,
    a_port_that_needs_a_schema_has_one_and_the_other_is_open,
    a_delay_back_into_its_own_feeder,
    a_delay_two_operators_back,
    loops_within_loops,
    two_streams_side_by_side_in_a_delayed_loop,
    an_operator_attribute_on_the_application_is_the_default_of_all,
    an_unpartitionable_operator_is_told_not_to_mirror,
    an_unpartitionable_operator_is_told_to_have_no_partitioner,
    one_parallel_input_and_one_plain_one,
    parallel_inputs_whose_feeders_mirror_one_operator,
    two_parallel_streams_between_the_same_pair,
    a_mirror_makes_as_many_partitions_as_it_mirrors,
    an_operator_that_partitions_itself,
    _saved(30, 30, Whole()),
    _saved(15, 30, Step(), "one"),
    *(_modes("AT_LEAST_ONCE", mode) for mode in ("AT_LEAST_ONCE", "AT_MOST_ONCE", "EXACTLY_ONCE", None)),
    *(_modes("AT_MOST_ONCE", mode) for mode in ("AT_MOST_ONCE", None)),
    _modes("EXACTLY_ONCE", "AT_MOST_ONCE"),
    a_loop_that_may_lose_items,
    no_thread_for_two_inputs,
    a_thread_for_a_chain,
    a_thread_for_the_only_connected_input_of_several,
    a_thread_for_a_diamond,
    a_thread_for_two_diamonds,
    apart_and_joined_in_one_rack,
    apart_and_together_in_one_rack,
    apart_where_possible_and_together,
    on_two_hosts_and_free,
    a_rule_whose_pattern_fits_one,
]


def _sentence(value: object) -> str | None:
    return value.__name__.replace("_", " ").strip() if callable(value) else None


@pytest.mark.parametrize(("draw", "expected"), BROKEN, ids=lambda v: _sentence(v) or "")
def test_what_breaks_a_law_is_reported(draw: Draw, expected: list[str]) -> None:
    dag = Dag()
    draw(dag)
    told = [f"{fault.code}: {fault.problem}" for fault in faults(dag)]
    assert len(told) == len(expected), told
    for said, wanted in zip(told, expected, strict=True):
        assert said.startswith(wanted)


@pytest.mark.parametrize("draw", VALID, ids=_sentence)
def test_what_keeps_the_laws_compiles(draw: Draw) -> None:
    dag = Dag()
    draw(dag)
    assert codes(dag) == []


@pytest.mark.parametrize(("draw", "expected"), BROKEN, ids=lambda v: _sentence(v) or "")
def test_every_fault_has_a_line_and_a_help(draw: Draw, expected: list[str]) -> None:
    dag = Dag()
    draw(dag)
    for fault in faults(dag):
        assert fault.help
        assert fault.code == "application-empty" or (fault.where and fault.where.file.endswith("test_laws.py"))


def test_what_follows_an_operator_that_may_lose_items_may_lose_them_and_is_told() -> None:
    dag = sketch("s>a", "a>b", "b>c", "a>x")
    dag.set_operator_attribute(dag.operator("a"), OperatorContext.PROCESSING_MODE, ProcessingMode.AT_MOST_ONCE)
    compilation = compiled(dag)
    modes = {
        node.name: compilation.graph.value(node, OperatorContext.PROCESSING_MODE).value
        for node in compilation.graph.nodes
    }
    assert modes == {"s": "AT_LEAST_ONCE", **dict.fromkeys("abcx", "AT_MOST_ONCE")}
    assert sorted(note.problem for note in compilation.notes) == [
        "b becomes AT_MOST_ONCE, because a feeds it and is AT_MOST_ONCE",
        "c becomes AT_MOST_ONCE, because b feeds it and is AT_MOST_ONCE",
        "x becomes AT_MOST_ONCE, because a feeds it and is AT_MOST_ONCE",
    ]


def test_a_rule_whose_pattern_fits_fewer_than_two_is_passed_over_and_told() -> None:
    dag = Dag()
    a_rule_whose_pattern_fits_one(dag)
    assert [(note.code, note.severity.value) for note in compiled(dag).notes] == [("affinity-ignored", "warning")]


def test_attributes_that_mean_nothing_here_are_accepted_and_told() -> None:
    dag = sketch("s>a")
    dag.set_attribute(DagContext.DEBUG, True)
    dag.set_operator_attribute(dag.operator("a"), OperatorContext.VCORES, 2)
    dag.set_input_port_attribute(dag.operator("a").one, PortContext.BUFFER_MEMORY_MB, 64)
    assert [(note.code, note.severity.value, note.problem) for note in compiled(dag).notes] == [
        ("attribute-advisory", "advisory", "DEBUG of Dag is accepted, and has no effect here"),
        ("attribute-advisory", "advisory", "VCORES of a is accepted, and has no effect here"),
        ("attribute-advisory", "advisory", "BUFFER_MEMORY_MB of a.one is accepted, and has no effect here"),
    ]


def test_validating_changes_nothing_so_it_can_be_done_twice() -> None:
    dag = Dag()
    _row(dag, _rule(_TOGETHER, "O1", "O3"), _rule(_APART, "O1", "O3"))
    assert faults(dag) == faults(dag)
