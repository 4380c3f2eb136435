"""What keys set: the rules of precedence and of attribute resolution, with Apex's own cases."""

import pytest

from dagkit.api.application import FunctionApplication
from dagkit.api.attributes import DagContext, Locality, OperatorContext, PortContext
from dagkit.api.configuration import Config, Origin, Source
from dagkit.conf.apply.settings import Settings
from dagkit.conf.grammar.property_keys import Element, scopes_set_by
from dagkit.errors import Where
from tests.conf.samples import Bean, Feed, Inner, Pipeline, Point, Reader, config, entries, point


def keys(values, application="app1"):
    return Settings(config(values)).of(application)


def values(attributes):
    assert attributes.diagnostics == ()
    return {attribute.name: found.value for attribute, found in attributes.values.items()}


def configured(settings, name="operator1", component=None):
    result = settings.configure(name, component or Reader())
    assert (result.diagnostics, result.component.faults) == ((), ())
    return result.component


# -- the application -------------------------------------------------------------------------------------------------


def test_application_level_attributes():
    """testAppLevelAttributes."""
    settings = keys(
        {
            "dt.attr.MASTER_MEMORY_MB": "123",
            "dt.attr.APPLICATION_PATH": "/defaultdir",
            "dt.application.app1.attr.APPLICATION_PATH": "/otherdir",
            "dt.application.app1.attr.STREAMING_WINDOW_SIZE_MILLIS": "1000",
            "dt.application.app2.attr.MASTER_MEMORY_MB": "5",
        }
    )
    assert values(settings.application_attributes()) == {
        "MASTER_MEMORY_MB": 123,
        "APPLICATION_PATH": "/otherdir",
        "STREAMING_WINDOW_SIZE_MILLIS": 1000,
    }


def test_application_level_properties():
    """testAppLevelProperties: with and without `prop.`, for every application, and nested."""
    settings = keys(
        {
            "dt.application.app1.testprop1": "10",
            "dt.application.app1.prop.testprop2": "100",
            "dt.application.*.prop.testprop3": "1000",
            "dt.application.app1.inncls.end": "10000",
        }
    )
    application = settings.configure_application(Pipeline()).component
    assert (application.testprop1, application.testprop2, application.testprop3) == (10, 100, 1000)


def test_a_nested_plain_object_of_an_application():
    settings = keys({"dt.application.app1.scanner.scanIntervalMillis": "10000"})
    assert settings.configure_application(Pipeline()).component.scanner.scan_interval_millis == 10000


@pytest.mark.parametrize(
    ("given", "name"),
    [
        pytest.param({}, "Pipeline", id="as it says itself"),
        pytest.param({"dt.application.Alias.class": "tests.conf.samples.Pipeline"}, "Alias", id="as an alias says"),
        pytest.param({"dt.application.Alias.class": "tests.conf.samples:Pipeline"}, "Alias", id="by module and class"),
        pytest.param({"dt.application.Alias.class": "Pipeline"}, "Alias", id="by class alone"),
        pytest.param({"dt.application.Alias.class": "Other"}, "Pipeline", id="another's alias"),
    ],
)
def test_the_name_of_an_application(given, name):
    """testAppAlias."""
    assert Settings(config(given)).name_of(Pipeline()).value == name


# -- operators -------------------------------------------------------------------------------------------------------


def test_operator_level_attributes():
    """testOperatorLevelAttributes: the name beats the wildcard."""
    settings = keys(
        {
            "dt.operator.*.attr.APPLICATION_WINDOW_COUNT": "2",
            "dt.operator.*.attr.STATS_LISTENERS": "tests.conf.samples.Listener",
            "dt.application.app1.operator.operator1.attr.APPLICATION_WINDOW_COUNT": "20",
        }
    )
    assert values(settings.operator_attributes("operator1"))["APPLICATION_WINDOW_COUNT"] == 20
    assert values(settings.operator_attributes("operator2"))["APPLICATION_WINDOW_COUNT"] == 2


def test_operator_level_properties():
    """testOperatorLevelProperties: the application's section beats the root."""
    settings = keys(
        {
            "dt.operator.*.text": "pv1",
            "dt.operator.*.enabled": "true",
            "dt.application.app1.operator.operator1.text": "apv1",
        }
    )
    one, two = configured(settings, "operator1"), configured(settings, "operator2")
    assert (one.text, two.text, one.enabled) == ("apv1", "pv1", True)


LADDER = [
    ("dt.attr.MEMORY_MB", "every operator, from the application's floor"),
    ("dt.operator.*.attr.MEMORY_MB", "a pattern at the root"),
    ("dt.operator.operator1.attr.MEMORY_MB", "the name at the root"),
    ("dt.application.app1.attr.MEMORY_MB", "every operator, in the application's section"),
    ("dt.application.app1.operator.oper.*[0-9].attr.MEMORY_MB".replace("oper.*", "operator"), "a pattern there"),
    ("dt.application.app1.operator.operator1.attr.MEMORY_MB", "the name there"),
]


@pytest.mark.parametrize("rung", range(1, len(LADDER)), ids=[said for _, said in LADDER[1:]])
def test_the_ladder_of_precedence(rung):
    """Each key beats all before it, even where these come from stronger sources."""
    strong = entries({LADDER[rung][0]: "2"}, Source.SITE)
    weak = entries({key: "1" for key, _ in LADDER[:rung]}, Source.COMMAND_LINE)
    settings = Settings(Config([*strong, *weak])).of("app1")
    assert values(settings.operator_attributes("operator1")) == {"MEMORY_MB": 2}


def test_between_keys_of_one_reach_the_stronger_source_wins():
    given = [
        *entries({"dt.operator.operator1.prop.blockSize": "1"}, Source.COMMAND_LINE),
        *entries({"apex.operator.operator1.block_size": "2"}, Source.FILE),
    ]
    assert configured(Settings(Config(given)).of("app1")).block_size == 1


def test_a_variable_beats_a_file_and_gives_way_to_the_command_line():
    given = [
        *entries({"dt.operator.Block-reader.blockSize": "1", "dt.operator.Block-reader.ratio": "1"}, Source.FILE),
        *entries(
            {"DAGKIT_OPERATOR__BLOCK_READER__BLOCK_SIZE": "2", "DAGKIT_OPERATOR__BLOCK_READER__PROP__RATIO": "2"},
            Source.ENVIRONMENT,
        ),
        *entries({"dt.operator.Block-reader.ratio": "3"}, Source.COMMAND_LINE),
    ]
    reader = configured(Settings(Config(given)).of("app1"), "Block-reader")
    assert (reader.block_size, reader.ratio) == (2, 3)


def test_properties_of_every_form():
    """testSetOperatorProperties."""
    settings = keys(
        {
            "dt.operator.o1.text": "myStringPropertyValue",
            "dt.operator.o2.names": "a,b,c",
            "dt.operator.o2.tags.key1": "1",
            "dt.operator.o2.tags(key1.dot)": "2",
            "dt.operator.o2.tags(key2.dot)": "3",
        }
    )
    assert configured(settings, "o1").text == "myStringPropertyValue"
    two = configured(settings, "o2")
    assert (two.names, two.tags) == (("a", "b", "c"), {"key1": 1, "key1.dot": 2, "key2.dot": 3})


def test_the_operators_of_a_module_are_named_by_equality():
    settings = keys(
        {
            "dt.operator.Module.prop.depth": "3",
            "dt.operator.Module$reader.prop.blockSize": "7",
            "dt.operator.Module$reader.attr.MEMORY_MB": "8",
        }
    )
    assert configured(settings, "Module", Inner()).depth == 3
    assert configured(settings, "Module$reader").block_size == 7
    assert values(settings.operator_attributes("Module$reader")) == {"MEMORY_MB": 8}


def test_a_pattern_may_meet_operators_without_the_property():
    settings = keys({"dt.operator.*.blockSize": "9"})
    assert configured(settings, "feed", Feed()) == Feed()
    assert configured(settings, "reader").block_size == 9
    assert settings.unmatched() == []


@pytest.mark.parametrize("from_code", [True, False], ids=["set in code", "set by a key"])
def test_converters_of_the_application(from_code):
    given = {"dt.operator.operator1.point": "1/2"}
    codecs = {} if from_code else {"dt.attr.STRING_CODECS": "tests.conf.samples.Point=tests.conf.samples:point"}
    settings = keys({**given, **codecs})
    if from_code:
        settings.codecs = {Point: point}
    assert configured(settings).point == Point(1, 2)


def test_plain_class_names_are_those_of_the_applications_module():
    settings = keys({"dt.operator.operator1.payload": "Bean"})
    settings.configure_application(Pipeline())
    assert configured(settings).payload is Bean


def populate(dag, conf):
    """An application that is a function."""


def test_the_module_of_a_function_is_its_home():
    settings = keys({"dt.operator.operator1.payload": "Bean"})
    settings.configure_application(FunctionApplication(populate=populate))
    assert configured(settings).payload is Bean


# -- ports -----------------------------------------------------------------------------------------------------------


def test_port_level_attributes():
    """testPortLevelAttributes: the direction beats `port`, wherever it stands."""
    settings = keys(
        {
            "dt.application.app1.operator.operator1.port.*.attr.QUEUE_CAPACITY": "16384",
            "dt.operator.operator1.inputport.side.attr.QUEUE_CAPACITY": "32768",
            "dt.operator.operator1.outputport.*.attr.QUEUE_CAPACITY": "4096",
        }
    )

    def capacity(port, *, output):
        return values(settings.port_attributes("operator1", port, output=output))["QUEUE_CAPACITY"]

    assert capacity("lines", output=False) == 16384
    assert capacity("side", output=False) == 32768
    assert capacity("output", output=True) == 4096


def test_a_port_by_name_beats_a_pattern():
    settings = keys(
        {
            "dt.operator.operator1.port.output.attr.UNIFIER_LIMIT": "8",
            "dt.operator.operator1.port.*.attr.UNIFIER_LIMIT": "2",
            "dt.port.*.attr.UNIFIER_LIMIT": "1",
        }
    )
    assert values(settings.port_attributes("operator1", "output", output=True)) == {"UNIFIER_LIMIT": 8}
    assert values(settings.port_attributes("operator1", "errors", output=True)) == {"UNIFIER_LIMIT": 2}
    assert values(settings.port_attributes("operator2", "errors", output=True)) == {"UNIFIER_LIMIT": 1}


def test_the_seeds_two_properties():
    settings = keys(
        {
            "dt.operator.Filter.port.input.attr.PARTITION_PARALLEL": "true",
            "dt.operator.Record-writer.port.input.attr.PARTITION_PARALLEL": "true",
        }
    )
    for name in ("Filter", "Record-writer"):
        assert values(settings.port_attributes(name, "input", output=False)) == {"PARTITION_PARALLEL": True}
    assert values(settings.port_attributes("Block-reader", "input", output=False)) == {}


def test_an_unconnected_port_bears_nothing():
    settings = keys({"dt.operator.operator1.port.output.attr.UNIFIER_LIMIT": "8"})
    assert values(settings.port_attributes("operator1", "output", output=True, connected=False)) == {}
    (told,) = settings.unmatched()
    assert told.code == "attribute-stranded"
    assert told.problem.endswith("attr.UNIFIER_LIMIT is for operator1.output, which no stream uses")


def test_a_key_for_many_ports_may_meet_an_unconnected_one():
    settings = keys({"dt.operator.operator1.port.*.attr.UNIFIER_LIMIT": "8"})
    settings.port_attributes("operator1", "errors", output=True, connected=False)
    settings.port_attributes("operator1", "output", output=True)
    assert settings.unmatched() == []


def test_unifier_level_attributes():
    """testUnifierLevelAttributes, and in a module testModuleUnifierLevelAttributes."""
    settings = keys(
        {
            "dt.operator.operator1.outputport.output.unifier.attr.APPLICATION_WINDOW_COUNT": "2",
            "dt.operator.operator1.outputport.output.unifier.attr.MEMORY_MB": "512",
            "dt.operator.Module$reader.outputport.output.unifier.attr.TIMEOUT_WINDOW_COUNT": "2",
            "dt.unifier.attr.MEMORY_MB": "256",
        }
    )
    assert values(settings.unifier_attributes("operator1", "output")) == {
        "APPLICATION_WINDOW_COUNT": 2,
        "MEMORY_MB": 512,
    }
    assert values(settings.unifier_attributes("Module$reader", "output")) == {
        "TIMEOUT_WINDOW_COUNT": 2,
        "MEMORY_MB": 256,
    }
    assert values(settings.operator_attributes("operator1")) == {}


# -- streams ---------------------------------------------------------------------------------------------------------


def test_a_stream_has_a_locality_and_a_schema():
    settings = keys(
        {
            "dt.stream.lines.locality": "CONTAINER_LOCAL",
            "dt.stream.*.locality": "NODE_LOCAL",
            "dt.stream.lines.schema": "tests.conf.samples.Bean",
        }
    )
    lines, others = settings.stream("lines"), settings.stream("others")
    assert (lines.locality.value, lines.schema.value) == (Locality.CONTAINER_LOCAL, Bean)
    assert (others.locality.value, others.schema) == (Locality.NODE_LOCAL, None)
    assert settings.unmatched() == []


def test_a_locality_that_is_none_is_reported_with_its_line():
    (told,) = keys({"dt.stream.lines.locality": "LOCAL"}).stream("lines").diagnostics
    assert (told.code, str(told.where)) == ("locality-invalid", "conf.xml:1")
    assert told.problem == (
        "the locality of stream 'lines' cannot be 'LOCAL': "
        "it must be one of THREAD_LOCAL, CONTAINER_LOCAL, NODE_LOCAL, RACK_LOCAL"
    )


# -- which scopes a key sets: the ambiguity group ----------------------------------------------------------------------

OPERATOR_REF = "com.datatorrent.api.Context.OperatorContext."
PORT_REF = "com.datatorrent.api.Context.PortContext."


def borne(key, value):
    """Where a key sets its attribute: on the application, an operator, an input and an output of it."""
    settings = keys({key: value})
    found = {
        "application": settings.application_attributes(),
        "operator": settings.operator_attributes("operator1"),
        "input": settings.port_attributes("operator1", "lines", output=False),
        "output": settings.port_attributes("operator1", "output", output=True),
    }
    return " ".join(bearer for bearer, attributes in found.items() if attributes.values)


@pytest.mark.parametrize("at", ["", "application.app1.", "application.*."], ids=["root", "application", "all"])
@pytest.mark.parametrize(
    ("key", "bearers"),
    [
        ("attr.AUTO_RECORD", "operator input output"),
        ("operator.*.attr.AUTO_RECORD", "operator"),
        ("operator.operator1.attr.AUTO_RECORD", "operator"),
        ("port.*.attr.AUTO_RECORD", "input output"),
        ("operator.*.port.*.attr.AUTO_RECORD", "input output"),
        ("inputport.*.attr.AUTO_RECORD", "input"),
        ("outputport.*.attr.AUTO_RECORD", "output"),
        (f"attr.{OPERATOR_REF}AUTO_RECORD", "operator"),
        (f"attr.{PORT_REF}AUTO_RECORD", "input output"),
        (f"operator.*.attr.{OPERATOR_REF}AUTO_RECORD", "operator"),
        (f"operator.*.attr.{PORT_REF}AUTO_RECORD", "input output"),
        (f"port.*.attr.{PORT_REF}AUTO_RECORD", "input output"),
        ("attr.STATELESS", "operator"),
        ("operator.*.attr.STATELESS", "operator"),
    ],
)
def test_an_attribute_of_several_contexts(at, key, bearers):
    """testRootLevelAmbiguousAttributeSimple and its thirty siblings."""
    assert borne(f"dt.{at}{key}", "true") == bearers


@pytest.mark.parametrize(
    ("key", "bearers"),
    [
        ("dt.attr.CHECKPOINT_WINDOW_COUNT", "application"),
        ("dt.application.app1.attr.CHECKPOINT_WINDOW_COUNT", "application"),
        (f"dt.attr.{OPERATOR_REF}CHECKPOINT_WINDOW_COUNT", "operator"),
        (f"dt.application.app1.attr.{OPERATOR_REF}CHECKPOINT_WINDOW_COUNT", "operator"),
        ("dt.attr.com.datatorrent.api.Context.DAGContext.CHECKPOINT_WINDOW_COUNT", "application"),
        ("dt.operator.*.attr.CHECKPOINT_WINDOW_COUNT", "operator"),
        ("dt.attr.MEMORY_MB", "operator"),
        ("dt.attr.QUEUE_CAPACITY", "input output"),
        ("dt.application.app1.attr.QUEUE_CAPACITY", "input output"),
        ("dt.operator.operator1.attr.QUEUE_CAPACITY", "input output"),
        ("dt.operator.operator1.port.*.attr.QUEUE_CAPACITY", "input output"),
        ("dt.operator.operator1.inputport.*.attr.QUEUE_CAPACITY", "input"),
        ("dt.operator.operator1.outputport.*.attr.QUEUE_CAPACITY", "output"),
        ("dt.attr.OperatorContext.CHECKPOINT_WINDOW_COUNT", "operator"),
    ],
)
def test_an_attribute_goes_where_it_is_known(key, bearers):
    assert borne(key, "5") == bearers


@pytest.mark.parametrize("element", Element)
def test_every_element_that_bears_attributes_has_a_reach(element):
    if element not in (Element.STREAM, Element.TEMPLATE):
        assert scopes_set_by(element, _known_to(element))


def _known_to(element):
    from dagkit.conf.grammar.property_keys import AttributeRef  # noqa: PLC0415 - only here

    return AttributeRef("QUEUE_CAPACITY" if element is Element.PORT else "MEMORY_MB")


# -- origins and faults ----------------------------------------------------------------------------------------------


def test_a_value_knows_the_key_that_won():
    settings = keys({"dt.operator.*.attr.MEMORY_MB": "1", "dt.operator.operator1.attr.MEMORY_MB": "2"})
    found = settings.operator_attributes("operator1").values[OperatorContext.MEMORY_MB]
    assert found.origin == Origin(Source.FILE, Where("conf.xml", 2), "dt.operator.operator1.attr.MEMORY_MB")


@pytest.mark.parametrize(
    ("raw", "code", "problem"),
    [
        ("lots", "attribute-invalid", "MEMORY_MB of operator1 cannot be 'lots': it must be a whole number"),
        ("", "attribute-invalid", "MEMORY_MB of operator1 cannot be '': it has no value"),
    ],
)
def test_a_value_that_an_attribute_does_not_take_is_reported_with_its_line(raw, code, problem):
    found = keys({"dt.operator.operator1.attr.MEMORY_MB": raw}).operator_attributes("operator1")
    assert found.values == {}
    (told,) = found.diagnostics
    assert (told.code, str(told.where)) == (code, "conf.xml:1")
    assert told.problem.startswith(problem)


def test_a_weaker_value_is_not_looked_at():
    settings = keys({"dt.operator.*.attr.MEMORY_MB": "lots", "dt.operator.operator1.attr.MEMORY_MB": "1"})
    assert values(settings.operator_attributes("operator1")) == {"MEMORY_MB": 1}


def test_secrets_stay_secret_without_a_file():
    settings = Settings(Config.of({"dt.operator.operator1.password": "hunter2", "dt.attr.GATEWAY_PASSWORD": "x"}))
    scoped = settings.of("app1")
    result = scoped.configure("operator1", Reader())
    assert repr(result.component.password) == "'hunter2'"
    assert result.origins["password"].shown == "**********"
    assert scoped.application_attributes().values[DagContext.GATEWAY_PASSWORD].origin.shown == "**********"
    assert "hunter2" not in repr(result.origins)


def test_the_class_of_what_flows_may_be_set_on_a_port():
    settings = keys({"dt.operator.o2.port.lines.attr.TUPLE_CLASS": "tests.conf.samples.Bean"})
    found = settings.port_attributes("o2", "lines", output=False)
    assert {a: f.value for a, f in found.values.items()} == {PortContext.TUPLE_CLASS: Bean}


# -- size ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_cost_of_a_name_does_not_grow_with_the_keys_for_other_names():
    """Counted, not timed: of ten thousand exact keys, the question for one name looks at its own."""
    given = {f"dt.operator.op{n}.attr.VCORES": str(n) for n in range(10_000)}
    settings = keys({"dt.operator.*.attr.MEMORY_MB": "1", **given})
    fitting = list(settings._attributes[OperatorContext.scope].fitting("op77"))
    assert [rule.raw for _, rule in fitting] == ["1", "77"]
