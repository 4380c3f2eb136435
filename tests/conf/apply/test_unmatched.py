"""Keys that matched nothing: each is reported, with the name that was probably meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.api.configuration import Config, Source
from dagkit.conf.apply.settings import Settings
from dagkit.conf.sources.sources import Sources, load
from dagkit.errors import Severity
from tests.conf.samples import Feed, Inner, Pipeline, Reader, config, entries


def run(conf, *, allow_unknown=False):
    """Ask all that a compiler asks for an application with a feed, a reader and a module between two streams."""
    settings = Settings(conf).of("Pipeline")
    settings.configure_application(Pipeline())
    settings.application_attributes()
    settings.configure("Module", Inner())
    for name, component in (("feed", Feed()), ("Block-reader", Reader()), ("Module$reader", Reader())):
        settings.configure(name, component)
        settings.operator_attributes(name)
        for output in (True, False):
            for port in ("lines", "side") if not output else ("output", "errors"):
                if name != "feed" or port == "output":
                    connected = port in ("lines", "output")
                    settings.port_attributes(name, port, output=output, connected=connected)
                    if output:
                        settings.unifier_attributes(name, port, connected=connected)
    settings.stream("records")
    settings.stream("filtered-records")
    return settings.unmatched(allow_unknown=allow_unknown)


def told(key, value="1"):
    return [(fault.code, fault.problem.removeprefix(f"{key}: "), fault.help) for fault in run(config({key: value}))]


@pytest.mark.parametrize(
    "key",
    [
        "dt.attr.MEMORY_MB",
        "dt.operator.*.attr.MEMORY_MB",
        "dt.operator.Block-reader.attr.MEMORY_MB",
        "dt.operator.Module$reader.attr.MEMORY_MB",
        "dt.operator.Block-reader.blockSize",
        "dt.operator.*.blockSize",
        "dt.operator.Module.depth",
        "dt.port.*.attr.QUEUE_CAPACITY",
        "dt.operator.Block-reader.outputport.output.unifier.attr.MEMORY_MB",
        "dt.application.Pipeline.testprop1",
        "dt.testprop1",
        "dt.application.Pipeline.class",
        "DAGKIT_OPERATOR__BLOCK_READER__BLOCK_SIZE",
        "fs.defaultFS",
        "hadoop.tmp.dir",
        "yarn.resourcemanager.address",
        "spark.executor.memory",
    ],
)
def test_keys_that_matched_are_not_reported(key):
    assert told(key) == []


@pytest.mark.parametrize(
    ("key", "code", "problem", "help_"),
    [
        (
            "dt.operator.Block-readr.blockSize",
            "key-unmatched",
            "there is no operator 'Block-readr'",
            "did you mean 'Block-reader'?",
        ),
        (
            "dt.operator.Block-reader.blokSize",
            "property-unknown",
            "Block-reader has no property 'blokSize'",
            "did you mean 'block_size'?",
        ),
        (
            "dt.operator.Block-reader.scanner.fils",
            "property-unknown",
            "Scanner of Block-reader has no property 'fils'",
            "did you mean 'files'?",
        ),
        (
            "dt.operator.Block-reader.attr.MEMORY",
            "key-unmatched",
            "there is no attribute 'MEMORY'",
            "did you mean 'MEMORY_MB'?",
        ),
        (
            "dt.operator.Block-reader.attr.memory_mb",
            "key-unmatched",
            "there is no attribute 'memory_mb'",
            "did you mean 'MEMORY_MB'?",
        ),
        (
            "dt.operator.Block-reader.attr.MASTER_MEMORY_MB",
            "attribute-misplaced",
            "MASTER_MEMORY_MB belongs to the application and cannot be set here",
            "set it on the application",
        ),
        (
            "dt.port.*.attr.MEMORY_MB",
            "attribute-misplaced",
            "MEMORY_MB belongs to an operator and cannot be set here",
            "set it on an operator",
        ),
        (
            "dt.operator.Block-reader.port.liness.attr.QUEUE_CAPACITY",
            "key-unmatched",
            "there is no port 'liness' of Block-reader",
            "did you mean 'lines'?",
        ),
        (
            "dt.operator.Block-reader.outputport.lines.attr.QUEUE_CAPACITY",
            "key-unmatched",
            "'lines' is an input port, not an outputport",
            "write port, or inputport",
        ),
        (
            "dt.operator.Block-reader.port.side.attr.QUEUE_CAPACITY",
            "attribute-stranded",
            "attr.QUEUE_CAPACITY is for Block-reader.side, which no stream uses",
            "connect a stream to the port, or set the attribute on a connected port",
        ),
        (
            "dt.operator.Module.attr.MEMORY_MB",
            "key-unmatched",
            "Module is a module, which has no attributes",
            "write Module$NAME for an operator inside",
        ),
        (
            "dt.stream.record.locality",
            "key-unmatched",
            "there is no stream 'record'",
            "did you mean 'records'?",
        ),
        (
            "dt.stream.records.source",
            "key-unmatched",
            "the application itself defines the source of stream 'records'",
            "keys define streams and operators only in an application that is itself a property file",
        ),
        (
            "dt.operator.Block-reader.classname",
            "key-unmatched",
            "the application itself defines the classname of an operator",
            "keys define streams and operators only in an application that is itself a property file",
        ),
        (
            "dt.operatr.Block-reader.blockSize",
            "key-unmatched",
            "there is no section 'operatr'",
            "did you mean 'operator'?",
        ),
        (
            "dt.application.Pipelin.testprop1",
            "key-unmatched",
            "the application is not called 'Pipelin'",
            "did you mean 'Pipeline'?",
        ),
        (
            "dt.application.Pipeline.testprp1",
            "property-unknown",
            "the application has no property 'testprp1'",
            "did you mean 'testprop1'?",
        ),
        (
            "dt.testprp1",
            "key-unmatched",
            "the application has no property 'testprp1'",
            "did you mean 'testprop1'?",
        ),
        (
            "dt.operator.*reader.blockSize",
            "key-malformed",
            "'*reader' is not a pattern: no argument for repetition operator: *",
            r"names are regular expressions of RE2: write \w* for any word characters, or * alone for any name",
        ),
        (
            "dt.operator.Block-reader.port.lines.QUEUE_CAPACITY",
            "key-malformed",
            "what follows port.lines is 'QUEUE_CAPACITY'",
            "write port.lines.attr.NAME: only attributes can be set there",
        ),
        (
            "operator.Block-reader.blockSize",
            "key-unmatched",
            "nothing is called operator.Block-reader.blockSize",
            "did you mean 'dt.operator.Block-reader.blockSize'?",
        ),
        (
            "dtt.operator.Block-reader.blockSize",
            "key-unmatched",
            "nothing is called dtt.operator.Block-reader.blockSize",
            "did you mean 'dt.operator.Block-reader.blockSize'?",
        ),
        (
            "something",
            "key-unmatched",
            "nothing is called something",
            "nothing reads it; keys of dagkit begin with one of dt., apex., dagkit., stram.",
        ),
        (
            "DAGKIT_OPERATOR__BLOK_READER__BLOCK_SIZE",
            "key-unmatched",
            "there is no operator 'BLOK_READER'",
            "did you mean 'Block-reader'?",
        ),
        (
            "DAGKIT_OPERATOR__BLOCK_READER__BLOK_SIZE",
            "property-unknown",
            "Block-reader has no property 'blok_size'",
            "did you mean 'block_size'?",
        ),
    ],
)
def test_every_key_that_matched_nothing_is_reported(key, code, problem, help_):
    assert told(key) == [(code, problem, help_)]


def test_it_is_reported_with_its_line():
    (fault,) = run(config({"dt.attr.MEMORY_MB": "1", "dt.operator.Writer.x": "1"}))
    assert str(fault.where) == "conf.xml:2"


def test_unknown_keys_may_be_allowed_and_are_reported_all_the_same():
    conf = config({"dt.operator.Writer.x": "1", "dt.operator.Block-reader.blokSize": "1", "dt..": "1", "some": "1"})
    assert [fault.severity for fault in run(conf, allow_unknown=True)] == [Severity.WARNING] * 4
    assert [fault.severity for fault in run(conf)] == [Severity.ERROR] * 4


@pytest.mark.parametrize("asked", ["dt.numTuples", "apex.numTuples"], ids=["as it is written", "by another prefix"])
def test_a_key_that_the_application_asks_for_matched(asked):
    conf = config({"dt.numTuples": "1", "input.path": "x", "dt.operator.Nobody.x": "1"})
    for key in (asked, "input.path", "dt.operator.Nobody.x"):
        assert key in conf or key == asked
    assert run(conf) == []


def test_a_key_that_is_nearly_asked_for():
    conf = config({"input.pth": "x"})
    assert conf.read("input.path", str, "default") == "default"
    assert [fault.help for fault in run(conf)] == ["did you mean 'input.path'?"]


@pytest.mark.parametrize(
    ("source", "section", "expected"),
    [
        pytest.param(Source.SITE, "Another", 0, id="a site file serves several applications"),
        pytest.param(Source.APPLICATION, "Another", 0, id="so does the file of a package"),
        pytest.param(Source.USER_SITE, "Another", 0, id="and the user's own"),
        pytest.param(Source.APPLICATION, "Pipelin", 1, id="but a mistake is reported"),
        pytest.param(Source.APPLICATION_NAMED, "Another", 1, id="a file for this application serves no other"),
        pytest.param(Source.FILE, "Another", 1, id="nor does one that was named at the launch"),
        pytest.param(Source.COMMAND_LINE, "Another", 1, id="nor the command line"),
    ],
)
def test_sections_of_other_applications(source, section, expected):
    conf = Config(entries({f"dt.application.{section}.attr.MEMORY_MB": "1"}, source))
    assert len(run(conf)) == expected


def test_a_file_that_is_wrong_throughout_is_reported_in_time():
    conf = config({f"dt.operator.wrong{n}.x": "1" for n in range(2000)})
    faults = run(conf)
    assert len(faults) == 2000
    assert faults[-1].help == "operators here: 'Module', 'feed', 'Block-reader', 'Module$reader'"


SECTIONS = ["dt", "apex", "application", "operator", "stream", "template", "port", "inputport", "outputport", "unifier"]
MARKS = ["attr", "prop", "class", "classname", "MEMORY_MB", "AUTO_RECORD", "PARTITIONER", "matchIdRegExp", "locality"]
NAMES = ["Pipeline", "Block-reader", "Module$reader", "*", "[", "records", "lines", "scanner", "names[0]", "tags(a)"]
WORDS = st.sampled_from([*SECTIONS, *MARKS, *NAMES])
TEXTS = st.text(max_size=5) | st.sampled_from(["1", "true", "Block-reader"])
KEYS = st.lists(WORDS, min_size=1, max_size=8).map(lambda words: "dt." + ".".join(words))
VARIABLES = st.lists(WORDS, min_size=2, max_size=6).map(lambda words: "DAGKIT_" + "__".join(words).upper())


@given(
    st.dictionaries(KEYS | VARIABLES, st.text(max_size=5) | st.sampled_from(["1", "true", "Block-reader"]), max_size=6)
)
def test_every_key_matches_or_is_reported(values):
    """No key breaks anything, and none is passed over in silence."""
    told = run(config(values))
    assert {str(fault.where) for fault in told} <= {f"conf.xml:{line}" for line in range(1, len(values) + 1)}
    assert len(told) <= len(values)


def test_a_template_whose_name_is_secret_is_not_quoted():
    key = "dt.operator.Block-reader.template"
    conf, _ = load(Sources(environment={"P": "hunter2"}, definitions=[(key, "${env:P}")]))
    (fault,) = run(conf)
    assert (fault.problem, fault.help) == (
        f"{key}: there is no template '${{env:P}}'",
        "declare it, as in dt.template.${env:P}.prop.NAME",
    )


def test_an_attribute_made_of_a_secret_is_not_quoted():
    key = "dt.operator.feed.attr.PARTITIONER"
    conf, _ = load(Sources(environment={"P": "hunter2.Two"}, definitions=[(key, "${env:P}:q")]))
    (fault,) = Settings(conf).of("Pipeline").operator_attributes("feed").diagnostics
    assert "hunter2" not in f"{fault.problem}{fault.help}"


def test_a_template_that_is_not_there_is_answered_with_those_that_are():
    key = "dt.operator.Block-reader.template"
    assert told(key, "foo") == [
        ("key-unmatched", "there is no template 'foo'", "declare it, as in dt.template.foo.prop.NAME")
    ]
    conf = config({key: "foo", "dt.template.big.matchIdRegExp": "feed", "dt.template.big.prop.folder": "x"})
    assert "known here: 'big'" in [fault.help for fault in run(conf)]


@pytest.mark.parametrize(
    ("word", "help_"),
    [
        ("matchIdRegExp", "operators here: 'Module', 'feed', 'Block-reader', 'Module$reader'"),
        ("matchClassNameRegExp", "classes here: 'Inner', 'Feed', 'Reader'"),
        ("matchAppNameRegExp", "the application is called 'Pipeline'"),
    ],
)
def test_a_pattern_that_fits_nothing_is_answered_with_what_it_is_held_against(word, help_):
    ((_, _, help_told),) = told(f"dt.template.big.{word}", "Zork")
    assert help_told == help_


def test_names_that_are_not_near_any_are_answered_with_those_there_are():
    assert told("dt.stream.zzz.locality", "NODE_LOCAL")[0][2] == "known here: 'records', 'filtered-records'"
    assert told("dt.operator.Block-reader.inputport.zzz.attr.QUEUE_CAPACITY")[0][2].startswith("known here: 'lines'")
