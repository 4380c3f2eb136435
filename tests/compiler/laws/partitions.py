"""Partitions: which operators may have several, and how mirrors hang together."""

from dagkit import OperatorContext, PortContext, StatelessPartitioner
from tests.compiler.cast import Deal, Dealer, Parity, Settled, SettledDealer
from tests.compiler.laws.drawing import Laws
from tests.compiler.sketches import fed, partition, sketch, steps

law = Laws()
_FORBIDDEN = "partition-forbidden: settled may not be partitioned, but "


def _mirrors(dag, *inlets, mirrors=True):
    for inlet in inlets:
        dag.set_input_port_attribute(inlet, PortContext.PARTITION_PARALLEL, mirrors)


@law.reports(_FORBIDDEN + "PARTITION_PARALLEL is set on settled.input")
def an_unpartitionable_operator_mirrors(dag):
    _mirrors(dag, fed(dag, "settled", Settled()).input)


@law.compiles
def an_unpartitionable_operator_is_told_not_to_mirror(dag):
    _mirrors(dag, fed(dag, "settled", Settled()).input, mirrors=False)


@law.reports(_FORBIDDEN + "it has a PARTITIONER")
def an_unpartitionable_operator_has_a_partitioner(dag):
    partition(dag, fed(dag, "settled", Settled()), 2)


@law.reports(_FORBIDDEN + "it has a PARTITIONER")
def an_unpartitionable_operator_gets_the_partitioner_of_all(dag):
    fed(dag, "settled", Settled())
    dag.set_attribute(OperatorContext.PARTITIONER, StatelessPartitioner(2))


@law.reports(_FORBIDDEN + "it is its own Partitioner")
def an_unpartitionable_operator_partitions_itself(dag):
    fed(dag, "settled", SettledDealer())


@law.compiles
def an_unpartitionable_operator_is_told_to_have_no_partitioner(dag):
    dag.set_operator_attribute(fed(dag, "settled", SettledDealer()), OperatorContext.PARTITIONER, None)


@law.compiles
def an_operator_that_partitions_itself(dag):
    fed(dag, "dealer", Dealer())


_UNRELATED = "parallel-unrelated: {} mirrors the partitions of a and of b, which do not follow one operator"
law.sketched("parallel inputs from unrelated operators", "s>a t>b a=>step b=>step", _UNRELATED.format("step"))
law.sketched("one parallel input and a plain one", "s>a t>b a=>step b>step")
law.sketched("feeders that mirror one operator", "s>head*2 head=>a head=>b a=>foot b=>foot")
law.sketched("feeders of one ancestor", "s>head*2 head>a head>b a=>foot b=>foot", _UNRELATED.format("foot"))


@law.compiles
def two_parallel_streams_between_the_same_pair(dag):
    head, (foot,) = fed(dag, "head"), steps(dag, ["foot"])
    dag.add_stream("a", head.out, foot.one)
    dag.add_stream("b", head.more, foot.two)
    _mirrors(dag, foot.one, foot.two)


def _dealt(count, *expected):
    def draw(dag):
        mirror = sketch("s>head*3 head=>mirror", dag).operator("mirror")
        dag.set_operator_attribute(mirror, OperatorContext.PARTITIONER, Deal(count))

    law.add(f"a mirror of three that makes {count}", draw, *expected)


_COUNT = "parallel-count-mismatch: mirror mirrors the 3 partitions of head, but its partitioner makes"
_dealt(4, f"{_COUNT} 4: some would get nothing")
_dealt(2, f"{_COUNT} 2: the items of some would be lost")
_dealt(3)


@law.reports("parallel-rekeyed: mirror.one is PARTITION_PARALLEL, so its STREAM_CODEC cannot route anything")
def a_mirrors_input_has_a_codec(dag):
    inlet = sketch("s>head head=>mirror", dag).operator("mirror").one
    dag.set_input_port_attribute(inlet, PortContext.STREAM_CODEC, Parity())


@law.reports("partition-invalid: the Deal of step returned no partitions")
def a_partitioner_makes_none(dag):
    dag.set_operator_attribute(fed(dag, "step"), OperatorContext.PARTITIONER, Deal(0))
