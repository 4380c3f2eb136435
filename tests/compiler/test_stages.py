"""Stages: what runs as one, where the plan is cut, why, how many exchanges lie above each, and how work is shared."""

from collections.abc import Iterator
from typing import Any

import pytest

from dagkit import DagContext, InputPort, OperatorContext, OutputPort, PortContext, SplittableOperator
from dagkit.plan.model import CutKind, Place, Routing
from tests.cases import cases
from tests.compiler.cast import Deal, Parity, Step, Summed, compiled
from tests.compiler.sketches import sketch


@cases(
    "edges, levels",
    ("a chain is one stage, and its source another", "s>a a>b b>c", {"s": 0, "abc": 0}),
    ("a fan-out ends its stage", "s>a a>b a>c", {"s": 0, "a": 0, "b": 0, "c": 0}),
    ("a join starts one", "s>a t>b a>c b>c", {"s": 0, "a": 0, "t": 0, "b": 0, "c": 0}),
    ("arms of a diamond are stages", "s>a a>b b>c a>d c>e d>e", {"s": 0, "a": 0, "bc": 0, "d": 0, "e": 0}),
    ("two readers of a source are two stages", "s>a s>b", {"s": 0, "a": 0, "b": 0}),
    ("a parallel chain is one stage", "s>a*2 a=>b b=>c", {"s": 0, "abc": 0}),
    ("it ends where its partitions are gathered, by an exchange", "s>a*2 a=>b b>c", {"s": 0, "ab": 0, "c": 1}),
    ("it begins where items are keyed, by an exchange", "s>a a>b*2 b=>c", {"s": 0, "a": 0, "bc": 1}),
    ("equal counts do not make a chain of keyed operators", "s>a*2 a>b*2", {"s": 0, "a": 0, "b": 1}),
    ("each exchange on the way counts", "s>a*2 a>b*3 b>c", {"s": 0, "a": 0, "b": 1, "c": 2}),
    ("the longest way counts", "s>a a>b*2 a>c b>d c>d", {"s": 0, "a": 0, "b": 1, "c": 0, "d": 2}),
    ("a delay stands alone, and the join of a loop is on top", "s>a a>b b>~d ~d>a", {"s": 0, "ab": 0, "d": 0}),
    ("operators run upstream first, and ties go by name", "s>c s>b c>a b>a", {"s": 0, "b": 0, "c": 0, "a": 0}),
    ("coming round is another window, not another level", "s>a a>b*2 b>~d ~d>a", {"s": 0, "a": 0, "b": 1, "d": 2}),
    ("a parallel fan-out ends its stage as well", "s>a*2 a=>b a=>c", {"s": 0, "a": 0, "b": 0, "c": 0}),
)
def test_stages_and_how_many_exchanges_lie_above_each(edges, levels):
    plan = compiled(sketch(edges)).plan
    assert list({"".join(stage.operators): stage.level for stage in plan.stages}.items()) == list(levels.items())
    assert plan.levels == max(levels.values()) + 1
    assert {stage.name for stage in plan.stages if stage.place is Place.DRIVER} == {"s", "t"} & set(levels)
    assert all(stage.slots == plan.by_name[stage.operators[0]].count for stage in plan.stages)


DRIVER = ("driver", "s is an input operator: it finds work on the driver")
ALL = ("counts", "each of the 3 partitions of b gets every item")
FAN_OUT, JOIN = ("fan-out", "a feeds 2 inputs"), ("join", "c is fed by 2 outputs")
BY_KEY = "items go to the partition of b that owns their key"
DELAYED = ("delay", "d holds items back until the next window"), ("delay", "d passes items on in the next window")


@cases(
    "edges, cuts",
    ("an input operator finds work on the driver", "s>a a>b", {}),
    ("a fan-out cuts each of its wires", "s>a a>b a>c", {"a>b": FAN_OUT, "a>c": FAN_OUT}),
    ("a join cuts each of its wires", "s>a s>b a>c b>c", {"a>c": JOIN, "b>c": JOIN}),
    ("keyed partitions are sent to by key", "s>a a>b*3", {"a>b": ("keys", BY_KEY)}),
    ("from several", "s>a*2 a>b*3", {"a>b": ("keys", f"{BY_KEY}, from each of 2")}),
    ("several send to the one there is", "s>a*3 a>b", {"a>b": ("counts", "3 partitions of a send to one of b")}),
    ("an input without keys receives from each", "s>a s>c c>b*3 a>b*3", {"c>b": ("keys", BY_KEY), "a>b": ALL}),
    ("a delay is cut on both sides", "s>a a>~d ~d>a", {"a>d": DELAYED[0], "d>a": DELAYED[1]}),
)
def test_cuts_and_why(edges, cuts):
    found = {f"{cut.source.operator}>{cut.sink.operator}": cut for cut in compiled(sketch(edges)).plan.cuts}
    driver = {edge: DRIVER for edge in edges.replace("*", " ").split() if edge.startswith("s>")}
    assert {wire: (cut.kind.value, cut.reason) for wire, cut in found.items()} == driver | cuts


@cases(
    "edges, routing",
    ("the driver deals to the only partition as to several", "s>a", Routing.DISTRIBUTED),
    ("one sends to one", "s>a a>z", Routing.STRAIGHT),
    ("the driver sends by key", "s>z*3", Routing.KEYED),
    ("a mirror is sent to straight", "s>a*2 a=>z", Routing.STRAIGHT),
    ("several send to one", "s>a*2 a>z", Routing.GATHERED),
    ("several send to several by key", "s>a*2 a>z*2", Routing.KEYED),
    ("an input without keys gets every item", "s>b t>a a>z*2 b>z*2", Routing.BROADCAST),
    ("a delay sends to the next window", "s>z z>a a>~d ~d>z", Routing.DELAYED),
)
def test_the_last_wire_is_routed(edges, routing):
    plan = compiled(sketch(edges)).plan
    source = edges.split()[-1].split(">")[0].strip("=~").split("*")[0]
    (stream,) = [stream for stream in plan.streams if stream.name == source]
    assert {sink.routing for sink in stream.sinks} == {routing}


def test_blocks_are_distributed_where_no_partition_owns_keys():
    dag = sketch("s>a")
    dag.set_operator_attribute(dag.operator("a"), OperatorContext.PARTITIONER, Deal(3))
    (into_a,) = compiled(dag).plan.streams
    assert [sink.routing for sink in into_a.sinks] == [Routing.DISTRIBUTED]


def test_two_stages_may_bear_names_that_look_alike():
    dag = sketch("s>a a>b")
    odd = dag.add_operator("a + b", Step())
    dag.stream("s").add_sink(odd.one)
    dag.add_stream("3", dag.operator("b").out, odd.two)
    plan = compiled(dag).plan
    assert [stage.operators for stage in plan.stages] == [("s",), ("a", "b"), ("a + b",)]
    assert len({stage.name for stage in plan.stages}) == 3


def test_a_sliding_window_ends_its_stage_and_what_does_not_route_does_not_cut():
    dag = sketch("s>a a>b")
    dag.set_operator_attribute(dag.operator("a"), OperatorContext.APPLICATION_WINDOW_COUNT, 4)
    dag.set_operator_attribute(dag.operator("a"), OperatorContext.SLIDE_BY_WINDOW_COUNT, 2)
    (cut,) = [cut for cut in compiled(dag).plan.cuts if cut.source.operator == "a"]
    assert cut.kind is CutKind.UNIFIER
    dag = sketch("s>a a>b")
    dag.set_attribute(DagContext.STREAMING_WINDOW_SIZE_MILLIS, 100)
    dag.set_input_port_attribute(dag.operator("b").one, PortContext.STREAM_CODEC, Parity())
    assert [stage.name for stage in compiled(dag).plan.stages] == ["s", "a + b"]


@cases(
    "length, name",
    ("six are all named", 6, "o1 + o2 + o3 + o4 + o5 + o6"),
    ("seven by their ends", 7, "o1 + \N{HORIZONTAL ELLIPSIS} + o7 (7 operators)"),
    ("two hundred as well", 200, "o1 + \N{HORIZONTAL ELLIPSIS} + o200 (200 operators)"),
)
def test_a_long_stage_is_called_by_its_ends(length, name):
    plan = compiled(sketch(" ".join(["s>o1", *(f"o{i}>o{i + 1}" for i in range(1, length))]))).plan
    assert [stage.name for stage in plan.stages] == ["s", name]
    assert {operator.stage for operator in plan.operators} == {"s", name}


class Pieces(SplittableOperator[int]):
    kind = "cast.pieces/1"
    work = InputPort[Any](main=True)
    side = InputPort[Any](optional=True)
    out = OutputPort(int)

    @side.process
    def note(self, item: int) -> None: ...

    def process(self, element: int, tracker: Any) -> Iterator[int]:
        yield element


SHARED = "p is splittable: its work is distributed over its 2 partitions"


@pytest.mark.parametrize(
    ("senders", "receivers", "routing", "kind", "reason"),
    [
        (1, 1, Routing.STRAIGHT, CutKind.WORK, "p is splittable: work that a window leaves comes back to it"),
        (3, 1, Routing.GATHERED, CutKind.COUNTS, "3 partitions of a send to one of p"),
        (1, 2, Routing.DISTRIBUTED, CutKind.WORK, SHARED),
        (3, 2, Routing.DISTRIBUTED, CutKind.WORK, SHARED),
    ],
)
def test_work_begins_a_stage_and_is_shared_and_side_values_reach_every_partition(
    senders, receivers, routing, kind, reason
):
    plan = compiled(sketch(f"s>a*{senders} s>o a>p.work*{receivers} o>p.side", p=Pieces)).plan
    sinks = {stream.name: stream.sinks[-1].routing for stream in plan.streams}
    (cut,) = [cut for cut in plan.cuts if cut.stream == "a"]
    assert (sinks["a"], cut.kind, cut.reason) == (routing, kind, reason)
    assert cut.exchange == (routing is not Routing.STRAIGHT)
    assert sinks["o"] is (Routing.STRAIGHT if receivers == 1 else Routing.BROADCAST)


def _unifiers(dag):
    return next(s.unifiers for s in compiled(dag).plan.streams if s.name == "a")


def _sent(partitions, receivers, limit=None, single=None, into=None):
    """a as so many partitions, b as so many more; UNIFIER_LIMIT and UNIFIER_SINGLE_FINAL of a.out and of b.one."""
    dag = sketch(f"s>a*{partitions} a>b*{receivers}")
    a, b = dag.operator("a"), dag.operator("b")
    if limit is not None:
        dag.set_output_port_attribute(a.out, PortContext.UNIFIER_LIMIT, limit)
    if single is not None:
        dag.set_output_port_attribute(a.out, PortContext.UNIFIER_SINGLE_FINAL, single)
    if into is not None:
        dag.set_input_port_attribute(b.one, PortContext.UNIFIER_SINGLE_FINAL, into)
    return dag


@cases(
    "dag, inner, last",
    ("one to one needs none", _sent(1, 1), 0, 0),
    ("one to several needs none", _sent(1, 3), 0, 0),
    ("several to one need one", _sent(2, 1), 0, 1),
    ("five with a limit of three: three are merged first, and two pass on", _sent(5, 1, limit=3), 1, 1),
    ("eight with a limit of four: two of four", _sent(8, 1, limit=4), 2, 1),
    ("two to three: one for each of the three", _sent(2, 3), 0, 3),
    ("four to three, limit two: two, then one for each", _sent(4, 3, limit=2), 2, 3),
    ("five to three, limit two: two, then one, then one for each", _sent(5, 3, limit=2), 3, 3),
    ("a single last one serves all", _sent(2, 3, single=True), 0, 1),
    ("a single last one behind a cascade", _sent(4, 3, limit=2, single=True), 2, 1),
    ("a single last one behind a cascade that passes one on", _sent(5, 3, limit=2, single=True), 3, 1),
    ("the sink may ask for a single last one", _sent(2, 3, into=True), 0, 1),
    ("the sink's no goes before the source's yes", _sent(2, 3, single=True, into=False), 0, 3),
    ("the sink's yes goes before the source's no", _sent(2, 3, single=False, into=True), 0, 1),
    ("a limit of one cannot make a cascade", _sent(3, 1, limit=1), 0, 1),
    ("a mirror needs none", sketch("s>a*2 a=>b"), 0, 0),
)
def test_how_many_unifiers(dag, inner, last):
    assert [u.serves is None for u in _unifiers(dag)] == [True] * inner + [False] * last


def test_a_cascade_reads_partitions_then_unifiers():
    assert [(u.name, u.level, u.inputs) for u in _unifiers(_sent(5, 1, limit=2))] == [
        ("a.out#unifier.0", 0, ("a[0]", "a[1]")),
        ("a.out#unifier.1", 0, ("a[2]", "a[3]")),
        ("a.out#unifier.2", 1, ("a.out#unifier.0", "a.out#unifier.1")),
        ("a.out#unifier", 2, ("a.out#unifier.2", "a[4]")),
    ]


@cases(
    "edges, served",
    ("each partition of the sink has its own", "s>a*2 a>b*3", ["b.one[0]", "b.one[1]", "b.one[2]"]),
    ("keyed and plain sinks side by side", "s>a*2 a>b*3 a>c", ["b.one[0]", "b.one[1]", "b.one[2]", "c.one"]),
    ("beside a mirror the other sinks are unified", "s>a*2 a=>b a>c", ["c.one"]),
    ("sinks without keys share the last one", "s>a*2 a>b a>c", [""]),
    ("in whatever order they were led in", "s>a*2 a>c a>b", [""]),
)
def test_whom_a_unifier_serves(edges, served):
    unifiers = _unifiers(sketch(edges))
    assert [u.name for u in unifiers] == [
        f"a.out#unifier to {each}" if "b.one" in each else "a.out#unifier" for each in served
    ]
    assert {(u.inputs, u.kind) for u in unifiers} == {(("a[0]", "a[1]"), "dagkit.merge/1")}


class _Other(Parity):
    """A codec unlike the first."""


@cases(
    "codecs, names",
    ("equal codecs share", (Parity(), Parity()), ["a.out#unifier"]),
    ("unlike codecs do not", (Parity(), _Other()), ["a.out#unifier to b.one[0]", "a.out#unifier to c.one[0]"]),
    ("a codec and none do not", (Parity(), None), ["a.out#unifier to b.one[0]", "a.out#unifier to c.one[0]"]),
)
def test_sinks_share_a_unifier_by_codec(codecs, names):
    dag = sketch("s>a*2 a>b a>c")
    for sink, codec in zip("bc", codecs, strict=True):
        if codec:
            dag.set_input_port_attribute(dag.operator(sink).one, PortContext.STREAM_CODEC, codec)
    assert [u.name for u in _unifiers(dag)] == names


def test_each_group_of_codecs_has_a_cascade_of_its_own():
    dag = sketch("s>a*4 a>b a>c")
    dag.set_input_port_attribute(dag.operator("b").one, PortContext.STREAM_CODEC, Parity())
    dag.set_output_port_attribute(dag.operator("a").out, PortContext.UNIFIER_LIMIT, 2)
    assert [(u.name, u.level) for u in _unifiers(dag)] == [
        ("a.out#unifier.0", 0),
        ("a.out#unifier.1", 0),
        ("a.out#unifier to b.one[0]", 1),
        ("a.out#unifier.2", 0),
        ("a.out#unifier.3", 0),
        ("a.out#unifier to c.one[0]", 1),
    ]


@cases(
    "windows, step, partitions, names",
    ("one partition slides", 4, 2, 1, ["a.out#slider[0]"]),
    ("several slide, and are merged", 4, 2, 2, ["a.out#slider[0]", "a.out#slider[1]", "a.out#unifier"]),
    ("a step of the whole tumbles", 4, 4, 1, []),
    ("no step tumbles", 4, None, 1, []),
)
def test_sliding_windows_put_a_slider_behind_each_partition(windows, step, partitions, names):
    dag = _sent(partitions, 1)
    dag.set_operator_attribute(dag.operator("a"), OperatorContext.APPLICATION_WINDOW_COUNT, windows)
    dag.set_operator_attribute(dag.operator("a"), OperatorContext.SLIDE_BY_WINDOW_COUNT, step)
    assert [u.name for u in _unifiers(dag)] == names


def test_the_port_brings_its_own_unifier_and_attributes_reach_it():
    dag = sketch("s>a*3 a>b", a=Summed)
    dag.set_unifier_attribute(dag.operator("a").out, OperatorContext.TIMEOUT_WINDOW_COUNT, 2)
    assert [(u.kind, u.attributes) for u in _unifiers(dag)] == [("test.sum/1", {"TIMEOUT_WINDOW_COUNT": 2})]
