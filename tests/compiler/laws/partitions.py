"""Partitions: who may have several, and how mirrors hang together."""

from dagkit import Dag, OperatorContext, PortContext, StatelessPartitioner
from tests.compiler.cast import Deal, Dealer, Parity, Settled, SettledDealer, Source, Step
from tests.compiler.laws.drawing import Broken, Draw, fed


def an_unpartitionable_operator_mirrors(dag: Dag) -> None:
    dag.set_input_port_attribute(fed(dag, "settled", Settled()).input, PortContext.PARTITION_PARALLEL, True)


def an_unpartitionable_operator_is_told_not_to_mirror(dag: Dag) -> None:
    dag.set_input_port_attribute(fed(dag, "settled", Settled()).input, PortContext.PARTITION_PARALLEL, False)


def an_unpartitionable_operator_has_a_partitioner(dag: Dag) -> None:
    settled = fed(dag, "settled", Settled())
    dag.set_operator_attribute(settled, OperatorContext.PARTITIONER, StatelessPartitioner(2))


def an_unpartitionable_operator_gets_the_partitioner_of_all(dag: Dag) -> None:
    fed(dag, "settled", Settled())
    dag.set_attribute(OperatorContext.PARTITIONER, StatelessPartitioner(2))


def an_unpartitionable_operator_partitions_itself(dag: Dag) -> None:
    fed(dag, "settled", SettledDealer())


def an_unpartitionable_operator_is_told_to_have_no_partitioner(dag: Dag) -> None:
    dag.set_operator_attribute(fed(dag, "settled", SettledDealer()), OperatorContext.PARTITIONER, None)


def _two_roots_into(dag: Dag, *parallel: str) -> Step:
    a, b = fed(dag, "a", Step(), "one"), fed(dag, "b", Step(), "one")
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
    head, foot = fed(dag, "head", Step(), "one"), dag.add_operator("foot", Step())
    dag.add_stream("a", head.out, foot.one)
    dag.add_stream("b", head.more, foot.two)
    for port in (foot.one, foot.two):
        dag.set_input_port_attribute(port, PortContext.PARTITION_PARALLEL, True)


def _mirrored_by(dag: Dag, count: int) -> None:
    head, mirror = fed(dag, "head", Step(), "one"), dag.add_operator("mirror", Step())
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
    head, mirror = fed(dag, "head", Step(), "one"), dag.add_operator("mirror", Step())
    dag.add_stream("on", head.out, mirror.one)
    dag.set_input_port_attribute(mirror.one, PortContext.PARTITION_PARALLEL, True)
    dag.set_input_port_attribute(mirror.one, PortContext.STREAM_CODEC, Parity())


def a_partitioner_makes_none(dag: Dag) -> None:
    dag.set_operator_attribute(fed(dag, "step", Step(), "one"), OperatorContext.PARTITIONER, Deal(0))


def an_operator_that_partitions_itself(dag: Dag) -> None:
    fed(dag, "dealer", Dealer())


BROKEN: Broken = [
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
    (a_partitioner_makes_none, ["partition-invalid: the Deal of step returned no partitions"]),
]

VALID: list[Draw] = [
    an_unpartitionable_operator_is_told_not_to_mirror,
    an_unpartitionable_operator_is_told_to_have_no_partitioner,
    one_parallel_input_and_one_plain_one,
    parallel_inputs_whose_feeders_mirror_one_operator,
    two_parallel_streams_between_the_same_pair,
    a_mirror_makes_as_many_partitions_as_it_mirrors,
    an_operator_that_partitions_itself,
]
