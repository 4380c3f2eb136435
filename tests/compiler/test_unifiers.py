"""Unifiers: how many merging operators stand between M partitions and N, at which level, and whom they serve."""

from dagkit import OperatorContext, PortContext
from tests.cases import cases
from tests.compiler.cast import Parity, Summed, compiled
from tests.compiler.sketches import sketch


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
