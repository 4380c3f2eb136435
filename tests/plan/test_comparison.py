"""What changed between two plans, in words; and nothing changed exactly where the fingerprints agree."""

from typing import Any

import pytest

from dagkit.plan import Plan, diff, fingerprint
from dagkit.plan.model import (
    CutKind,
    Keys,
    Place,
    PlannedEnd,
    PlannedPartition,
    PlannedPort,
    PlannedSink,
    Role,
    Routing,
    Why,
)
from tests.plan.plans import cut, operator, plan, stage, stream, unifier

READ = operator("read", Role.INPUT)


def _keep(**said: Any) -> Plan:
    return plan(operators=(READ, operator("keep", **said)))


def _stream(**said: Any) -> Plan:
    return plan(streams=(stream("read", "keep", **said),))


def _sink(port: str = "input", **said: Any) -> Plan:
    return _stream(sinks=(PlannedSink(operator="keep", port=port, **{"routing": Routing.STRAIGHT, **said}),))


def _ports(*ports: PlannedPort) -> Plan:
    return _keep(ports=ports)


ANOTHER_ORDER = "operators, streams or stages are in another order, or stages have other names"
INPUT, OUTPUT = operator("keep").ports

CHANGES: dict[str, tuple[Plan, list[str]]] = {
    "the application's name": (plan(application="Keep"), ["application Filter is now called Keep"]),
    "an attribute's value": (
        plan(attributes={"STREAMING_WINDOW_SIZE_MILLIS": 100}),
        ["application: attribute STREAMING_WINDOW_SIZE_MILLIS changes from 500 to 100"],
    ),
    "an attribute less": (
        plan(attributes={}),
        ["application: attribute STREAMING_WINDOW_SIZE_MILLIS is no longer set (was 500)"],
    ),
    "an attribute more": (
        plan(attributes={"STREAMING_WINDOW_SIZE_MILLIS": 500, "DEBUG": True}),
        ["application: attribute DEBUG is now set to True"],
    ),
    "a property's value": (
        _keep(properties={"prefix": "#"}),
        ["operator keep: property prefix changes from '.' to '#'"],
    ),
    "a property's type, though Python calls the values equal": (
        plan(attributes={"STREAMING_WINDOW_SIZE_MILLIS": 500.0}),
        ["application: attribute STREAMING_WINDOW_SIZE_MILLIS changes from 500 to 500.0"],
    ),
    "an operator's attribute": (
        _keep(attributes={"TIMEOUT_WINDOW_COUNT": 6}),
        ["operator keep: attribute TIMEOUT_WINDOW_COUNT changes from 5 to 6"],
    ),
    "an operator's kind": (_keep(kind="test.other/1"), ["operator keep: kind test.operator/1 becomes test.other/1"]),
    "an operator's class": (_keep(class_="test.Other"), ["operator keep: class test.Sample becomes test.Other"]),
    "an operator's role": (
        _keep(role=Role.DELAY, kind="test.operator/1"),
        ["operator keep: role operator becomes delay"],
    ),
    "the number of partitions": (
        _keep(count=3, why=Why(source="code", text="StatelessPartitioner")),
        ["keep runs as 3 instead of 1 (StatelessPartitioner)"],
    ),
    "the keys of a partition": (
        _keep(partitions=(PlannedPartition(index=0, keys={"input": Keys(mask=0, keys=(0,))}),)),
        ["keep: its partition owns other keys"],
    ),
    "the properties of a partition": (
        _keep(partitions=(PlannedPartition(index=0, properties={"limit": 2}),)),
        ["keep: partition 0: property limit is now set to 2"],
    ),
    "mirroring": (_keep(parallel_with="read"), ["keep mirrors read"]),
    "a port less": (_ports(INPUT), ["operator keep: output output is gone"]),
    "a port more": (
        _ports(INPUT, OUTPUT, PlannedPort(name="rejected", type="output", payload="Line", connected=False)),
        ["operator keep: output rejected is new"],
    ),
    "a port's payload": (
        _ports(INPUT.model_copy(update={"payload": "Word"}), OUTPUT),
        ["operator keep: input input carries Word instead of Line"],
    ),
    "the payload of a stream and of its ports": (
        plan(
            operators=(READ, operator("keep", ports=(INPUT.model_copy(update={"payload": "Word"}), OUTPUT))),
            streams=(stream("read", "keep", payload="Word"),),
        ),
        ["stream read carries Word instead of Line"],
    ),
    "another class of another kind": (
        _keep(kind="test.other/1", class_="test.Other"),
        [f"operator keep: kind {operator('keep').kind} becomes test.other/1"],
    ),
    "a port's connection": (
        _ports(INPUT.model_copy(update={"connected": False}), OUTPUT),
        ["operator keep: input input is no longer connected"],
    ),
    "a port's attribute": (
        _ports(INPUT, OUTPUT.model_copy(update={"attributes": {"UNIFIER_LIMIT": 3}})),
        ["operator keep: output output: attribute UNIFIER_LIMIT changes from 2 to 3"],
    ),
    "the order of ports": (_ports(OUTPUT, INPUT), ["operator keep: its ports stand in another order"]),
    "an operator more": (
        plan(
            operators=(READ, operator("keep"), operator("log", kind="test.log/1")),
            stages=(stage("read", place=Place.DRIVER), stage("keep"), stage("log")),
        ),
        ["operator log is new (test.log/1)", "log now runs as a stage of its own"],
    ),
    "an operator less": (
        plan(operators=(READ,), streams=(), stages=(stage("read", place=Place.DRIVER),), cuts=()),
        ["operator keep is gone", "stream read is gone", "the same stages are cut from each other for other reasons"],
    ),
    "an operator's name": (
        plan(
            operators=(READ, operator("hold")),
            streams=(stream("read", "hold"),),
            stages=(stage("read", place=Place.DRIVER), stage("hold")),
            cuts=(cut("read", "hold"),),
        ),
        [
            "operator keep is now called hold",
            "stream read leads read.output > hold.input instead of read.output > keep.input",
            "hold now runs as a stage of its own",
        ],
    ),
    "the order of operators": (
        plan(operators=(operator("keep"), READ)),
        [ANOTHER_ORDER],
    ),
    "a stream more": (
        plan(streams=(stream("read", "keep"), stream("keep", "read"))),
        ["stream keep is new: keep.output > read.input"],
    ),
    "a stream's name": (
        _stream(name="lines"),
        ["stream read is now called lines"],
    ),
    "a stream's name and routing": (
        _stream(
            name="lines",
            sinks=(PlannedSink(operator="keep", port="input", routing=Routing.KEYED),),
            locality="NODE_LOCAL",
        ),
        [
            "stream read is now called lines",
            "stream lines is routed keyed instead of straight",
            "stream lines is NODE_LOCAL instead of free to run anywhere",
        ],
    ),
    "an input that is made parallel": (
        _keep(
            count=3,
            parallel_with="read",
            why=Why(source="parallel", text="mirrors read, by PARTITION_PARALLEL (code)"),
            ports=(INPUT.model_copy(update={"attributes": {"PARTITION_PARALLEL": True}}), OUTPUT),
        ),
        [
            "operator keep: input input: attribute PARTITION_PARALLEL is now set to True, so it mirrors read",
            "keep runs as 3 instead of 1",
        ],
    ),
    "a stream's sink": (
        _sink("other"),
        ["stream read leads read.output > keep.other instead of read.output > keep.input"],
    ),
    "a stream's source": (
        _stream(source=PlannedEnd(operator="read", port="other")),
        ["stream read leads read.other > keep.input instead of read.output > keep.input"],
    ),
    "a stream's routing": (_sink(routing=Routing.KEYED), ["stream read is routed keyed instead of straight"]),
    "a stream's parallel sink": (
        _sink(parallel=True),
        ["stream read is routed straight in parallel instead of straight"],
    ),
    "a stream's locality": (
        _stream(locality="NODE_LOCAL"),
        ["stream read is NODE_LOCAL instead of free to run anywhere"],
    ),
    "a stream's payload": (_stream(payload="Word"), ["stream read carries Word instead of Line"]),
    "a stream's unifiers": (
        _stream(unifiers=(unifier("read", 2),)),
        ["stream read now has 1 unifier"],
    ),
    "two operators that run as one": (
        plan(stages=(stage("read", "keep"),), cuts=()),
        ["read + keep now run as one stage"],
    ),
    "a stage's level": (
        plan(stages=(stage("read", place=Place.DRIVER), stage("keep", level=1))),
        ["stage keep runs at level 1 instead of 0"],
    ),
    "a stage's place and slots": (
        plan(stages=(stage("read", place=Place.DRIVER), stage("keep", place=Place.DRIVER, slots=2))),
        ["stage keep runs on the driver instead of the workers, with 2 slots instead of 1"],
    ),
    "a stage's name": (
        plan(stages=(stage("read", place=Place.DRIVER), stage("keep", name="hold"))),
        [ANOTHER_ORDER],
    ),
    "a cut's kind": (
        plan(cuts=(cut("read", "keep", kind=CutKind.KEYS),)),
        ["the same stages are cut from each other for other reasons"],
    ),
}


@pytest.mark.parametrize(("new", "words"), CHANGES.values(), ids=CHANGES)
def test_every_change_is_reported(new, words):
    assert [str(change) for change in diff(plan(), new)] == words


MERGED = unifier("read", 2)
NAME = MERGED.name


@pytest.mark.parametrize(
    ("unifiers", "words"),
    [
        ([unifier("read", 3)], [f"has a unifier {NAME} that reads 3 instead of 2"]),
        ([MERGED, MERGED.model_copy(update={"name": "second"})], ["has 2 unifiers instead of 1"]),
        ([], ["no longer has a unifier"]),
        ([MERGED.model_copy(update={"name": "other"})], ["has unifiers under other names or in another order"]),
        (
            [MERGED.model_copy(update={"kind": "test.sum/1", "level": 1})],
            [
                f"has a unifier {NAME} that is a test.sum/1 instead of a dagkit.merge/1",
                f"has a unifier {NAME} that stands at level 1 instead of 0",
            ],
        ),
        (
            [MERGED.model_copy(update={"inputs": ("read[1]", "read[0]")})],
            [f"has a unifier {NAME} that reads read[1], read[0] instead of read[0], read[1]"],
        ),
        (
            [MERGED.model_copy(update={"serves": PlannedEnd(operator="keep", port="input"), "partition": 1})],
            [f"has a unifier {NAME} that serves keep.input#1 instead of another unifier"],
        ),
        (
            [MERGED.model_copy(update={"attributes": {"MEMORY_MB": 1}})],
            [f"has a unifier {NAME} that has other attributes: attribute MEMORY_MB is now set to 1"],
        ),
    ],
    ids=["inputs", "one more", "one less", "its name", "kind and level", "which inputs", "whom it serves", "attribute"],
)
def test_of_unifiers_it_is_said_what_differs(unifiers, words):
    old, new = _stream(unifiers=(MERGED,)), _stream(unifiers=tuple(unifiers))
    assert [str(change) for change in diff(old, new)] == [f"stream read {text}" for text in words]
    assert diff(new, old)


def test_a_stream_and_its_operator_can_both_be_called_otherwise():
    new = plan(
        operators=(READ, operator("hold")),
        streams=(stream("read", "hold", name="lines"),),
        stages=(stage("read", place=Place.DRIVER), stage("hold")),
        cuts=(cut("read", "hold"),),
    )
    told = [str(change) for change in diff(plan(), new)]
    assert "stream read is now called lines" in told
    assert not [text for text in told if "is gone" in text or "is new" in text]


@pytest.mark.parametrize("new", [new for new, _ in CHANGES.values()], ids=CHANGES)
def test_every_change_changes_the_fingerprint_and_is_reported_both_ways(new):
    assert fingerprint(plan()) != fingerprint(new)
    assert diff(new, plan())


@pytest.mark.parametrize(
    "new",
    [
        plan(),
        _keep(why=Why(source="code", text="another origin")),
        plan(cuts=(cut("read", "keep", reason="in other words"),)),
    ],
    ids=["nothing", "who decided", "the words of a reason"],
)
def test_what_only_explains_is_no_change(new):
    assert diff(plan(), new) == []
    assert fingerprint(plan()) == fingerprint(new)


def test_the_order_of_a_mapping_is_no_change():
    one, other = _keep(properties={"a": 1, "b": {"c": 2, "d": 3}}), _keep(properties={"b": {"d": 3, "c": 2}, "a": 1})
    assert diff(one, other) == []
    assert fingerprint(one) == fingerprint(other)


def test_long_values_are_cut_short():
    (change,) = diff(plan(), _keep(properties={"prefix": "x" * 200}))
    assert len(str(change)) < 160
    assert str(change).endswith("…")


def test_a_change_says_what_it_is_about():
    (change,) = diff(plan(), _keep(count=3))
    assert (change.kind, change.subject) == ("partitions", "keep")


def test_of_two_operators_that_are_alike_neither_is_called_renamed():
    old = plan(operators=(READ, operator("a"), operator("b")), streams=(), stages=(), cuts=())
    new = plan(operators=(READ, operator("c"), operator("d")), streams=(), stages=(), cuts=())
    assert [str(change) for change in diff(old, new)] == [
        "operator a is gone",
        "operator b is gone",
        "operator c is new (test.operator/1)",
        "operator d is new (test.operator/1)",
    ]


def test_of_two_objects_of_one_class_the_fields_that_differ_are_named():
    was, now = ({"prefix": {"class": "Dots", "count": count, "made_of": "."}} for count in (1, 2))
    (change,) = diff(_keep(properties=was), _keep(properties=now))
    assert str(change) == "operator keep: property prefix.count changes from 1 to 2"


def test_objects_of_two_classes_are_compared_as_wholes():
    was, now = ({"prefix": {"class": name}} for name in ("Dots", "Lines"))
    (change,) = diff(_keep(properties=was), _keep(properties=now))
    assert str(change) == "operator keep: property prefix changes from {'class': 'Dots'} to {'class': 'Lines'}"
