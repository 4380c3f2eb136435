"""Places: threads, hosts, and who runs near whom."""

from typing import Any

from dagkit import AffinityRule, AffinityRulesSet, AffinityType, Dag, DagContext, Locality, OperatorContext
from dagkit.api.dag import Stream
from tests.compiler.cast import Source, Step
from tests.compiler.laws.drawing import Broken, Draw, looped

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
    looped(dag, _THREAD)


_TOGETHER, _APART = AffinityType.AFFINITY, AffinityType.ANTI_AFFINITY


def row(dag: Dag, *rules: AffinityRule, locality: str | None = None, hosts: tuple[str, ...] = ()) -> None:
    """O1 > O2 > O3 with a locality between the last two, O4 and O5 beside them, hosts for O2 and O3."""
    operators: list[Any] = [dag.add_operator("O1", Source()), *(dag.add_operator(f"O{i}", Step()) for i in range(2, 6))]
    dag.add_stream("1", operators[0].out, operators[1].one)
    dag.add_stream("2", operators[1].out, operators[2].one).set_locality(locality)
    dag.add_stream("3", operators[2].out, operators[3].one, operators[4].one)
    for operator, host in zip(operators[1:3], hosts, strict=False):
        dag.set_operator_attribute(operator, OperatorContext.LOCALITY_HOST, host)
    dag.set_attribute(DagContext.AFFINITY_RULES_SET, AffinityRulesSet(affinity_rules=rules))


def rule(kind: AffinityType, *operators: str, locality: str = "NODE_LOCAL", relaxed: bool = False) -> AffinityRule:
    return AffinityRule(type=kind, operators=operators, locality=Locality(locality), relax_locality=relaxed)


def apart_but_joined_in_one_container(dag: Dag) -> None:
    row(dag, rule(_APART, "O2", "O3"), locality="CONTAINER_LOCAL")


def apart_and_joined_in_one_rack(dag: Dag) -> None:
    row(dag, rule(_APART, "O2", "O3"), locality="RACK_LOCAL")


def apart_and_together(dag: Dag) -> None:
    row(dag, rule(_TOGETHER, "O1", "O3"), rule(_APART, "O1", "O3"))


def apart_and_together_in_one_rack(dag: Dag) -> None:
    row(dag, rule(_TOGETHER, "O1", "O3", locality="RACK_LOCAL"), rule(_APART, "O1", "O3"))


def apart_where_possible_and_together(dag: Dag) -> None:
    row(dag, rule(_TOGETHER, "O1", "O3"), rule(_APART, "O1", "O3", relaxed=True))


def apart_but_on_one_host(dag: Dag) -> None:
    row(dag, rule(_APART, "O2", "O3"), hosts=("host1", "host1"))


def together_but_on_two_hosts(dag: Dag) -> None:
    row(dag, rule(_TOGETHER, "O2", "O3"), hosts=("host1", "host2"))


def one_thread_but_no_stream(dag: Dag) -> None:
    row(dag, rule(_TOGETHER, "O1", "O3", locality="THREAD_LOCAL"))


def apart_but_together_through_a_third(dag: Dag) -> None:
    row(dag, rule(_TOGETHER, "O3", "O4"), rule(_TOGETHER, "O4", "O5"), rule(_APART, "O3", "O5"))


def joined_in_one_node_but_on_two_hosts(dag: Dag) -> None:
    row(dag, locality="NODE_LOCAL", hosts=("host1", "host2"))


def on_two_hosts_and_free(dag: Dag) -> None:
    row(dag, hosts=("host1", "host2"))


def a_rule_about_nobody(dag: Dag) -> None:
    row(dag, rule(_TOGETHER, "O2", "O33"))


def a_rule_with_a_broken_pattern(dag: Dag) -> None:
    row(dag, AffinityRule(type=_TOGETHER, operator_regex="O["))


def a_rule_by_pattern(dag: Dag) -> None:
    row(dag, AffinityRule(type=_APART, operator_regex="O[23]"), locality="NODE_LOCAL")


def a_rule_whose_pattern_fits_one(dag: Dag) -> None:
    row(dag, AffinityRule(type=_APART, operator_regex="O2"), locality="NODE_LOCAL")


BROKEN: Broken = [
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
    (apart_but_on_one_host, ["affinity-conflicting: O2 and O3 must run apart, but both are pinned to host 'host1'"]),
    (
        together_but_on_two_hosts,
        ["affinity-conflicting: O2 and O3 must run together, but are pinned to hosts 'host1' and 'host2'"],
    ),
    (one_thread_but_no_stream, ["affinity-conflicting: O1 and O3 must share a thread, but no stream joins them"]),
    (
        apart_but_together_through_a_third,
        ["affinity-conflicting: O3 and O5 must run apart (NODE_LOCAL), but streams or other rules keep them together"],
    ),
    (
        joined_in_one_node_but_on_two_hosts,
        ["affinity-conflicting: O2 and O3 are joined NODE_LOCAL by stream '2', but pinned to different hosts"],
    ),
    (a_rule_about_nobody, ["affinity-invalid: an affinity rule names 'O33'; there is no such operator"]),
    (a_rule_with_a_broken_pattern, ["affinity-invalid: the affinity rule's 'O[' is not a regular expression"]),
    (
        a_rule_by_pattern,
        ["affinity-conflicting: O2 and O3 must run apart (NODE_LOCAL), but streams or other rules keep them together"],
    ),
]

VALID: list[Draw] = [
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
