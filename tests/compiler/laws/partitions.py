"""Partitions: which operators may have several, and how mirrors hang together."""

from dagkit import OperatorContext, PortContext, StatelessPartitioner
from tests.compiler.cast import Deal, Dealer, Parity, Settled, SettledDealer
from tests.compiler.laws.drawing import Laws
from tests.compiler.sketches import sketch

law = Laws()
_FORBIDDEN = "partition-forbidden: settled may not be partitioned, but "


def _settled(name, attribute, value, *expected, settled=Settled):
    """Add the case that `settled`, which may not be partitioned, has an attribute for mirrors or a partitioner."""

    def draw(dag):
        operator = sketch("s>settled", dag, settled=settled).operator("settled")
        if attribute is PortContext.PARTITION_PARALLEL:
            dag.set_input_port_attribute(operator.input, attribute, value)
        else:
            dag.set_operator_attribute(operator, attribute, value)

    law.add(f"an unpartitionable operator {name}", draw, *expected)


_MIRROR, _PARTITIONER = PortContext.PARTITION_PARALLEL, OperatorContext.PARTITIONER
_HAS = _FORBIDDEN + "it has a PARTITIONER"
_settled("mirrors", _MIRROR, True, _FORBIDDEN + "PARTITION_PARALLEL is set on settled.input")
_settled("is told not to mirror", _MIRROR, False)
_settled("has a partitioner", _PARTITIONER, StatelessPartitioner(2), _HAS)
_settled("is told to have none, though it is one", _PARTITIONER, None, settled=SettledDealer)
_OWN = _FORBIDDEN + "it is its own Partitioner"
law.sketched("an unpartitionable operator partitions itself", "s>settled", _OWN, settled=SettledDealer)
law.sketched("an operator that partitions itself", "s>dealer", dealer=Dealer)


@law.reports(_HAS)
def an_unpartitionable_operator_gets_the_partitioner_of_all(dag):
    sketch("s>settled", dag, settled=Settled).set_attribute(OperatorContext.PARTITIONER, StatelessPartitioner(2))


_UNRELATED = "parallel-unrelated: {} mirrors the partitions of a and of b, which do not follow one operator"
law.sketched("parallel inputs from unrelated operators", "s>a t>b a=>step b=>step", _UNRELATED.format("step"))
law.sketched("one parallel input and a plain one", "s>a t>b a=>step b>step")
law.sketched("feeders that mirror one operator", "s>head*2 head=>a head=>b a=>foot b=>foot")
law.sketched("feeders of one ancestor", "s>head*2 head>a head>b a=>foot b=>foot", _UNRELATED.format("foot"))
law.sketched("two parallel streams between the same pair", "s>head head=>foot head.more=>foot")


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
    step = sketch("s>step", dag).operator("step")
    dag.set_operator_attribute(step, OperatorContext.PARTITIONER, Deal(0))
