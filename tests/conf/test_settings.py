"""What keys set: the rules of precedence and of attribute resolution, with Apex's own cases."""

import pytest

from dagkit.api.application import FunctionApplication
from dagkit.api.attributes import DagContext, Locality, OperatorContext
from dagkit.api.configuration import Config, Origin, Source
from dagkit.conf.apply.settings import Settings
from dagkit.errors import Where
from dagkit.ground.patterns import HELP
from tests.cases import cases
from tests.conf.samples import Bean, Feed, Inner, Pipeline, Point, Reader, config, entries, point


def keys(values, application="app1"):
    return Settings(config(values), application)


def values(attributes):
    assert attributes.diagnostics == ()
    return {attribute.name: found.value for attribute, found in attributes.values.items()}


def configured(settings, name="operator1", component=None):
    result = settings.configure(name, component or Reader())
    assert (result.diagnostics, result.component.faults) == ((), ())
    return result.component


def test_application_level_attributes():
    """testAppLevelAttributes."""
    path, memory = "attr.APPLICATION_PATH", "attr.MASTER_MEMORY_MB"
    given = {f"dt.{memory}": "123", f"dt.{path}": "/default", f"dt.application.app1.{path}": "/other"}
    settings = keys({**given, f"dt.application.app2.{memory}": "5"})
    assert values(settings.application_attributes()) == {"MASTER_MEMORY_MB": 123, "APPLICATION_PATH": "/other"}


def test_application_level_properties():
    """testAppLevelProperties: with and without `prop.`, for every application, and nested."""
    settings = keys(
        {
            "dt.application.app1.testprop1": "10",
            "dt.application.app1.prop.testprop2": "100",
            "dt.application.*.prop.testprop3": "1000",
            "dt.application.app1.scanner.scanIntervalMillis": "10000",
        }
    )
    application = settings.configure_application(Pipeline()).component
    assert (application.testprop1, application.testprop2, application.testprop3) == (10, 100, 1000)
    assert application.scanner.scan_interval_millis == 10000


@cases(
    "given, name",
    ("as it says itself", {}, "Pipeline"),
    ("as an alias says", {"dt.application.Alias.class": "tests.conf.samples.Pipeline"}, "Alias"),
    ("by module and class", {"dt.application.Alias.class": "tests.conf.samples:Pipeline"}, "Alias"),
    ("by class alone", {"dt.application.Alias.class": "Pipeline"}, "Alias"),
    ("another's alias", {"dt.application.Alias.class": "Other"}, "Pipeline"),
)
def test_the_name_of_an_application(given, name):
    """testAppAlias."""
    assert Settings(config(given), Pipeline()).application == name


def test_operator_level_properties():
    """testOperatorLevelProperties: the application's section beats the root."""
    section = "dt.application.app1.operator.operator1.text"
    settings = keys({"dt.operator.*.text": "pv1", "dt.operator.*.enabled": "true", section: "apv1"})
    one, two = configured(settings, "operator1"), configured(settings, "operator2")
    assert (one.text, two.text, one.enabled) == ("apv1", "pv1", True)


LADDER = [
    ("dt.attr.MEMORY_MB", "every operator, from the application's floor"),
    ("dt.operator.*.attr.MEMORY_MB", "a pattern at the root"),
    ("dt.operator.operator1.attr.MEMORY_MB", "the name at the root"),
    ("dt.application.app1.attr.MEMORY_MB", "every operator, in the application's section"),
    ("dt.application.app1.operator.operator[0-9].attr.MEMORY_MB", "a pattern there"),
    ("dt.application.app1.operator.operator1.attr.MEMORY_MB", "the name there"),
]


@pytest.mark.parametrize("rung", range(1, len(LADDER)), ids=[said for _, said in LADDER[1:]])
def test_the_ladder_of_precedence(rung):
    """Each key beats all before it, even where these come from stronger sources (testOperatorLevelAttributes)."""
    strong = entries({LADDER[rung][0]: "2"}, Source.SITE)
    weak = entries({key: "1" for key, _ in LADDER[:rung]}, Source.COMMAND_LINE)
    settings = Settings(Config([*strong, *weak]), "app1")
    assert values(settings.operator_attributes("operator1")) == {"MEMORY_MB": 2}


def test_between_keys_of_one_reach_the_stronger_source_wins():
    """A variable beats a file and gives way to the command line."""
    reader = "DAGKIT_OPERATOR__BLOCK_READER"
    given = [
        *entries({f"dt.operator.Block-reader.{name}": "1" for name in ("blockSize", "ratio", "text")}, Source.FILE),
        *entries({f"{reader}__BLOCK_SIZE": "2", f"{reader}__PROP__RATIO": "2"}, Source.ENVIRONMENT),
        *entries({"dt.operator.Block-reader.ratio": "3"}, Source.COMMAND_LINE),
        *entries({"apex.operator.Block-reader.TEXT": "0"}, Source.SITE),
    ]
    found = configured(Settings(Config(given), "app1"), "Block-reader")
    assert (found.block_size, found.ratio, found.text) == (2, 3, "1")


def test_the_operators_of_a_module_are_named_by_equality():
    inner = "dt.operator.Module$reader"
    settings = keys(
        {"dt.operator.Module.prop.depth": "3", f"{inner}.prop.blockSize": "7", f"{inner}.attr.MEMORY_MB": "8"}
    )
    assert configured(settings, "Module", Inner()).depth == 3
    assert configured(settings, "Module$reader").block_size == 7
    assert values(settings.operator_attributes("Module$reader")) == {"MEMORY_MB": 8}


def test_a_key_for_many_may_meet_operators_without_the_property_and_unconnected_ports():
    settings = keys({"dt.operator.*.blockSize": "9", "dt.operator.operator1.port.*.attr.UNIFIER_LIMIT": "8"})
    assert configured(settings, "feed", Feed()) == Feed()
    assert configured(settings, "reader").block_size == 9
    settings.port_attributes("operator1", "errors", output=True, connected=False)
    settings.port_attributes("operator1", "output", output=True)
    assert settings.unmatched() == []


def test_an_unconnected_port_bears_nothing():
    settings = keys({"dt.operator.operator1.port.output.attr.UNIFIER_LIMIT": "8"})
    assert values(settings.port_attributes("operator1", "output", output=True, connected=False)) == {}
    (told,) = settings.unmatched()
    assert told.code == "attribute-stranded"
    assert told.problem.endswith("attr.UNIFIER_LIMIT is for operator1.output, which no stream uses")


@pytest.mark.parametrize("from_code", [True, False], ids=["set in code", "set by a key"])
def test_converters_of_the_application(from_code):
    codecs = {} if from_code else {"dt.attr.STRING_CODECS": "tests.conf.samples.Point=tests.conf.samples:point"}
    settings = keys({"dt.operator.operator1.point": "1/2", **codecs})
    if from_code:
        settings.codecs = {Point: point}
    assert configured(settings).point == Point(1, 2)


def populate(dag, conf):
    """An application that is a function."""


@pytest.mark.parametrize("application", [Pipeline(), FunctionApplication(populate=populate)], ids=["class", "function"])
def test_plain_class_names_are_those_of_the_applications_module(application):
    settings = keys({"dt.operator.operator1.payload": "Bean"})
    settings.configure_application(application)
    assert configured(settings).payload is Bean


def test_port_level_attributes():
    """testPortLevelAttributes: the direction beats `port`, wherever it stands; a name beats a pattern."""
    settings = keys(
        {
            "dt.application.app1.operator.operator1.port.*.attr.QUEUE_CAPACITY": "16384",
            "dt.operator.operator1.inputport.side.attr.QUEUE_CAPACITY": "32768",
            "dt.operator.operator1.outputport.*.attr.QUEUE_CAPACITY": "4096",
            "dt.operator.operator2.port.output.attr.QUEUE_CAPACITY": "8",
            "dt.operator.operator2.port.*.attr.QUEUE_CAPACITY": "2",
            "dt.port.*.attr.QUEUE_CAPACITY": "1",
        }
    )
    ports = {
        ("operator1", "lines", False): 16384,
        ("operator1", "side", False): 32768,
        ("operator1", "output", True): 4096,
        ("operator2", "output", True): 8,
        ("operator2", "errors", True): 2,
        ("operator3", "errors", True): 1,
    }
    found = {place: values(settings.port_attributes(*place[:2], output=place[2])) for place in ports}
    assert found == {place: {"QUEUE_CAPACITY": capacity} for place, capacity in ports.items()}


@pytest.mark.parametrize(
    ("attribute", "raw", "value"),
    [("PARTITION_PARALLEL", "true", True), ("TUPLE_CLASS", "tests.conf.samples.Bean", Bean)],
)
def test_an_attribute_of_a_port_is_set_on_its_operator_alone(attribute, raw, value):
    settings = keys({f"dt.operator.Record-writer.port.input.attr.{attribute}": raw})
    assert values(settings.port_attributes("Record-writer", "input", output=False)) == {attribute: value}
    assert values(settings.port_attributes("Block-reader", "input", output=False)) == {}


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
    first, inner = (values(settings.unifier_attributes(name, "output")) for name in ("operator1", "Module$reader"))
    assert first == {"APPLICATION_WINDOW_COUNT": 2, "MEMORY_MB": 512}
    assert inner == {"TIMEOUT_WINDOW_COUNT": 2, "MEMORY_MB": 256}
    assert values(settings.operator_attributes("operator1")) == {}


def test_a_stream_has_a_locality_and_a_schema():
    named = {"dt.stream.lines.locality": "CONTAINER_LOCAL", "dt.stream.lines.schema": "tests.conf.samples.Bean"}
    settings = keys({**named, "dt.stream.*.locality": "NODE_LOCAL"})
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


SEVERAL = [  # AUTO_RECORD is known to operators and to ports, STATELESS to operators alone
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
]
KNOWN = [
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
]
AT = ("dt.", "dt.application.app1.", "dt.application.*.")


@pytest.mark.parametrize("at", AT)
@pytest.mark.parametrize(("key", "bearers"), SEVERAL)
def test_an_attribute_of_several_contexts(at, key, bearers):
    """testRootLevelAmbiguousAttributeSimple and its thirty siblings."""
    assert borne(f"{at}{key}", "true") == bearers


@pytest.mark.parametrize(("key", "bearers"), KNOWN)
def test_an_attribute_goes_where_it_is_known(key, bearers):
    assert borne(key, "5") == bearers


def test_a_value_knows_the_key_that_won_and_a_weaker_value_is_not_looked_at():
    settings = keys({"dt.operator.*.attr.MEMORY_MB": "lots", "dt.operator.operator1.attr.MEMORY_MB": "2"})
    assert values(settings.operator_attributes("operator1")) == {"MEMORY_MB": 2}
    found = settings.operator_attributes("operator1").values[OperatorContext.MEMORY_MB]
    assert found.origin == Origin(Source.FILE, Where("conf.xml", 2), "dt.operator.operator1.attr.MEMORY_MB")


@pytest.mark.parametrize(("raw", "problem"), [("lots", "it must be a whole number"), ("", "it has no value")])
def test_a_value_that_an_attribute_does_not_take_is_reported_with_its_line(raw, problem):
    found = keys({"dt.operator.operator1.attr.MEMORY_MB": raw}).operator_attributes("operator1")
    (told,) = found.diagnostics
    assert (found.values, told.code, str(told.where)) == ({}, "attribute-invalid", "conf.xml:1")
    assert told.problem.startswith(f"MEMORY_MB of operator1 cannot be {raw!r}: {problem}")


def test_secrets_stay_secret_without_a_file():
    given = {"dt.operator.operator1.password": "hunter2", "dt.attr.GATEWAY_PASSWORD": "x"}
    settings = Settings(Config.of(given), "app1")
    result = settings.configure("operator1", Reader())
    assert repr(result.component.password) == "'hunter2'"
    assert result.origins["password"].shown == "**********"
    assert settings.application_attributes().values[DagContext.GATEWAY_PASSWORD].origin.shown == "**********"
    assert "hunter2" not in repr(result.origins)


@pytest.mark.slow
def test_the_cost_of_a_name_does_not_grow_with_the_keys_for_other_names():
    """Counted, not timed: of ten thousand exact keys, the question for one name looks at its own."""
    given = {f"dt.operator.op{n}.attr.VCORES": str(n) for n in range(10_000)}
    settings = keys({"dt.operator.*.attr.MEMORY_MB": "1", **given})
    fitting = list(settings._attributes[OperatorContext.scope].fitting("op77"))
    assert [entry.value for _, entry in fitting] == ["1", "77"]


def with_templates(values, name="operator1", component=None):
    settings = Settings(config(values), "app1")
    return settings.configure(name, component or Reader()).component, settings


def test_operator_configuration_lookup():
    """testOperatorConfigurationLookup: a template by name beats one by class; keys of the operator add to both."""
    values = {
        "dt.template.byId.matchIdRegExp": ".*operator1.*",
        "dt.template.byId.text": "from the name",
        "dt.template.byId.scanner.filePatternRegularExp": "nested",
        "dt.template.byClass.matchClassNameRegExp": ".*Reader",
        "dt.template.byClass.text": "from the class",
        "dt.operator.operator3.blockSize": "3",
    }
    one, _ = with_templates(values)
    assert (one.text, one.scanner.file_pattern_regular_exp) == ("from the name", "nested")
    two, _ = with_templates(values, "operator2")
    assert (two.text, two.scanner.file_pattern_regular_exp) == ("from the class", ".*")
    three, _ = with_templates(values, "operator3")
    assert (three.text, three.block_size) == ("from the class", 3)


TEMPLATES = [
    {"dt.template.c.matchClassNameRegExp": r".*\.Reader", "dt.template.c.blockSize": "{}"},
    {"dt.template.a.matchAppNameRegExp": "app.", "dt.template.a.blockSize": "{}"},
    {"dt.template.i.matchIdRegExp": r"operator\d", "dt.template.i.blockSize": "{}"},
    {"dt.operator.operator1.template": "r", "dt.template.r.blockSize": "{}"},
    {"dt.operator.*.blockSize": "{}"},
]


@pytest.mark.parametrize(
    "rung",
    range(1, len(TEMPLATES)),
    ids=["by application before by class", "by name", "by reference", "any key of the operator"],
)
def test_the_ladder_of_templates(rung):
    values = {}
    for number in (rung, rung - 1):
        values |= {key: value.format(number) for key, value in TEMPLATES[number].items()}
    assert with_templates(values)[0].block_size == rung


@pytest.mark.parametrize("pattern", ["Reader", "tests.conf.samples.Reader", ".*Reader"])
def test_a_class_is_matched_by_its_simple_or_its_full_name(pattern):
    values = {"dt.template.t.matchClassNameRegExp": pattern, "dt.template.t.blockSize": "7"}
    assert with_templates(values)[0].block_size == 7


def test_a_template_may_hold_more_than_an_operator_has():
    settings = Settings(config({"dt.template.t.matchIdRegExp": ".*", "dt.template.t.blockSize": "7"}), "app1")
    settings.configure("feed", Feed())
    settings.configure("reader", Reader())
    assert settings.unmatched() == []


USED, FITS_ALL = {"dt.operator.operator1.template": "t"}, {"dt.template.t.matchIdRegExp": ".*"}
NOT_USED = "write operator.NAME.template=t, or give it a matchIdRegExp that fits an operator"
NO_PROPERTY = "operator1 has no property 'blokSize'"
NO_MATCH = "template 't' matches no operator by this pattern"


@pytest.mark.parametrize(
    ("values", "problem", "help_"),
    [
        ({"dt.template.t.blockSize": "7"}, "no operator uses template 't'", NOT_USED),
        ({"dt.template.t.matchIdRegExp": "writer"}, NO_MATCH, "operators here: 'operator1'"),
        ({"dt.template.t.matchIdRegExp": "("} | USED, "'(' is not a pattern: missing ): (", HELP),
        ({"dt.operator.operator1.template": "tt"} | FITS_ALL, "there is no template 'tt'", "did you mean 't'?"),
        ({"dt.template.t.blokSize": "7"} | FITS_ALL, NO_PROPERTY, "did you mean 'block_size'?"),
    ],
    ids=["not used", "no operator matches", "no pattern", "no such template", "no such property"],
)
def test_a_template_that_does_nothing_is_reported(values, problem, help_):
    (fault,) = with_templates(values)[1].unmatched()
    assert (fault.problem, fault.help) == (f"{next(iter(values))}: {problem}", help_)
