"""Partitions of a whole graph: how many of each operator, which keys they own, who said so, and what mirrors what."""

import sys

import pytest

from dagkit import InputPort, KeyedState, Operator, Partition, Partitioner, PartitionKeys, StatelessPartitioner
from dagkit.api.attributes import OperatorContext, PortContext
from dagkit.api.partitioning import assign_keys
from dagkit.compiler.repartition import redefined, repartitioned
from dagkit.errors import Severity
from dagkit.plan import fingerprint
from dagkit.plan.model import Routing
from tests.cases import cases
from tests.compiler.cast import Deal, Dealer, Parity, Step, codes, compiled, faults, told
from tests.compiler.sketches import sketch


def _counts(plan):
    return {operator.name: operator.count for operator in plan.operators}


def _mirrors(plan):
    return {operator.name: operator.parallel_with for operator in plan.operators if operator.parallel_with}


def _keys(plan, name):
    partitions = plan.by_name[name].partitions
    return [{port: (keys.mask, keys.keys) for port, keys in one.keys.items()} for one in partitions]


def _two_streams(first, second):
    """node1 into two inputs of node2, wired in this order; node2 runs as five."""
    return sketch(f"s>node1 node1>node2.{first}*5 node1.more>node2.{second}")


@pytest.mark.parametrize("wired", [("one", "two"), ("two", "one")], ids=["in order", "out of order"])
def test_only_the_first_declared_of_the_connected_inputs_is_keyed(wired):
    owned = [(0, 5), (1, 6), (2, 7), (3,), (4,)]
    assert _keys(compiled(_two_streams(*wired)).plan, "node2") == [{"one": (7, keys)} for keys in owned]


class _Answers(Partitioner):
    """Gives an answer, or what a function makes of its context and of the operator."""

    def __init__(self, answer):
        self.answer = answer

    def define_partitions(self, partitions, context):
        return self.answer(context, partitions[0].operator) if callable(self.answer) else self.answer


def _partitioned_by(answer, edges="source>last", name="last"):
    dag = sketch(edges)
    dag.set_operator_attribute(dag.operator(name), OperatorContext.PARTITIONER, _Answers(answer))
    return dag


def test_a_partitioner_may_key_several_inputs():
    dag = _two_streams("one", "two")
    three = _Answers(lambda context, operator: [Partition(operator, {"one": k, "two": k}) for k in assign_keys(3)])
    dag.set_operator_attribute(dag.operator("node2"), OperatorContext.PARTITIONER, three)
    owned = [(3, (0, 3)), (3, (1,)), (3, (2,))]
    assert _keys(compiled(dag).plan, "node2") == [{"one": keys, "two": keys} for keys in owned]


@cases(
    "attribute, count, source",
    ("the operator partitions itself", ..., 2, "operator"),
    ("nothing partitions it", None, 1, "default"),
    ("the attribute goes before the operator", StatelessPartitioner(4), 4, "code"),
)
def test_what_decides_the_partitions(attribute, count, source):
    dag = sketch("s>dealer", dealer=Dealer)
    dealer = dag.operator("dealer")
    if attribute is not ...:
        dag.set_operator_attribute(dealer, OperatorContext.PARTITIONER, attribute)
    planned = compiled(dag).plan.by_name["dealer"]
    assert (planned.count, planned.why.source) == (count, source)
    dag = sketch("s>a a>b*3")
    dag.set_attribute(OperatorContext.PARTITIONER, StatelessPartitioner(2))
    assert _counts(compiled(dag).plan) == {"s": 2, "a": 2, "b": 3}, "that of the application is for all without one"


@pytest.mark.parametrize(
    ("edges", "refused"),
    [("s*2>a", True), ("s*1>a", False), ("s*2=>a", False)],
    ids=["it runs once", "one is what it has", "others mirror its number"],
)
def test_an_input_operator_gets_no_partitions_of_its_own(edges, refused):
    expected = ["s runs once, on the driver, but its partitioner makes 2 partitions"]
    assert [fault.problem for fault in told(sketch(edges))] == (expected if refused else [])


def test_the_plan_says_which_line_decided():
    why = {operator.name: operator.why.text for operator in compiled(sketch("s>a*2 a=>b b>c")).plan.operators}
    assert why["a"].startswith("StatelessPartitioner set by code at tests/compiler/sketches.py:")
    assert why["b"].startswith("mirrors a, by PARTITION_PARALLEL (code at tests/compiler/sketches.py:")
    assert why["c"] == "default"


@cases(
    "edges, counts, mirrors",
    ("a chain while parallel", "s>a*3 a=>b b=>c c>d", {"a": 3, "b": 3, "c": 3, "d": 1}, {"b": "a", "c": "a"}),
    ("arms of a diamond", "s>a*2 a=>b a=>c b=>d c=>d", dict.fromkeys("abcd", 2), dict.fromkeys("bcd", "a")),
    ("an input operator may be the head", "s*2=>a a>b", {"s": 2, "a": 2, "b": 1}, {"a": "s"}),
    ("a head of one makes mirrors of one", "s=>a a=>b", {"s": 1, "a": 1, "b": 1}, {"a": "s", "b": "s"}),
    ("beside a parallel input, a plain one", "s>a*2 t>b*3 a=>c b>c", {"a": 2, "b": 3, "c": 2}, {"c": "a"}),
    ("a mirror's own partitioner follows the count in its context", "s>a*2 a=>b*5", {"a": 2, "b": 2}, {"b": "a"}),
)
def test_mirrors_follow_the_head_of_their_chain(edges, counts, mirrors):
    plan = compiled(sketch(edges)).plan
    assert counts.items() <= _counts(plan).items()
    assert _mirrors(plan) == mirrors
    assert not any(one.keys for name in mirrors for one in plan.by_name[name].partitions)


def test_the_great_parallel_chain():
    """o1; o2 as two, and o3, o3_1, o3_2, o4 after it; o5 alone again: four stages, of which two slots hold five."""
    plan = compiled(sketch("o1>o2*2 o2=>o3 o2=>o3_1 o2=>o3_2 o3=>o4 o3_1=>o4 o3_2=>o4 o4>o5")).plan
    inner = {"o2", "o3", "o3_1", "o3_2", "o4"}
    assert _counts(plan) == {"o1": 1, **dict.fromkeys(inner, 2), "o5": 1}
    routes = {(s.source.operator, k.operator): k.routing for s in plan.streams for k in s.sinks}
    assert {r for (a, b), r in routes.items() if {a, b} <= inner} == {Routing.STRAIGHT}
    levels = {operator: stage.level for stage in plan.stages for operator in stage.operators}
    assert levels == {**dict.fromkeys({"o1", *inner}, 0), "o5": 1}
    assert not any(one.keys for name in inner - {"o2"} for one in plan.by_name[name].partitions)
    (unified,) = [stream for stream in plan.streams if stream.unifiers]
    assert [(u.inputs, str(u.serves)) for u in unified.unifiers] == [(("o4[0]", "o4[1]"), "o5.one")]


def test_mirrors_follow_a_head_that_gets_other_partitions_while_it_runs():
    before = compiled(sketch("source>head*2 head=>mirror"))
    now = repartitioned(before, {"head": redefined(before, "head", wanted=3)})
    assert _counts(now.plan) == {"source": 1, "head": 3, "mirror": 3}


@pytest.mark.parametrize("declared", ["s a ~d", "~d a s"])
def test_a_loop_of_mirrors_has_one_head_whatever_was_declared_first(declared):
    assert _mirrors(compiled(sketch(f"{declared} s>a*2 a=>~d ~d=>a", a=Step)).plan) == {"d": "a"}


@pytest.mark.parametrize("edges", ["s>h*2 h=>a a=>~d ~d=>a", "s>h*2 ~d=>a h=>a a=>~d"], ids=["first", "last"])
def test_a_mirror_follows_what_leads_in_and_not_its_own_delay(edges):
    assert _mirrors(compiled(sketch(edges)).plan) == {"a": "h", "d": "h"}


@cases(
    "edges, keyed",
    ("both inputs", "s>a t>b a>c b>c", {"one", "two"}),
    ("not the parallel one", "s>a t>b a=>c b>c", {"two"}),
    ("nor where it is the last", "s>a t>b a>c b=>c", {"one"}),
)
def test_a_partitioner_receives_the_inputs_that_can_be_keyed(edges, keyed):
    def answer(context, operator):
        owned = assign_keys(max(1, context.parallel_count))
        return [Partition(operator, dict.fromkeys(context.input_ports, keys)) for keys in owned]

    plan = compiled(_partitioned_by(answer, edges, "c")).plan
    assert {port for keys in _keys(plan, "c") for port in keys} == keyed


def _raises(context, operator):
    raise RuntimeError("no idea")


def _leaves(context, operator):
    sys.exit(3)


STEP, KEYS = Step(), PartitionKeys(0, frozenset({0}))


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (_raises, "raised RuntimeError: no idea"),
        (_leaves, "raised SystemExit: 3"),
        (5, "raised TypeError: 'int' object is not iterable"),
        (None, "returned no partitions"),
        ([1, 2], "returned int, not Partition"),
        ([None], "returned None, not Partition"),
        ([Partition], "returned the class Partition, not Partition"),
        ([[Partition(STEP)]], "returned list, not Partition"),
        ([Partition(5)], "returned a Partition of int, not an operator"),
        ([Partition(STEP, keys=None)], "returned keys of None, not by port"),
        ([Partition(STEP, {"oen": KEYS})], "keys 'oen', which is not an input of last"),
        ([Partition(STEP, {5: KEYS})], "keys 5, which is not an input of last"),
        ([Partition(STEP, {"one": {0}})], "keys 'one' by set, not PartitionKeys"),
        ([Partition(STEP, {"one": PartitionKeys("a", frozenset())})], "keys 'one' with a mask of str, not int"),
        ([Partition(STEP, {"one": PartitionKeys(1.5, frozenset())})], "keys 'one' with a mask of float, not int"),
        ([Partition(STEP, {"one": PartitionKeys(1, None)})], "keys 'one' by None, not frozenset of int"),
        ([Partition(STEP, {"one": PartitionKeys(1, {"a"})})], "keys 'one' by set, not frozenset of int"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_invalid_answer_of_a_partitioner_is_reported(answer, problem):
    (fault,) = faults(_partitioned_by(answer))
    assert (fault.code, fault.problem) == ("partition-invalid", f"the _Answers of last {problem}")
    in_a_circle = _partitioned_by(answer, "s>a a>b b>a", "a")
    assert codes(in_a_circle) == ["loop-undelayed"], "partitions are counted when the shape is right"


class _Limited(Step):
    limit: int = 0


def _limited(*limits):
    def answer(context, operator):
        keyed = zip(limits, assign_keys(len(limits)), strict=True)
        return [Partition(operator.configured({"limit": limit}), {"one": keys}) for limit, keys in keyed]

    dag = sketch("s>last", last=_Limited)
    dag.set_operator_attribute(dag.operator("last"), OperatorContext.PARTITIONER, _Answers(answer))
    plan = compiled(dag).plan
    # so that nothing but the partitions differs
    return plan.model_copy(update={"operators": tuple(o.model_copy(update={"attributes": {}}) for o in plan.operators)})


def test_a_partition_bears_what_it_is_configured_with_otherwise_than_its_operator():
    assert [dict(p.properties) for p in _limited(0, 2).by_name["last"].partitions] == [{}, {"limit": 2}]
    assert fingerprint(_limited(1, 2)) != fingerprint(_limited(3, 4))


class Plain(Operator):
    items = InputPort(int)

    def process(self, item: int) -> None: ...


class ByKey(Plain):
    items = InputPort(int, key=lambda item: item % 2)


class Counting(Plain):
    counts = KeyedState[int, int](int)


class Keys(Partitioner):
    """Gives each partition these keys of the first input."""

    def __init__(self, *keys):
        self.keys = keys

    def define_partitions(self, partitions, context):
        port = context.input_ports[0]
        return [Partition(partitions[0].operator, {port: k} if k is not None else {}) for k in self.keys]


def _owns(mask, *keys):
    return PartitionKeys(mask, frozenset(keys))


def _told(operator, partitioner, *, by_driver=False, codec=None):
    dag = sketch("s>count" if by_driver else "s>step step>count", count=operator)
    dag.set_operator_attribute(operator, OperatorContext.PARTITIONER, partitioner)
    if codec is not None:
        dag.set_input_port_attribute(operator.items, PortContext.STREAM_CODEC, codec)
    return told(dag)


WARNING, ERROR = Severity.WARNING, Severity.ERROR
NO_KEYS = "no partition of count owns keys of count.items, so each item reaches"
ANY = "any partition may get any item, whatever its STREAM_CODEC"


@cases(
    "operator, by_driver, codec, severity, said",
    ("plain", Plain(), False, None, WARNING, NO_KEYS),
    ("a codec", Plain(), False, Parity(), ERROR, "whatever its STREAM_CODEC says"),
    ("a codec, distributed", Plain(), True, Parity(), ERROR, ANY),
    ("a key", ByKey(), False, None, ERROR, "reaches all 3 of them, whatever its key= says"),
    ("a key, distributed", ByKey(), True, None, ERROR, "whatever its key= says"),
    ("keyed state", Counting(), False, None, ERROR, "whatever its KeyedState 'counts' says"),
    ("keyed state, distributed", Counting(), True, None, ERROR, "whatever its KeyedState 'counts' says"),
)
def test_partitions_without_keys_are_reported(operator, by_driver, codec, severity, said):
    (fault,) = _told(operator, Deal(3), by_driver=by_driver, codec=codec)
    assert (fault.code, fault.severity) == ("partition-unkeyed", severity)
    assert said in fault.problem
    assert "assign_keys(count)" in fault.help
    assert fault.where


def test_what_the_driver_distributes_needs_no_keys():
    assert _told(Plain(), Deal(3), by_driver=True) == []


@pytest.mark.parametrize("keys", [*map(assign_keys, (1, 2, 3, 5)), [_owns(1, 0), _owns(3, 1), _owns(3, 3)]])
def test_keys_are_right_that_are_assigned_or_share_everything_out_under_unequal_masks(keys):
    assert _told(ByKey(), Keys(*keys)) == []


@cases(
    "keys, said",
    ("one is left out", [_owns(3, 0), _owns(3, 1), _owns(3, 2)], "some keys have no owner, and their items would be"),
    ("a key outside its mask", [_owns(1, 0), _owns(1, 3)], "some keys have no owner"),
    ("one has two owners", [_owns(1, 0), _owns(1, 0, 1)], "two partitions own the same key, and its items would be"),
    ("under unequal masks", [_owns(1, 0), _owns(1, 1), _owns(3, 3)], "two partitions own the same"),
    ("none", [_owns(0, 0), None], "1 of 2 partitions have none of them"),
    ("no mask", [_owns(-1, 0)], "a mask is negative"),
)
def test_keys_that_lose_or_double_items_are_reported(keys, said):
    (fault,) = _told(ByKey(), Keys(*keys))
    assert fault.code == "partition-invalid"
    assert f"the Keys of count keys 'items' so that {said}" in fault.problem
    assert "assign_keys(count)" in fault.help
