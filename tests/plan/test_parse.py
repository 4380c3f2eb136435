"""Plans as text: out and back in equal, in the words of declarative applications, and refused with a reason."""

import json
import re

import pytest

from dagkit.errors import RunFailure
from dagkit.plan import fingerprint, read_plan, write_plan
from dagkit.plan.model import PlannedPartition, PlannedSink, Routing
from tests.plan.plans import operator, plan, stream, unifier

PLANS = [
    plan(),
    plan(operators=(operator("read", count=2), operator("keep", count=3))),
    plan(streams=(stream("read", "keep", unifiers=(unifier("read", 2),), locality="NODE_LOCAL"),)),
    plan(attributes={"a": [1, None, {"b": 1.5}], "s": "\u2028 \U0001f600 \x00"}),
]


@pytest.mark.parametrize("written", PLANS, ids=["small", "with partitions", "with unifiers", "with odd values"])
def test_a_plan_comes_back_equal(written):
    read = read_plan(write_plan(written))
    assert read == written
    assert fingerprint(read) == fingerprint(written)
    assert write_plan(read) == write_plan(written)


def test_a_plan_is_written_in_the_words_of_declarative_applications():
    data = json.loads(write_plan(plan()))
    assert data["schema"] == "dagkit.plan/1"
    assert data["operators"][0]["class"] == "test.Sample"
    assert data["streams"][0]["source"] == {"operatorName": "read", "portName": "output"}
    assert data["streams"][0]["sinks"][0]["operatorName"] == "keep"


def test_a_partition_shows_its_properties_only_where_it_has_its_own():
    own = operator("keep", partitions=(PlannedPartition(index=0), PlannedPartition(index=1, properties={"limit": 2})))
    written = plan(operators=(operator("read"), own))
    first, second = json.loads(write_plan(written))["operators"][1]["partitions"]
    assert first == {"index": 0, "keys": {}}
    assert second == {"index": 1, "keys": {}, "properties": {"limit": 2}}
    assert read_plan(write_plan(written)) == written


def test_a_plan_of_an_earlier_dagkit_is_read_whose_stages_name_operators_that_take_batches():
    earlier = json.loads(write_plan(plan()))
    for part in earlier["stages"]:
        part["batches"] = part["operators"]
    read = read_plan(json.dumps(earlier))
    assert (read, fingerprint(read)) == (plan(), fingerprint(plan()))


def _with(**changes):
    return json.dumps({**json.loads(write_plan(plan())), **changes})


def _without(part):
    return _with(**{part: []})


def _twice(part):
    written = json.loads(write_plan(plan()))[part]
    return _with(**{part: [*written, written[0]]})


SCHEMA = "; this dagkit reads 'dagkit.plan/1'"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a plan: Expecting value"),
        ("{", "is not a plan: Expecting property name"),
        ("[]", f"is of schema None{SCHEMA}"),
        ("{}", f"is of schema None{SCHEMA}"),
        (_with(schema="dagkit.plan/2"), f"is of schema 'dagkit.plan/2'{SCHEMA}"),
        (_with(operators=1), "is not a plan: operators: Input should be a valid tuple"),
        (_with(colour="red"), "is not a plan: colour: Extra inputs are not permitted"),
        (_with(cuts=[{}]), "is not a plan: cuts.0.stream: Field required"),
        (_without("operators"), "is not a plan: stream 'read' names operator 'read', which does not exist"),
        (_twice("operators"), "is not a plan: two operators are called 'read'"),
        (_twice("streams"), "is not a plan: two streams are called 'read'"),
        (_without("stages"), "is not a plan: operator 'read' names stage 'read', which does not contain it"),
        (_without("streams"), "which does not exist"),
        ("[" * 99999, "is not a plan: maximum recursion depth exceeded"),
    ],
    ids=lambda value: value[:70],
)
def test_what_is_no_plan_is_refused_with_a_reason(text, said):
    with pytest.raises(RunFailure, match=f"plan.json .*{re.escape(said)}"):
        read_plan(text, "plan.json")


def test_a_plan_that_an_earlier_dagkit_saved_keeps_its_fingerprint():
    sink = PlannedSink(operator="keep", port="input", routing=Routing.DISTRIBUTED)
    distributed = plan(streams=(stream("read", sinks=(sink,)),))
    earlier = write_plan(distributed).replace('"distributed"', '"dealt"')
    assert '"dealt"' in earlier
    assert read_plan(earlier) == distributed
    assert fingerprint(distributed) == "186d1aec59715fec"  # of the same plan when its items were called dealt


def test_a_plan_has_a_fingerprint_levels_and_operators_by_name():
    assert re.fullmatch("[0-9a-f]{16}", fingerprint(plan()))
    assert (plan().levels, plan(stages=()).levels, plan().by_name["keep"].count) == (1, 1, 1)
