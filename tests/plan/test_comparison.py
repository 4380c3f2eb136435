"""What changed between two plans, in words; and nothing changed exactly where the fingerprints agree."""

import pytest

from dagkit.plan import diff, fingerprint, model
from tests.cases import cases
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


def _millis(value, **more):
    return plan(attributes={WINDOW: value, **more})


def _stages(*stages, **said):
    return plan(stages=(FIRST, *stages), **said)


def _input(**changes):
    return _ports(INPUT.model_copy(update=changes), OUTPUT)


def _partition(**said):
    return _keep(partitions=(model.PlannedPartition(index=0, **said),))


PORT_MORE = model.PlannedPort(name="rejected", type="output", payload="Line", connected=False)
INPUT, OUTPUT = operator("keep").ports

WINDOW, TIMEOUT = "STREAMING_WINDOW_SIZE_MILLIS", "TIMEOUT_WINDOW_COUNT"
KEEP = "operator keep:"
CHANGES = [
    (plan(application="Keep"), "application Filter is now called Keep"),
    (_millis(100), f"application: attribute {WINDOW} changes from 500 to 100"),
    (plan(attributes={}), f"application: attribute {WINDOW} is no longer set (was 500)"),
    (_millis(500, DEBUG=True), "application: attribute DEBUG is now set to True"),
    (_keep(properties={"prefix": "#"}), f"{KEEP} property prefix changes from '.' to '#'"),
    (_millis(500.0), f"application: attribute {WINDOW} changes from 500 to 500.0"),
    (_keep(attributes={TIMEOUT: 6}), f"{KEEP} attribute {TIMEOUT} changes from 5 to 6"),
    (_keep(kind="test.other/1"), f"{KEEP} kind test.operator/1 becomes test.other/1"),
    (_keep(class_="test.Other"), f"{KEEP} class test.Sample becomes test.Other"),
    (_keep(role=model.Role.DELAY, kind="test.operator/1"), f"{KEEP} role operator becomes delay"),
    (
        _keep(count=3, why=model.Why(source="code", text="StatelessPartitioner")),
        "keep runs as 3 instead of 1 (StatelessPartitioner)",
    ),
    (_partition(keys={"input": model.Keys(mask=0, keys=(0,))}), "keep: its partition owns other keys"),
    (_partition(properties={"limit": 2}), "keep: partition 0: property limit is now set to 2"),
    (_keep(parallel_with="read"), "keep mirrors read"),
    (_ports(INPUT), f"{KEEP} output output is gone"),
    (_ports(INPUT, OUTPUT, PORT_MORE), f"{KEEP} output rejected is new"),
    (_input(payload="Word"), f"{KEEP} input input carries Word instead of Line"),
    (_input(connected=False), f"{KEEP} input input is no longer connected"),
    (
        plan(
            operators=(READ, operator("keep", ports=(INPUT.model_copy(update={"payload": "Word"}), OUTPUT))),
            streams=(stream("read", "keep", payload="Word"),),
        ),
        "stream read carries Word instead of Line",
    ),
    (_keep(kind="test.other/1", class_="test.Other"), f"{KEEP} kind {operator('keep').kind} becomes test.other/1"),
    (
        _ports(INPUT, OUTPUT.model_copy(update={"attributes": {"UNIFIER_LIMIT": 3}})),
        f"{KEEP} output output: attribute UNIFIER_LIMIT changes from 2 to 3",
    ),
    (_ports(OUTPUT, INPUT), f"{KEEP} its ports stand in another order"),
    (
        _stages(stage("keep"), stage("log"), operators=(READ, operator("keep"), operator("log", kind="test.log/1"))),
        "operator log is new (test.log/1)",
        "log now runs as a stage of its own",
    ),
    (_stages(operators=(READ,), streams=(), cuts=()), "operator keep is gone", "stream read is gone", OTHER_REASONS),
    (
        _stages(
            stage("hold"),
            operators=(READ, operator("hold")),
            streams=(stream("read", "hold"),),
            cuts=(cut("read", "hold"),),
        ),
        "operator keep is now called hold",
        f"stream read leads read.output > hold.input instead of {SINK}",
        "hold now runs as a stage of its own",
    ),
    (plan(operators=(operator("keep"), READ)), *ANOTHER_ORDER),
    (plan(streams=(stream("read", "keep"), stream("keep", "read"))), "stream keep is new: keep.output > read.input"),
    (_stream(name="lines"), "stream read is now called lines"),
    (
        _sink(KEYED, name="lines", locality="NODE_LOCAL"),
        "stream read is now called lines",
        "stream lines is routed keyed instead of straight",
        "stream lines is NODE_LOCAL instead of free to run anywhere",
    ),
    (
        _keep(
            count=3,
            parallel_with="read",
            why=model.Why(source="parallel", text="mirrors read, by PARTITION_PARALLEL (code)"),
            ports=(INPUT.model_copy(update={"attributes": {"PARTITION_PARALLEL": True}}), OUTPUT),
        ),
        f"{KEEP} input input: attribute PARTITION_PARALLEL is now set to True, so it mirrors read",
        "keep runs as 3 instead of 1",
    ),
    (_sink(port="other"), f"stream read leads read.output > keep.other instead of {SINK}"),
    (
        _stream(source=model.PlannedEnd(operator="read", port="other")),
        f"stream read leads read.other > keep.input instead of {SINK}",
    ),
    (_sink(KEYED), "stream read is routed keyed instead of straight"),
    (_sink(parallel=True), "stream read is routed straight in parallel instead of straight"),
    (_stream(locality="NODE_LOCAL"), "stream read is NODE_LOCAL instead of free to run anywhere"),
    (_stream(payload="Word"), "stream read carries Word instead of Line"),
    (_stream(unifiers=(unifier("read", 2),)), "stream read now has 1 unifier"),
    (plan(stages=(stage("read", "keep"),), cuts=()), "read + keep now run as one stage"),
    (_stages(stage("keep", level=1)), "stage keep runs at level 1 instead of 0"),
    (
        _stages(stage("keep", place=DRIVER, slots=2)),
        "stage keep runs on the driver instead of the workers, with 2 slots instead of 1",
    ),
    (_stages(stage("keep", name="hold")), *ANOTHER_ORDER),
    (plan(cuts=(cut("read", "keep", kind=model.CutKind.KEYS),)), OTHER_REASONS),
]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (("id: int", "amount: float"), "stream read carries Line without price: float and with amount: float"),
        (("id: int",), "stream read carries Line without price: float"),
        (("price: float", "id: int"), "stream read carries Line with its fields in another order"),
    ],
)
def test_other_fields_of_records_are_reported_and_leave_the_fingerprint_as_it_is(fields, text):
    before, after = (_stream(fields=given) for given in (("id: int", "price: float"), fields))
    assert [str(change) for change in diff(before, after)] == [text]
    assert diff(_stream(), after) == [], "an earlier dagkit wrote none"
    assert fingerprint(before) == fingerprint(after) == fingerprint(_stream())


@pytest.mark.parametrize("change", CHANGES, ids=[words for _, words, *_ in CHANGES])
def test_every_change_is_reported_both_ways_and_changes_the_fingerprint(change):
    new, *words = change
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


@cases(
    "old, new",
    ("nothing", plan(), plan()),
    ("who decided", plan(), _keep(why=model.Why(source="code", text="another origin"))),
    ("the words of a reason", plan(), plan(cuts=(cut("read", "keep", reason="in other words"),))),
    ("the order of a mapping", _keep(properties=ORDERED), _keep(properties=REVERSED)),
)
def test_what_only_explains_is_no_change(old, new):
    assert diff(old, new) == []
    assert fingerprint(old) == fingerprint(new)


@pytest.mark.parametrize(
    ("other", "follows"),
    [
        (_keep(properties={"prefix": "#"}), False),
        (_stream(locality="THREAD_LOCAL"), False),
        (_sink(KEYED), True),
        (_partition(properties={"limit": 2}), True),
        (_stages(stage("keep", level=2)), True),
    ],
    ids=["a property", "a locality", "a route", "a partition", "a stage"],
)
def test_what_the_compiler_derives_follows_from_other_changes(other, follows):
    changes = diff(plan(), other)
    assert {change.follows for change in changes} == {follows}


def test_a_change_says_what_it_is_about_and_long_values_are_cut_short():
    (change,) = diff(plan(), _keep(count=3))
    assert (change.kind, change.subject) == ("partitions", "keep")
    (change,) = diff(plan(), _keep(properties={"prefix": "x" * 200}))
    assert (len(str(change)) < 160, str(change)[-1]) == (True, "…")


@pytest.mark.parametrize(("gone", "come"), [("ab", "cd"), ("a", "cd"), ("ab", "c")])
def test_of_two_operators_that_are_alike_neither_is_called_renamed(gone, come):
    old, new = (plan(operators=(READ, *map(operator, names)), streams=(), stages=(), cuts=()) for names in (gone, come))
    told = [f"operator {name} is gone" for name in gone] + [
        f"operator {name} is new (test.operator/1)" for name in come
    ]
    assert [str(change) for change in diff(old, new)] == told


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
