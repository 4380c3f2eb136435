"""Keys that matched nothing: each is reported, with the name that was probably meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.api.configuration import Config, Source
from dagkit.conf.apply.settings import Settings
from dagkit.conf.sources.sources import Sources, load
from dagkit.errors import Severity
from tests.cases import cases
from tests.conf.samples import Feed, Inner, Pipeline, Reader, config, entries


def run(conf, *, allow_unknown=False):
    """Ask all that a compiler asks for an application with a feed, a reader and a module between two streams."""
    settings = Settings(conf, "Pipeline")
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


MATCHED = """
dt.attr.MEMORY_MB dt.operator.*.attr.MEMORY_MB dt.operator.Block-reader.attr.MEMORY_MB dt.port.*.attr.QUEUE_CAPACITY
dt.operator.Module$reader.attr.MEMORY_MB dt.operator.Block-reader.outputport.output.unifier.attr.MEMORY_MB
dt.operator.Block-reader.blockSize dt.operator.*.blockSize dt.operator.Module.depth dt.application.Pipeline.testprop1
dt.testprop1 dt.application.Pipeline.class DAGKIT_OPERATOR__BLOCK_READER__BLOCK_SIZE
fs.defaultFS hadoop.tmp.dir yarn.resourcemanager.address spark.executor.memory
"""


@pytest.mark.parametrize("key", MATCHED.split())
def test_keys_that_matched_are_not_reported(key):
    assert told(key) == []


READER, VARIABLE = "dt.operator.Block-reader", "DAGKIT_OPERATOR__BLOCK_READER"
IN_CODE = "keys define streams and operators only in an application that is itself a property file"
LINK = "connect a stream to the port, or set the attribute on a connected port"
UNLINKED = "attr.QUEUE_CAPACITY is for Block-reader.side, which no stream uses", LINK
MISPLACED = "MASTER_MEMORY_MB belongs to the application and cannot be set here", "set it on the application"
OF_AN_OPERATOR = "MEMORY_MB belongs to an operator and cannot be set here", "set it on an operator"
OF_AN_INPUT = "'lines' is an input port, not an outputport", "write port, or inputport"
OF_A_MODULE = "Module is a module, which has no attributes", "write Module$NAME for an operator inside"
ITSELF = "the application itself defines the"
WRITE_ATTRIBUTE = "write port.lines.attr.NAME: only attributes can be set there"
NO_ATTRIBUTE = "what follows port.lines is 'QUEUE_CAPACITY'", WRITE_ATTRIBUTE
NO_PATTERN = "'*reader' is not a pattern: no argument for repetition operator: *"
RE2 = r"names are regular expressions of RE2: write \w* for any word characters, or * alone for any name"
OURS = "nothing reads it; keys of dagkit begin with one of dt., apex., dagkit., stram."


@pytest.mark.parametrize(
    ("code", "key", "problem", "near"),
    [
        ("key-unmatched", "dt.operator.Block-readr.blockSize", "there is no operator 'Block-readr'", "Block-reader"),
        ("property-unknown", f"{READER}.blokSize", "Block-reader has no property 'blokSize'", "block_size"),
        ("property-unknown", f"{READER}.scanner.fils", "Scanner of Block-reader has no property 'fils'", "files"),
        ("key-unmatched", f"{READER}.attr.MEMORY", "there is no attribute 'MEMORY'", "MEMORY_MB"),
        ("key-unmatched", f"{READER}.attr.memory_mb", "there is no attribute 'memory_mb'", "MEMORY_MB"),
        (
            "key-unmatched",
            f"{READER}.port.liness.attr.QUEUE_CAPACITY",
            "there is no port 'liness' of Block-reader",
            "lines",
        ),
        ("key-unmatched", "dt.stream.record.locality", "there is no stream 'record'", "records"),
        ("key-unmatched", "dt.operatr.Block-reader.x", "there is no section 'operatr'", "operator"),
        ("key-unmatched", "dt.application.Pipelin.x", "the application is not called 'Pipelin'", "Pipeline"),
        (
            "property-unknown",
            "dt.application.Pipeline.testprp1",
            "the application has no property 'testprp1'",
            "testprop1",
        ),
        ("key-unmatched", "dt.testprp1", "the application has no property 'testprp1'", "testprop1"),
        ("key-unmatched", "operator.Block-reader.x", "nothing is called operator.Block-reader.x", f"{READER}.x"),
        (
            "key-unmatched",
            "dtt.operator.Block-reader.x",
            "nothing is called dtt.operator.Block-reader.x",
            f"{READER}.x",
        ),
        ("key-unmatched", "DAGKIT_OPERATOR__BLOK_READER__X", "there is no operator 'BLOK_READER'", "Block-reader"),
        ("property-unknown", f"{VARIABLE}__BLOK_SIZE", "Block-reader has no property 'blok_size'", "block_size"),
    ],
)
def test_a_misspelt_key_is_answered_with_the_nearest(code, key, problem, near):
    assert told(key) == [(code, problem, f"did you mean {near!r}?")]


@pytest.mark.parametrize(
    ("code", "key", "problem", "help_"),
    [
        ("attribute-misplaced", f"{READER}.attr.MASTER_MEMORY_MB", *MISPLACED),
        ("attribute-misplaced", "dt.port.*.attr.MEMORY_MB", *OF_AN_OPERATOR),
        ("key-unmatched", f"{READER}.outputport.lines.attr.QUEUE_CAPACITY", *OF_AN_INPUT),
        ("attribute-stranded", f"{READER}.port.side.attr.QUEUE_CAPACITY", *UNLINKED),
        ("key-unmatched", "dt.operator.Module.attr.MEMORY_MB", *OF_A_MODULE),
        ("key-unmatched", "dt.stream.records.source", f"{ITSELF} source of stream 'records'", IN_CODE),
        ("key-unmatched", f"{READER}.classname", f"{ITSELF} classname of an operator", IN_CODE),
        ("key-malformed", "dt.operator.*reader.blockSize", NO_PATTERN, RE2),
        ("key-malformed", f"{READER}.port.lines.QUEUE_CAPACITY", *NO_ATTRIBUTE),
        ("key-unmatched", "something", "nothing is called something", OURS),
    ],
)
def test_every_key_that_matched_nothing_is_reported(code, key, problem, help_):
    assert told(key) == [(code, problem, help_)]


def test_an_application_has_no_path_but_a_property_of_that_name():
    ((code, problem, _),) = told("dt.application.Pipeline.path")
    assert (code, problem) == ("property-unknown", "the application has no property 'path'")


def test_it_is_reported_with_its_line_also_if_unknown_keys_are_allowed():
    (fault,) = run(config({"dt.attr.MEMORY_MB": "1", "dt.operator.Writer.x": "1"}))
    assert str(fault.where) == "conf.xml:2"
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


@cases(
    "source, section, expected",
    ("a site file serves several applications", Source.SITE, "Another", 0),
    ("so does the file of a package", Source.APPLICATION, "Another", 0),
    ("and the user's own", Source.USER_SITE, "Another", 0),
    ("but a mistake is reported", Source.APPLICATION, "Pipelin", 1),
    ("a file for this application serves no other", Source.APPLICATION_NAMED, "Another", 1),
    ("nor does one that was named at the launch", Source.FILE, "Another", 1),
    ("nor the command line", Source.COMMAND_LINE, "Another", 1),
)
def test_sections_of_other_applications(source, section, expected):
    assert len(run(Config(entries({f"dt.application.{section}.attr.MEMORY_MB": "1"}, source)))) == expected


def test_a_file_that_is_wrong_throughout_is_reported_in_time():
    faults = run(config({f"dt.operator.wrong{n}.x": "1" for n in range(2000)}))
    assert len(faults) == 2000
    assert faults[-1].help == "operators here: 'Module', 'feed', 'Block-reader', 'Module$reader'"


SECTIONS = ["dt", "apex", "application", "operator", "stream", "template", "port", "inputport", "outputport", "unifier"]
MARKS = ["attr", "prop", "class", "classname", "MEMORY_MB", "AUTO_RECORD", "PARTITIONER", "matchIdRegExp", "locality"]
NAMES = ["Pipeline", "Block-reader", "Module$reader", "*", "[", "records", "lines", "scanner", "names[0]", "tags(a)"]
WORDS = st.sampled_from([*SECTIONS, *MARKS, *NAMES])
TEXTS = st.text(max_size=5) | st.sampled_from(["1", "true", "Block-reader"])
KEYS = st.lists(WORDS, min_size=1, max_size=8).map(lambda words: "dt." + ".".join(words))
VARIABLES = st.lists(WORDS, min_size=2, max_size=6).map(lambda words: "DAGKIT_" + "__".join(words).upper())


@given(st.dictionaries(KEYS | VARIABLES, TEXTS, max_size=6))
def test_every_key_matches_or_is_reported(values):
    """No key breaks anything, and none is passed over in silence."""
    lines = [str(fault.where) for fault in run(config(values))]
    assert set(lines) <= {f"conf.xml:{line}" for line in range(1, len(values) + 1)}
    assert len(lines) <= len(values)


def test_a_template_and_an_attribute_that_are_secret_are_not_quoted():
    key = "dt.operator.Block-reader.template"
    conf, _ = load(Sources(environment={"P": "hunter2"}, definitions=[(key, "${env:P}")]))
    assert [(fault.problem, fault.help) for fault in run(conf)] == [
        (f"{key}: there is no template '${{env:P}}'", "declare it, as in dt.template.${env:P}.prop.NAME")
    ]
    key = "dt.operator.feed.attr.PARTITIONER"
    conf, _ = load(Sources(environment={"P": "hunter2.Two"}, definitions=[(key, "${env:P}:q")]))
    (fault,) = Settings(conf, "Pipeline").operator_attributes("feed").diagnostics
    assert "hunter2" not in f"{fault.problem}{fault.help}"


def test_a_template_that_is_not_there_is_answered_with_those_that_are():
    key = "dt.operator.Block-reader.template"
    assert told(key, "foo")[0][1:] == ("there is no template 'foo'", "declare it, as in dt.template.foo.prop.NAME")
    conf = config({key: "foo", "dt.template.big.matchIdRegExp": "feed", "dt.template.big.prop.folder": "x"})
    assert "known here: 'big'" in [fault.help for fault in run(conf)]


@pytest.mark.parametrize(
    ("key", "value", "help_"),
    [
        ("template.b.matchIdRegExp", "Zork", "operators here: 'Module', 'feed', 'Block-reader', 'Module$reader'"),
        ("template.b.matchClassNameRegExp", "Zork", "classes here: 'Inner', 'Feed', 'Reader'"),
        ("template.b.matchAppNameRegExp", "Zork", "the application is called 'Pipeline'"),
        ("stream.zzz.locality", "NODE_LOCAL", "known here: 'records', 'filtered-records'"),
        ("operator.Block-reader.inputport.zzz.attr.QUEUE_CAPACITY", "1", "known here: 'lines', 'side'"),
    ],
)
def test_where_no_name_is_near_what_there_is_is_listed(key, value, help_):
    assert [told_help for _, _, told_help in told(f"dt.{key}", value)] == [help_]


@pytest.mark.parametrize(
    ("asked", "in_file", "is_reported"),
    [
        ("dt.operator.*.blockSize", "dt.operator.Block-reader.blockSize", False),  # another reader has it
        ("dt.testprop1", "dt.application.Pipeline.testprop1", True),
        ("dt.testprop1", "dt.application.Pipeline.testProp1", True),
        ("dt.attr.MEMORY_MB", "dt.operator.Block-reader.attr.MEMORY_MB", False),  # others have it
        ("dt.operator.Block-reader.blockSize", "dt.operator.*.blockSize", False),
        ("dt.operator.Block-reader.blockSize", "dt.operator.Block-reader.blockSize", False),
    ],
)
def test_a_key_of_the_command_line_that_decides_nothing_is_reported(asked, in_file, is_reported):
    faults = run(Config([*entries({in_file: "1"}, Source.FILE), *entries({asked: "2"}, Source.COMMAND_LINE)]))
    problem = f"{asked} of the command line decides nothing: {in_file} is narrower"
    expected = [("key-unmatched", problem, Severity.WARNING)] if is_reported else []
    assert [(fault.code, fault.problem, fault.severity) for fault in faults] == expected
