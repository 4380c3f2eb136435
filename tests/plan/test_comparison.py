"""What changed between two plans, in words; and nothing changed exactly where the fingerprints agree."""

import pytest

from dagkit.plan import Plan, diff, fingerprint, model
from tests.plan.plans import cut, operator, plan, stage, stream, unifier

READ = operator("read", model.Role.INPUT)


def _keep(**said):
    return plan(operators=(READ, operator("keep", **said)))


def _stream(**said):
    return plan(streams=(stream("read", "keep", **said),))


def _sink(routing=model.Routing.STRAIGHT, port="input", parallel=False, **said):
    sink = model.PlannedSink(operator="keep", port=port, routing=routing, parallel=parallel)
    return _stream(sinks=(sink,), **said)


def _ports(*ports):
    return _keep(ports=ports)


ANOTHER_ORDER = ["operators, streams or stages are in another order, or stages have other names"]
OTHER_REASONS = "the same stages are cut from each other for other reasons"
SINK = "read.output > keep.input"
DRIVER, KEYED, STRAIGHT = model.Place.DRIVER, model.Routing.KEYED, model.Routing.STRAIGHT
FIRST = stage("read", place=DRIVER)


def _attributes(**values):
    return plan(attributes=values)


def _stages(*stages, **said):
    return plan(stages=(FIRST, *stages), **said)


def _input(**changes):
    return _ports(INPUT.model_copy(update=changes), OUTPUT)


def _partition(**said):
    return _keep(partitions=(model.PlannedPartition(index=0, **said),))


PORT_MORE = model.PlannedPort(name="rejected", type="output", payload="Line", connected=False)
INPUT, OUTPUT = operator("keep").ports

WINDOW = "STREAMING_WINDOW_SIZE_MILLIS"
CHANGES: dict[str, tuple[Plan, list[str]]] = {
    "the application's name": (plan(application="Keep"), ["application Filter is now called Keep"]),
    "an attribute's value": (
        _attributes(STREAMING_WINDOW_SIZE_MILLIS=100),
        [f"application: attribute {WINDOW} changes from 500 to 100"],
    ),
    "an attribute less": (_attributes(), [f"application: attribute {WINDOW} is no longer set (was 500)"]),
    "an attribute more": (
        _attributes(STREAMING_WINDOW_SIZE_MILLIS=500, DEBUG=True),
        ["application: attribute DEBUG is now set to True"],
    ),
    "a property's value": (
        _keep(properties={"prefix": "#"}),
        ["operator keep: property prefix changes from '.' to '#'"],
    ),
    "a property's type, though Python calls the values equal": (
        _attributes(STREAMING_WINDOW_SIZE_MILLIS=500.0),
        [f"application: attribute {WINDOW} changes from 500 to 500.0"],
    ),
    "an operator's attribute": (
        _keep(attributes={"TIMEOUT_WINDOW_COUNT": 6}),
        ["operator keep: attribute TIMEOUT_WINDOW_COUNT changes from 5 to 6"],
    ),
    "an operator's kind": (_keep(kind="test.other/1"), ["operator keep: kind test.operator/1 becomes test.other/1"]),
    "an operator's class": (_keep(class_="test.Other"), ["operator keep: class test.Sample becomes test.Other"]),
    "an operator's role": (
        _keep(role=model.Role.DELAY, kind="test.operator/1"),
        ["operator keep: role operator becomes delay"],
    ),
    "the number of partitions": (
        _keep(count=3, why=model.Why(source="code", text="StatelessPartitioner")),
        ["keep runs as 3 instead of 1 (StatelessPartitioner)"],
    ),
    "the keys of a partition": (
        _partition(keys={"input": model.Keys(mask=0, keys=(0,))}),
        ["keep: its partition owns other keys"],
    ),
    "the properties of a partition": (
        _partition(properties={"limit": 2}),
        ["keep: partition 0: property limit is now set to 2"],
    ),
    "mirroring": (_keep(parallel_with="read"), ["keep mirrors read"]),
    "a port less": (_ports(INPUT), ["operator keep: output output is gone"]),
    "a port more": (_ports(INPUT, OUTPUT, PORT_MORE), ["operator keep: output rejected is new"]),
    "a port's payload": (_input(payload="Word"), ["operator keep: input input carries Word instead of Line"]),
    "a port's connection": (_input(connected=False), ["operator keep: input input is no longer connected"]),
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
    "a port's attribute": (
        _ports(INPUT, OUTPUT.model_copy(update={"attributes": {"UNIFIER_LIMIT": 3}})),
        ["operator keep: output output: attribute UNIFIER_LIMIT changes from 2 to 3"],
    ),
    "the order of ports": (_ports(OUTPUT, INPUT), ["operator keep: its ports stand in another order"]),
    "an operator more": (
        _stages(stage("keep"), stage("log"), operators=(READ, operator("keep"), operator("log", kind="test.log/1"))),
        ["operator log is new (test.log/1)", "log now runs as a stage of its own"],
    ),
    "an operator less": (
        _stages(operators=(READ,), streams=(), cuts=()),
        ["operator keep is gone", "stream read is gone", OTHER_REASONS],
    ),
    "an operator's name": (
        _stages(
            stage("hold"),
            operators=(READ, operator("hold")),
            streams=(stream("read", "hold"),),
            cuts=(cut("read", "hold"),),
        ),
        [
            "operator keep is now called hold",
            f"stream read leads read.output > hold.input instead of {SINK}",
            "hold now runs as a stage of its own",
        ],
    ),
    "the order of operators": (plan(operators=(operator("keep"), READ)), ANOTHER_ORDER),
    "a stream more": (
        plan(streams=(stream("read", "keep"), stream("keep", "read"))),
        ["stream keep is new: keep.output > read.input"],
    ),
    "a stream's name": (_stream(name="lines"), ["stream read is now called lines"]),
    "a stream's name and routing": (
        _sink(KEYED, name="lines", locality="NODE_LOCAL"),
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
            why=model.Why(source="parallel", text="mirrors read, by PARTITION_PARALLEL (code)"),
            ports=(INPUT.model_copy(update={"attributes": {"PARTITION_PARALLEL": True}}), OUTPUT),
        ),
        [
            "operator keep: input input: attribute PARTITION_PARALLEL is now set to True, so it mirrors read",
            "keep runs as 3 instead of 1",
        ],
    ),
    "a stream's sink": (_sink(port="other"), [f"stream read leads read.output > keep.other instead of {SINK}"]),
    "a stream's source": (
        _stream(source=model.PlannedEnd(operator="read", port="other")),
        [f"stream read leads read.other > keep.input instead of {SINK}"],
    ),
    "a stream's routing": (_sink(KEYED), ["stream read is routed keyed instead of straight"]),
    "a stream's parallel sink": (
        _sink(parallel=True),
        ["stream read is routed straight in parallel instead of straight"],
    ),
    "a stream's locality": (
        _stream(locality="NODE_LOCAL"),
        ["stream read is NODE_LOCAL instead of free to run anywhere"],
    ),
    "a stream's payload": (_stream(payload="Word"), ["stream read carries Word instead of Line"]),
    "a stream's unifiers": (_stream(unifiers=(unifier("read", 2),)), ["stream read now has 1 unifier"]),
    "two operators that run as one": (
        plan(stages=(stage("read", "keep"),), cuts=()),
        ["read + keep now run as one stage"],
    ),
    "a stage's level": (_stages(stage("keep", level=1)), ["stage keep runs at level 1 instead of 0"]),
    "a stage's place and slots": (
        _stages(stage("keep", place=DRIVER, slots=2)),
        ["stage keep runs on the driver instead of the workers, with 2 slots instead of 1"],
    ),
    "a stage's name": (_stages(stage("keep", name="hold")), ANOTHER_ORDER),
    "a cut's kind": (plan(cuts=(cut("read", "keep", kind=model.CutKind.KEYS),)), [OTHER_REASONS]),
}


@pytest.mark.parametrize(("new", "words"), CHANGES.values(), ids=CHANGES)
def test_every_change_is_reported_both_ways_and_changes_the_fingerprint(new, words):
    assert [str(change) for change in diff(plan(), new)] == words
    assert diff(new, plan())
    assert fingerprint(plan()) != fingerprint(new)


MERGED = unifier("read", 2)
HAS = f"has a unifier {MERGED.name} that"


def _merged(**changes):
    return [MERGED.model_copy(update=changes)]


@pytest.mark.parametrize(
    ("unifiers", "words"),
    [
        ([unifier("read", 3)], [f"{HAS} reads 3 instead of 2"]),
        ([MERGED, *_merged(name="second")], ["has 2 unifiers instead of 1"]),
        ([], ["no longer has a unifier"]),
        (_merged(name="other"), ["has unifiers under other names or in another order"]),
        (
            _merged(kind="test.sum/1", level=1),
            [f"{HAS} is a test.sum/1 instead of a dagkit.merge/1", f"{HAS} stands at level 1 instead of 0"],
        ),
        (_merged(inputs=("read[1]", "read[0]")), [f"{HAS} reads read[1], read[0] instead of read[0], read[1]"]),
        (
            _merged(serves=model.PlannedEnd(operator="keep", port="input"), partition=1),
            [f"{HAS} serves keep.input#1 instead of another unifier"],
        ),
        (_merged(attributes={"MEMORY_MB": 1}), [f"{HAS} has other attributes: attribute MEMORY_MB is now set to 1"]),
    ],
    ids=["inputs", "one more", "one less", "its name", "kind and level", "which inputs", "whom it serves", "attribute"],
)
def test_of_unifiers_it_is_said_what_differs(unifiers, words):
    old, new = _stream(unifiers=(MERGED,)), _stream(unifiers=tuple(unifiers))
    assert [str(change) for change in diff(old, new)] == [f"stream read {text}" for text in words]
    assert diff(new, old)


def test_a_stream_and_its_operator_can_both_be_called_otherwise():
    hold = {"operators": (READ, operator("hold")), "cuts": (cut("read", "hold"),)}
    new = _stages(stage("hold"), streams=(stream("read", "hold", name="lines"),), **hold)
    told = [str(change) for change in diff(plan(), new)]
    assert "stream read is now called lines" in told
    assert not [text for text in told if "is gone" in text or "is new" in text]


ORDERED, REVERSED = {"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (plan(), plan()),
        (plan(), _keep(why=model.Why(source="code", text="another origin"))),
        (plan(), plan(cuts=(cut("read", "keep", reason="in other words"),))),
        (_keep(properties=ORDERED), _keep(properties=REVERSED)),
    ],
    ids=["nothing", "who decided", "the words of a reason", "the order of a mapping"],
)
def test_what_only_explains_is_no_change(old, new):
    assert diff(old, new) == []
    assert fingerprint(old) == fingerprint(new)


def test_a_change_says_what_it_is_about_and_long_values_are_cut_short():
    (change,) = diff(plan(), _keep(count=3))
    assert (change.kind, change.subject) == ("partitions", "keep")
    (change,) = diff(plan(), _keep(properties={"prefix": "x" * 200}))
    assert (len(str(change)) < 160, str(change)[-1]) == (True, "…")


def test_of_two_operators_that_are_alike_neither_is_called_renamed():
    old = plan(operators=(READ, operator("a"), operator("b")), streams=(), stages=(), cuts=())
    new = plan(operators=(READ, operator("c"), operator("d")), streams=(), stages=(), cuts=())
    assert [str(change) for change in diff(old, new)] == [
        "operator a is gone",
        "operator b is gone",
        "operator c is new (test.operator/1)",
        "operator d is new (test.operator/1)",
    ]


@pytest.mark.parametrize(
    ("was", "now", "words"),
    [
        (
            {"class": "Dots", "count": 1, "by": "."},
            {"class": "Dots", "count": 2, "by": "."},
            "prefix.count changes from 1 to 2",
        ),
        ({"class": "Dots"}, {"class": "Lines"}, "prefix changes from {'class': 'Dots'} to {'class': 'Lines'}"),
    ],
    ids=["of one class", "of two classes"],
)
def test_of_two_objects_of_one_class_the_fields_that_differ_are_named(was, now, words):
    (change,) = diff(_keep(properties={"prefix": was}), _keep(properties={"prefix": now}))
    assert str(change) == f"operator keep: property {words}"
