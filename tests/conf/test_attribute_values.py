"""Values of attributes."""

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dagkit.api.affinity import AffinityRule, AffinityRulesSet, AffinityType
from dagkit.api.attributes import CONTEXTS, DagContext, Locality, OperatorContext, PortContext, ProcessingMode
from dagkit.api.partitioning import StatelessPartitioner
from dagkit.conf.values.attribute_values import attribute_value
from tests.conf.samples import Bean, Codec, Largest, Point, point

RULE = AffinityRule(type=AffinityType.AFFINITY, locality=Locality.NODE_LOCAL, operators=("a", "b"))
RULES = AffinityRulesSet(affinity_rules=(RULE,))
RULES_JSON = '{"affinityRules": [{"type": "AFFINITY", "locality": "NODE_LOCAL", "operatorsList": ["a", "b"]}]}'


APEX_JSON = '{"com.datatorrent.common.partitioner.StatelessPartitioner": {"partitionCount": 2}}'
PLAN_JSON = {"class": "dagkit.api.partitioning.StatelessPartitioner", "partition_count": 2}


@pytest.mark.parametrize(
    ("attribute", "raw", "value"),
    [
        (OperatorContext.MEMORY_MB, "2048", 2048),
        (OperatorContext.MEMORY_MB, " 2048\n", 2048),
        (OperatorContext.MEMORY_MB, 2048, 2048),
        (OperatorContext.ACTIVATION_WINDOW_ID, "-1", -1),
        (OperatorContext.STATELESS, "TRUE", True),
        (OperatorContext.STATELESS, False, False),
        (OperatorContext.JVM_OPTIONS, "-Xmx1g", "-Xmx1g"),
        (OperatorContext.JVM_OPTIONS, 5, "5"),
        (OperatorContext.PROCESSING_MODE, "EXACTLY_ONCE", ProcessingMode.EXACTLY_ONCE),
        (OperatorContext.PROCESSING_MODE, ProcessingMode.AT_MOST_ONCE, ProcessingMode.AT_MOST_ONCE),
        (OperatorContext.PARTITIONER, "StatelessPartitioner:3", StatelessPartitioner(3)),
        (OperatorContext.PARTITIONER, StatelessPartitioner(2), StatelessPartitioner(2)),
        (OperatorContext.PARTITIONER, APEX_JSON, StatelessPartitioner(2)),
        (OperatorContext.PARTITIONER, PLAN_JSON, StatelessPartitioner(2)),
        (PortContext.TUPLE_CLASS, "tests.conf.samples.Bean", Bean),
        (PortContext.TUPLE_CLASS, Bean, Bean),
        (PortContext.TUPLE_CLASS, {"$class": "tests.conf.samples.Bean"}, Bean),
        (DagContext.AFFINITY_RULES_SET, RULES_JSON, RULES),
        (DagContext.AFFINITY_RULES_SET, RULES, RULES),
        (DagContext.SSL_CONFIG, '{"a": 1}', {"a": 1}),
        (DagContext.SSL_CONFIG, "a=1, b=2", {"a": "1", "b": "2"}),
        (DagContext.STRING_CODECS, "tests.conf.samples.Point=tests.conf.samples:point", {Point: point}),
        (DagContext.STRING_CODECS, {Point: point}, {Point: point}),
    ],
)
def test_values_that_an_attribute_takes(attribute, raw, value):
    assert attribute_value(attribute, raw) == value
    assert type(attribute_value(attribute, raw)) is type(value)


LISTENER, BEAN = "tests.conf.samples.Listener", "tests.conf.samples.Bean"


def test_objects_are_made_by_their_classes():
    text, as_in_apex = f"{LISTENER}:a,{LISTENER}:b:threshold=7", [{LISTENER: {"threshold": 222}}]
    for raw, made in ((text, [("a", 0), ("b", 7)]), (as_in_apex, [("", 222)])):
        listeners = attribute_value(OperatorContext.STATS_LISTENERS, raw)
        assert [(one.name, one.threshold) for one in listeners] == made
    assert isinstance(attribute_value(OperatorContext.METRICS_AGGREGATOR, "tests.conf.samples.Largest"), Largest)
    assert isinstance(attribute_value(PortContext.STREAM_CODEC, {"tests.conf.samples.Codec": {}}), Codec)
    assert attribute_value(PortContext.TUPLE_CLASS, "Bean", home="tests.conf.samples") is Bean


@pytest.mark.parametrize(
    ("attribute", "raw", "problem"),
    [
        (OperatorContext.MEMORY_MB, "lots", "it must be a whole number"),
        (OperatorContext.MEMORY_MB, "-1", "it must be a whole number of at least 0"),
        (OperatorContext.MEMORY_MB, 1.5, "it must be a whole number"),
        (OperatorContext.MEMORY_MB, True, "it must be a whole number"),
        (OperatorContext.MEMORY_MB, "9" * 5000, "it must be a whole number"),
        (OperatorContext.STATELESS, "yes", "it must be true or false"),
        (OperatorContext.STATELESS, 1, "it must be true or false"),
        (OperatorContext.PROCESSING_MODE, "ONCE", "it must be one of AT_LEAST_ONCE, AT_MOST_ONCE, EXACTLY_ONCE"),
        (OperatorContext.JVM_OPTIONS, [1], "it must be text"),
        (OperatorContext.PARTITIONER, BEAN, "it must be a Partitioner, and Bean is not one"),
        (OperatorContext.PARTITIONER, StatelessPartitioner, "it must be an object, not the class"),
        (OperatorContext.PARTITIONER, "{}", "it must be JSON that names a class"),
        (OperatorContext.PARTITIONER, "[]", "it must be one Partitioner, not 0"),
        (OperatorContext.PARTITIONER, "{", "it must be JSON"),
        (OperatorContext.METRICS_AGGREGATOR, BEAN, "it must be a MetricsAggregator, and Bean is not one"),
        (OperatorContext.PARTITIONER, "4", "it must be the class of a Partitioner, as in StatelessPartitioner:4"),
        (OperatorContext.PARTITIONER, 4, "it must be the class of a Partitioner, as in StatelessPartitioner:4"),
        (OperatorContext.STATS_LISTENERS, [5], "it must be a StatsListener, and int is not one"),
        (PortContext.TUPLE_CLASS, 5, "it must be a class"),
        (DagContext.AFFINITY_RULES_SET, '{"rules": []}', "AffinityRulesSet has no property 'rules'"),
        (DagContext.AFFINITY_RULES_SET, [], "it must be a JSON object"),
        (DagContext.SSL_CONFIG, "a", "it must be key=value pairs"),
    ],
)
def test_values_that_it_does_not_take(attribute, raw, problem):
    with pytest.raises(ValueError, match=problem):
        attribute_value(attribute, raw)


EVERY = [attribute for context in CONTEXTS for attribute in context.attributes().values()]


@pytest.mark.parametrize("empty", ["", " ", "\n"], ids=["nothing", "a blank", "a line"])
def test_an_empty_value_is_reported_and_never_crashes(empty):
    for attribute in EVERY:
        with pytest.raises(ValueError, match="it has no value"):
            attribute_value(attribute, empty)


def test_every_default_is_a_value_that_the_attribute_takes():
    for attribute in EVERY:
        if attribute.default is not None:
            assert attribute_value(attribute, attribute.default) == attribute.default, attribute
            assert attribute_value(attribute, str(attribute.default)) == attribute.default, attribute


VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()) | st.just({"a": {"b": 1}})
)


@given(st.sampled_from(EVERY), VALUES)
@example(DagContext.STRING_CODECS, None)
def test_no_value_breaks_an_attribute(attribute, raw):
    """Whatever is set is taken, or refused in a sentence."""
    with contextlib.suppress(ValueError):
        attribute_value(attribute, raw)
