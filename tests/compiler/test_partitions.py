"""Partitions of a whole graph: how many of each operator, which keys they own, who said so, and what mirrors what."""

from collections.abc import Sequence
from typing import Any

import pytest

from dagkit import (
    Dag,
    OperatorContext,
    Partition,
    Partitioner,
    PartitioningContext,
    PartitionKeys,
    PortContext,
    StatelessPartitioner,
)
from dagkit.api.partitioning import assign_keys
from dagkit.compiler.repartition import redefined, repartitioned
from dagkit.plan import fingerprint
from dagkit.plan.model import Plan, Routing
from tests.cases import cases
from tests.compiler.cast import Deal, Dealer, Delay, Source, Step, codes, compiled, faults
from tests.compiler.sketches import sketch


def _counts(plan: Plan) -> dict[str, int]:
    return {operator.name: operator.count for operator in plan.operators}


def _keys(plan: Plan, name: str) -> list[dict[str, tuple[int, tuple[int, ...]]]]:
    return [
        {port: (keys.mask, keys.keys) for port, keys in partition.keys.items()}
        for partition in plan.by_name[name].partitions
    ]


def _two_streams(first: str, second: str) -> Dag:
    """node1 into two inputs of node2, wired in this order; node2 runs as five."""
    dag = Dag()
    node1, node2 = dag.add_operator("node1", Step()), dag.add_operator("node2", Step())
    dag.add_stream("into", dag.add_operator("source", Source()).out, node1.one)
    for outlet, port in ((node1.out, first), (node1.more, second)):
        dag.add_stream(f"to {port}", outlet, getattr(node2, port))
    dag.set_operator_attribute(node2, OperatorContext.PARTITIONER, StatelessPartitioner(5))
    return dag


@pytest.mark.parametrize("wired", [("one", "two"), ("two", "one")], ids=["in order", "out of order"])
def test_only_the_first_declared_of_the_connected_inputs_is_keyed(wired):
    plan = compiled(_two_streams(*wired)).plan
    assert _keys(plan, "node2") == [
        {"one": (7, (0, 5))},
        {"one": (7, (1, 6))},
        {"one": (7, (2, 7))},
        {"one": (7, (3,))},
        {"one": (7, (4,))},
    ]


def test_an_input_that_nothing_feeds_is_not_keyed():
    assert {port for keys in _keys(compiled(_two_streams("two", "three")).plan, "node2") for port in keys} == {"two"}


class _Three(Partitioner):
    """Three partitions, which share out the keys of both inputs alike."""

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        return [Partition(partitions[0].operator, {"one": keys, "two": keys}) for keys in assign_keys(3)]


def test_a_partitioner_may_key_several_inputs():
    dag = _two_streams("one", "two")
    dag.set_operator_attribute(dag.operator("node2"), OperatorContext.PARTITIONER, _Three())
    assert _keys(compiled(dag).plan, "node2") == [
        {"one": (3, (0, 3)), "two": (3, (0, 3))},
        {"one": (3, (1,)), "two": (3, (1,))},
        {"one": (3, (2,)), "two": (3, (2,))},
    ]


@pytest.mark.parametrize(
    ("attribute", "count", "source"),
    [(..., 2, "operator"), (None, 1, "default"), (StatelessPartitioner(4), 4, "code")],
    ids=["the operator partitions itself", "nothing partitions it", "the attribute goes before the operator"],
)
def test_who_decides_the_partitions(attribute, count, source):
    dag = Dag()
    dealer = dag.add_operator("dealer", Dealer())
    dag.add_stream("into", dag.add_operator("source", Source()).out, dealer.input)
    if attribute is not ...:
        dag.set_operator_attribute(dealer, OperatorContext.PARTITIONER, attribute)
    planned = compiled(dag).plan.by_name["dealer"]
    assert (planned.count, planned.why.source) == (count, source)


def test_a_partitioner_of_the_application_is_everybodys_who_has_none():
    dag = sketch("s>a", "a>b*3")
    dag.set_attribute(OperatorContext.PARTITIONER, StatelessPartitioner(2))
    assert _counts(compiled(dag).plan) == {"s": 2, "a": 2, "b": 3}


def test_the_plan_says_which_line_decided():
    why = compiled(sketch("s>a*2", "a=>b", "b>c")).plan
    assert why.by_name["a"].why.text.startswith("StatelessPartitioner set by code at tests/compiler/sketches.py:")
    assert why.by_name["b"].why.text.startswith("mirrors a, by PARTITION_PARALLEL (code at tests/compiler/sketches.py:")
    assert why.by_name["c"].why.text == "default"


@pytest.mark.parametrize(
    ("edges", "counts", "mirrors"),
    [
        (["s>a*3", "a=>b", "b=>c", "c>d"], {"a": 3, "b": 3, "c": 3, "d": 1}, {"b": "a", "c": "a"}),
        (["s>a*2", "a=>b", "a=>c", "b=>d", "c=>d"], {"a": 2, "b": 2, "c": 2, "d": 2}, {"b": "a", "c": "a", "d": "a"}),
        (["s*2=>a", "a>b"], {"s": 2, "a": 2, "b": 1}, {"a": "s"}),
        (["s=>a", "a=>b"], {"s": 1, "a": 1, "b": 1}, {"a": "s", "b": "s"}),
        (["s>a*2", "t>b*3", "a=>c", "b>c"], {"a": 2, "b": 3, "c": 2}, {"c": "a"}),
        (["s>a*2", "a=>b*5"], {"a": 2, "b": 2}, {"b": "a"}),
    ],
    ids=[
        "a chain follows its head as far as it is parallel",
        "arms of a diamond follow one head",
        "an input operator may be the head",
        "a head of one makes mirrors of one",
        "beside a parallel input there may be a plain one",
        "a partitioner of the mirror's own follows the count in its context",
    ],
)
def test_mirrors_follow_the_head_of_their_chain(edges, counts, mirrors):
    plan = compiled(sketch(*edges)).plan
    assert counts.items() <= _counts(plan).items()
    assert {o.name: o.parallel_with for o in plan.operators if o.parallel_with} == mirrors
    assert all(not partition.keys for name in mirrors for partition in plan.by_name[name].partitions)


def test_mirrors_follow_a_head_that_gets_other_partitions_while_it_runs():
    dag = Dag()
    head, mirror = dag.add_operator("head", Step()), dag.add_operator("mirror", Step())
    dag.add_stream("into", dag.add_operator("source", Source()).out, head.one)
    dag.add_stream("on", head.out, mirror.one)
    dag.set_operator_attribute(head, OperatorContext.PARTITIONER, StatelessPartitioner(2))
    dag.set_input_port_attribute(mirror.one, PortContext.PARTITION_PARALLEL, True)
    before = compiled(dag)
    now = repartitioned(before, {"head": redefined(before, "head", wanted=3)})
    assert _counts(now.plan) == {"source": 1, "head": 3, "mirror": 3}


def test_the_great_parallel_chain():
    """o1; o2 as two, and o3, o3_1, o3_2, o4 after it; o5 alone again: four stages, of which two slots hold five."""
    dag = sketch("o1>o2*2", "o2=>o3", "o2=>o3_1", "o2=>o3_2", "o3=>o4", "o3_1=>o4", "o3_2=>o4", "o4>o5")
    plan = compiled(dag).plan
    assert _counts(plan) == {"o1": 1, "o2": 2, "o3": 2, "o3_1": 2, "o3_2": 2, "o4": 2, "o5": 1}
    inner = {"o2", "o3", "o3_1", "o3_2", "o4"}
    routes = {(s.source.operator, k.operator): k.routing for s in plan.streams for k in s.sinks}
    assert {r for (a, b), r in routes.items() if {a, b} <= inner} == {Routing.STRAIGHT}
    levels = {stage.level: set[str]() for stage in plan.stages}
    for stage in plan.stages:
        levels[stage.level] |= set(stage.operators)
    assert levels == {0: {"o1", *inner}, 1: {"o5"}}
    assert all(not partition.keys for name in inner - {"o2"} for partition in plan.by_name[name].partitions)
    (unified,) = [stream for stream in plan.streams if stream.unifiers]
    assert [(u.inputs, str(u.serves)) for u in unified.unifiers] == [(("o4[0]", "o4[1]"), "o5.one")]


def test_a_loop_of_mirrors_has_one_head_whatever_was_declared_first():
    def looped(*names: str) -> Plan:
        dag = Dag()
        for name in names:
            dag.add_operator(name, {"s": Source, "a": Step, "d": Delay}[name]())
        s, a, d = dag.operator("s"), dag.operator("a"), dag.operator("d")
        dag.add_stream("1", s.out, a.one)
        dag.add_stream("2", a.out, d.input)
        dag.add_stream("3", d.output, a.two)
        dag.set_operator_attribute(a, OperatorContext.PARTITIONER, StatelessPartitioner(2))
        for port in (d.input, a.two):
            dag.set_input_port_attribute(port, PortContext.PARTITION_PARALLEL, True)
        return compiled(dag).plan

    assert {o.name: o.parallel_with for o in looped("s", "a", "d").operators} == {"s": None, "a": None, "d": "a"}
    assert {o.name: o.parallel_with for o in looped("d", "a", "s").operators} == {"s": None, "a": None, "d": "a"}


@pytest.mark.parametrize("ports", [("one", "two"), ("two", "one")], ids=["declared last", "declared first"])
def test_a_mirror_follows_what_leads_in_and_not_its_own_delay(ports):
    dag = sketch("s>h*2")
    a, d = dag.add_operator("a", Step()), dag.add_operator("d", Delay())
    ahead, behind = (getattr(a, port) for port in ports)
    dag.add_stream("2", dag.operator("h").out, ahead)
    dag.add_stream("3", a.out, d.input)
    dag.add_stream("4", d.output, behind)
    for inlet in (ahead, behind, d.input):
        dag.set_input_port_attribute(inlet, PortContext.PARTITION_PARALLEL, True)
    assert {o.name: o.parallel_with for o in compiled(dag).plan.operators if o.parallel_with} == {"a": "h", "d": "h"}


class _KeysAll(Partitioner):
    """As many partitions as required, which share the keys of every input in the context."""

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        owned = assign_keys(max(1, context.parallel_count))
        return [Partition(partitions[0].operator, dict.fromkeys(context.input_ports, keys)) for keys in owned]


@cases(
    "edges, told",
    ("both inputs", ["s>a", "t>b", "a>c", "b>c"], {"one", "two"}),
    ("not the parallel one", ["s>a", "t>b", "a=>c", "b>c"], {"two"}),
    ("nor where it is the last", ["s>a", "t>b", "a>c", "b=>c"], {"one"}),
)
def test_a_partitioner_receives_the_inputs_that_can_be_keyed(edges, told):
    dag = sketch(*edges)
    dag.set_operator_attribute(dag.operator("c"), OperatorContext.PARTITIONER, _KeysAll())
    assert {port for keys in _keys(compiled(dag).plan, "c") for port in keys} == told


class _Raises(Partitioner):
    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        raise RuntimeError("no idea")


class _Answers(Partitioner):
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Any:
        return self.answer


@pytest.mark.parametrize(
    ("partitioner", "problem"),
    [
        (Deal(0), "the Deal of a returned no partitions"),
        (_Raises(), "the _Raises of a raised RuntimeError: no idea"),
        (_Answers(None), "the _Answers of a returned no partitions"),
        (_Answers([1, 2]), "the _Answers of a returned int, not Partition"),
        (
            _Answers([Partition(Step(), {"oen": PartitionKeys(0, frozenset({0}))})]),
            "the _Answers of a keys 'oen', which is not an input of a",
        ),
        (_Answers([Partition(Step(), {"one": {0}})]), "the _Answers of a keys 'one' by set, not PartitionKeys"),
    ],
    ids=["none", "it raises", "nothing at all", "no partitions but numbers", "keys of no input", "keys that are none"],
)
def test_a_partitioner_that_answers_nonsense_is_reported(partitioner, problem):
    dag = sketch("s>a")
    dag.set_operator_attribute(dag.operator("a"), OperatorContext.PARTITIONER, partitioner)
    assert [(fault.code, fault.problem) for fault in faults(dag)] == [("partition-invalid", problem)]


def test_counting_waits_until_the_shape_is_right():
    dag = sketch("s>a", "a>b", "b>a")
    dag.set_operator_attribute(dag.operator("a"), OperatorContext.PARTITIONER, _Raises())
    assert codes(dag) == ["loop-undelayed"]


class _Limited(Step):
    limit: int = 0


class _EachItsOwn(Partitioner):
    def __init__(self, *limits: int) -> None:
        self.limits = limits

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        (first,) = partitions
        owned = assign_keys(len(self.limits))
        return [
            Partition(first.operator.configured({"limit": limit}), {"one": keys})
            for limit, keys in zip(self.limits, owned, strict=True)
        ]


def _limited(*limits: int) -> Plan:
    dag = Dag()
    last = dag.add_operator("last", _Limited())
    dag.add_stream("on", dag.add_operator("source", Source()).out, last.one)
    dag.set_operator_attribute(last, OperatorContext.PARTITIONER, _EachItsOwn(*limits))
    plan = compiled(dag).plan
    return plan.model_copy(
        update={"operators": tuple(o.model_copy(update={"attributes": {}}) for o in plan.operators)}
    )  # so that nothing but the partitions differs


def test_a_partition_bears_what_it_is_configured_with_otherwise_than_its_operator():
    assert [dict(p.properties) for p in _limited(0, 2).by_name["last"].partitions] == [{}, {"limit": 2}]
    assert fingerprint(_limited(1, 2)) != fingerprint(_limited(3, 4))


STEP = Step()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (5, "raised TypeError: 'int' object is not iterable"),
        ([None], "returned None, not Partition"),
        ([Partition], "returned the class Partition, not Partition"),
        ([[Partition(STEP)]], "returned list, not Partition"),
        ([Partition(5)], "returned a Partition of int, not an operator"),
        ([Partition(STEP, keys=None)], "returned keys of None, not by port"),
        ([Partition(STEP, {5: PartitionKeys(0, frozenset({0}))})], "keys 5, which is not an input of last"),
        ([Partition(STEP, {"one": 3})], "keys 'one' by int, not PartitionKeys"),
        ([Partition(STEP, {"one": PartitionKeys("a", frozenset())})], "keys 'one' with a mask of str, not int"),
        ([Partition(STEP, {"one": PartitionKeys(1.5, frozenset())})], "keys 'one' with a mask of float, not int"),
        ([Partition(STEP, {"one": PartitionKeys(1, None)})], "keys 'one' by None, not frozenset of int"),
        ([Partition(STEP, {"one": PartitionKeys(1, {"a"})})], "keys 'one' by set, not frozenset of int"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_answers_of_another_type_are_reported(answer, said):
    dag = Dag()
    last = dag.add_operator("last", Step())
    dag.add_stream("on", dag.add_operator("source", Source()).out, last.one)
    dag.set_operator_attribute(last, OperatorContext.PARTITIONER, _Answers(answer))
    (fault,) = faults(dag)
    assert (fault.code, fault.problem) == ("partition-invalid", f"the _Answers of last {said}")
