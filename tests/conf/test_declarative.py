"""Applications declared in JSON and by keys: what they draw, what configuration makes of them, and what is wrong."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.api.application import StreamingApplication
from dagkit.api.attributes import Locality, OperatorContext, PortContext
from dagkit.api.configuration import Config, Source
from dagkit.api.dag import Dag
from dagkit.api.partitioning import StatelessPartitioner
from dagkit.api.secrets import MASK
from dagkit.compiler import compile_application
from dagkit.conf.apply.settings import Settings
from dagkit.conf.declared.declarative import declared_application
from dagkit.conf.declared.declared_json import JsonObject, read_json
from dagkit.conf.sources.user_files import ParseError
from dagkit.errors import ApplicationFaults, ApplicationNotFound
from dagkit.plan.parse import write_plan
from tests.cases import cases
from tests.conf.samples import Bean, Codec, Colour, Feed, Reader, Scanner, Span, config, long_enough

FEED, READER = "tests.conf.samples.Feed", "tests.conf.samples.Reader"

AS_JSON = f"""{{
  "displayName": "Declared",
  "description": "an example",
  "attributes": {{"STREAMING_WINDOW_SIZE_MILLIS": 1000}},
  "operators": [
    {{"name": "feed", "class": "{FEED}"}},
    {{"name": "reader",
      "class": "{READER}",
      "properties": {{"@class": "{READER}", "blockSize": "7", "scanner": {{"scanIntervalMillis": 9}}}},
      "attributes": {{"MEMORY_MB": 64, "STATS_LISTENERS": [{{"tests.conf.samples.Listener": {{"threshold": 222}}}}]}},
      "ports": [
        {{"name": "lines", "attributes": {{"STREAM_CODEC": {{"tests.conf.samples.Codec": {{}}}}}}}},
        {{"name": "output", "attributes": {{"UNIFIER_LIMIT": 8}}}}
      ]}}
  ],
  "streams": [
    {{"name": "lines", "locality": "CONTAINER_LOCAL", "schema": {{"class": "tests.conf.samples.Bean"}},
      "source": {{"operatorName": "feed", "portName": "output"}},
      "sinks": [
        {{"operatorName": "reader", "portName": "lines"}},
        {{"operatorName": "reader", "portName": "side"}}
      ]}}
  ]
}}"""

AS_KEYS = f"""\
dt.attr.APPLICATION_NAME = Declared
dt.attr.STREAMING_WINDOW_SIZE_MILLIS = 1000
operator.feed.classname = {FEED}
dt.operator.reader.classname = {READER}
dt.operator.reader.blockSize = 7
operator.reader.prop.scanner.scanIntervalMillis = ${{interval}}
operator.reader.attr.MEMORY_MB = 64
operator.reader.attr.STATS_LISTENERS = tests.conf.samples.Listener::threshold=222
operator.reader.inputport.lines.attr.STREAM_CODEC = tests.conf.samples.Codec
operator.reader.outputport.output.attr.UNIFIER_LIMIT = 8
stream.lines.source = feed.output
stream.lines.sinks = reader.lines, reader.side
stream.lines.locality = CONTAINER_LOCAL
stream.lines.schema = tests.conf.samples.Bean
interval = 9
"""


@pytest.fixture
def declare(tmp_path, monkeypatch):
    """Writes a declaration into the working directory, and reads the application."""
    monkeypatch.chdir(tmp_path)

    def declared(text, name="declared.json"):
        Path(name).write_text(text if isinstance(text, str) else json.dumps(text))
        return declared_application(Path(name))

    return declared


def drawn(application, conf=None):
    dag = Dag()
    application.populate_dag(dag, conf or Config())
    return dag


def told(faults):
    return [(fault.code, str(fault.where), fault.problem) for fault in faults]


@pytest.fixture(params=["declared.json", "declared.properties"])
def example(request, declare):
    return declare(AS_JSON if request.param.endswith(".json") else AS_KEYS, request.param)


def test_a_declaration_is_an_application_that_draws_its_operators_and_streams(example):
    assert isinstance(example, StreamingApplication)
    assert example.application_name == "Declared"
    dag = drawn(example)
    assert dag.faults == []
    assert [(p.name, type(p.component)) for p in dag.placements] == [("feed", Feed), ("reader", Reader)]
    (stream,) = dag.streams
    assert (stream.name, stream.locality, repr(stream.source)) == ("lines", Locality.CONTAINER_LOCAL, "feed.output")
    assert [sink.port.name for sink in stream.sinks] == ["lines", "side"]
    assert dag.operator("reader").block_size == 7


@pytest.mark.parametrize(
    ("name", "text", "operators", "ends"),
    [("declared.json", AS_JSON, [6, 7], [18, 20, 21]), ("declared.properties", AS_KEYS, [3, 4], [11, 12, 12])],
)
def test_it_draws_with_the_lines_of_its_file(declare, name, text, operators, ends):
    dag = drawn(declare(text, name))
    assert [str(p.where) for p in dag.placements] == [f"{name}:{line}" for line in operators]
    assert [str(where) for _, where in dag.streams[0].ends] == [f"{name}:{line}" for line in ends]


def test_what_it_sets_is_reported_when_it_is_configured(example):
    settings = Settings(Config(), "Declared")
    assert settings.configure_application(example).diagnostics == ()
    reader = settings.configure("reader", Reader())
    assert (reader.diagnostics, reader.unknown) == ((), ())
    assert (reader.component.block_size, reader.component.scanner.scan_interval_millis) == (7, 9)
    found = settings.operator_attributes("reader").values
    assert found[OperatorContext.MEMORY_MB].value == 64
    assert found[OperatorContext.STATS_LISTENERS].value[0].threshold == 222
    lines = settings.port_attributes("reader", "lines", output=False).values
    assert isinstance(lines[PortContext.STREAM_CODEC].value, Codec)
    assert settings.port_attributes("reader", "output", output=True).values[PortContext.UNIFIER_LIMIT].value == 8
    assert settings.stream("lines").schema.value is Bean
    assert [f.value for f in settings.application_attributes().values.values()][-1] == 1000
    assert settings.unmatched() == []


@pytest.mark.parametrize("key", ["dt.operator.reader.prop.blockSize", "dt.operator.*.blockSize"])
def test_configuration_is_stronger(example, key):
    """testLoadFromJson, last part; a wildcard too beats what the application says of itself."""
    settings = Settings(config({key: "99"}, Source.SITE), "Declared")
    settings.configure_application(example)
    assert settings.configure("reader", drawn(example).operator("reader")).component.block_size == 99


PORTS = {
    "source": {"operatorName": "feed", "portName": "output"},
    "sinks": [{"operatorName": "reader", "portName": "lines"}],
}
SET = {"properties": {"blockSize": 7}, "attributes": {"PARTITIONER": "StatelessPartitioner:3"}}
PLANNED = {
    "displayName": "Declared",
    "operators": [{"name": "feed", "class": FEED}, {"name": "reader", "class": READER, **SET}],
    "streams": [{"name": "lines", **PORTS}],
}


def test_it_compiles_with_its_settings(declare):
    plan = compile_application(declare(PLANNED)).plan
    reader = plan.by_name["reader"]
    assert (plan.application, reader.count, reader.properties["block_size"]) == ("Declared", 3, 7)


class Settled(StreamingApplication):
    name = "Settled"

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        feed, reader = dag.add_operator("feed", Feed()), dag.add_operator("reader", Reader(**EVERY_PROPERTY))
        dag.add_stream("lines", feed.output, reader.lines).set_locality(Locality.CONTAINER_LOCAL)
        dag.set_operator_attribute(reader, OperatorContext.PARTITIONER, StatelessPartitioner(2))
        dag.set_operator_attribute(reader, OperatorContext.MEMORY_MB, 64)
        dag.set_input_port_attribute(reader.lines, PortContext.QUEUE_CAPACITY, 2048)
        dag.set_input_port_attribute(reader.lines, PortContext.TUPLE_CLASS, str)


EVERY_PROPERTY = {
    "block_size": 7,
    "text": "x",
    "span": Span(1, 2),
    "tags": {"a": 1},
    "scanners": {"s": Scanner()},
    "scanner": Scanner(files=("a", "b")),
    "spare": Scanner(recursive=False),
    "either": Scanner(),
    "level": 2,
    "names": ("x",),
    "numbers": [1],
    "distinct": frozenset({"d"}),
    "keep": long_enough,
    "payload": Bean,
    "colour": Colour.GREEN,
    "path": Path("p"),
    "extras": {"k": [1, {"l": None}]},
}


def test_a_plan_is_an_application_whose_plan_it_is(declare):
    plan = compile_application(Settled()).plan
    assert said_by(compile_application(declare(write_plan(plan))).plan) == said_by(plan)


def said_by(plan):
    """The plan without the file that counts of partitions were written in, which is now the plan itself."""
    data = plan.model_dump()
    for operator in data["operators"]:
        del operator["why"]["text"]
    return data


def test_what_a_plans_unifiers_bear_is_set_on_the_port_before_them(declare):
    plan = json.loads(json.dumps(PLANNED)) | {"schema": "dagkit.plan/1"}
    plan["streams"][0]["unifiers"] = [{"name": "lines.unifier", "attributes": {"MEMORY_MB": 512}}]
    settings = Settings(Config(), "Declared")
    settings.configure_application(declare(plan))
    found = settings.unifier_attributes("feed", "output").values
    assert {attribute: one.value for attribute, one in found.items()} == {OperatorContext.MEMORY_MB: 512}


@pytest.mark.parametrize(("schema", "faults"), [({"schema": "dagkit.plan/1"}, 0), ({}, 1)], ids=["a plan", "no plan"])
def test_only_plans_may_say_what_plans_say(declare, schema, faults):
    assert len(drawn(declare({**PLANNED, "stages": [], **schema})).faults) == faults


def test_a_secret_that_the_plan_hides_must_be_given_again_and_a_reference_is_resolved(declare, monkeypatch):
    plan = json.loads(json.dumps(PLANNED))
    plan["operators"][1]["properties"] |= {"password": MASK}
    hidden = "password of 'reader' is a secret that the plan does not show"
    assert told(drawn(declare(plan)).faults) == [("property-invalid", "declared.json:1", hidden)]
    monkeypatch.setenv("READER_PW", "hidden")
    plan["operators"][1]["properties"] = {"text": "${env:READER_PW}"}
    settings = Settings(Config(), "Declared")
    settings.configure_application(declare(plan))
    configured = settings.configure("reader", Reader())
    assert (configured.component.text, configured.origins["text"].shown) == ("hidden", "${env:READER_PW}")


def test_an_unresolved_reference_is_reported(declare):
    application = declare(AS_KEYS.replace("interval = 9", ""), "declared.properties")
    key, problem = "operator.reader.prop.scanner.scanIntervalMillis", "${interval} has no value"
    faults = Settings(Config(), "Declared").configure_application(application).diagnostics
    assert told(faults) == [("reference-unresolved", "declared.properties:6", f"{key}: {problem}")]


def test_what_show_logical_plan_prints_is_an_application_and_one_without_a_name_is_called_like_its_file_or_folder(
    declare, tmp_path
):
    application = declare({"applicationName": "Shown", "logicalPlan": {**PLANNED, "displayName": None}})
    assert application.application_name == "Shown"
    assert [p.name for p in drawn(application).placements] == ["feed", "reader"]
    assert declare({"operators": []}, "word-count.json").application_name == "word-count"
    assert declare({"operators": []}, "app.json").application_name == tmp_path.name


STUBBORN = "Stubborn() raises TypeError: Stubborn.__init__() missing 1 required positional argument: 'argument'"
FOREIGN = "the module {!r} is neither the application's nor a library's of operators"
ABSENT = "but there is no operator of that name"
TWO_FEEDS = [
    ("operator-duplicated", 7, "two operators are called 'feed'; the first is at declared.json:6"),
    ("operator-unknown", 20, f"stream 'lines' names reader.lines, {ABSENT}"),
    ("operator-unknown", 21, f"stream 'lines' names reader.side, {ABSENT}"),
]
NAMELESS = [
    ("key-malformed", 6, "it has no 'name'"),
    ("operator-unknown", 18, f"stream 'lines' names feed.output, {ABSENT}"),
]
SIED = "stream 'lines' names reader.sied, but it has no input of that name"
LIMIT, SOURCE = '"attributes": {"UNIFIER_LIMIT": 8}', '{"operatorName": "feed", "portName": "output"}'


SETTLED, LOCALITY = "is set twice in the properties of 'reader'", "stream 'lines' cannot have the locality 'LOCAL'"
UNFED = ("stream-unfed", 17, "a stream names 'feed.output', which is not a port")
FED = ("operator-unknown", 18, f"stream 'lines' names fed.output, {ABSENT}")


@pytest.mark.parametrize(
    ("before", "after", "faults"),
    [
        ('"feed",', '"feed", "clas": 1,', [("key-unmatched", 6, "an operator has no field 'clas'")]),
        ('"displayName"', '"displayNam"', [("key-unmatched", 2, "the application has no field 'displayNam'")]),
        ('"name": "feed",', "", NAMELESS),
        ('"reader",', '"feed",', TWO_FEEDS),
        (SOURCE, SOURCE.replace("feed", "fed"), [FED]),
        (SOURCE, '"feed.output"', [UNFED]),
        ('"portName": "side"', '"portName": "sied"', [("port-unknown", 21, SIED)]),
        ('"CONTAINER_LOCAL"', '"LOCAL"', [("locality-invalid", 17, LOCALITY)]),
        ('"7"', '"7", "blockSize": "8"', [("key-duplicated", 9, f"'blockSize' {SETTLED}")]),
        (LIMIT, '"atributes": {}', [("key-unmatched", 13, "a port has no field 'atributes'")]),
    ],
)
def test_faults_of_a_declaration_are_reported_by_line(declare, before, after, faults):
    assert before in AS_JSON
    dag = drawn(declare(AS_JSON.replace(before, after, 1)))
    assert told(dag.faults) == [(code, f"declared.json:{line}", problem) for code, line, problem in faults]


@pytest.mark.parametrize(
    ("name", "code", "problem"),
    [
        ("tests.conf.samples.Fed", "class-not-found", "tests.conf.samples has no 'Fed'"),
        ("tests.conf.samples.Bean", "class-not-found", "Bean is neither an operator nor a module"),
        ("tests.conf.samples.Stubborn", "populate-failed", STUBBORN),
        ("Unifier", "class-not-found", "Unifier is abstract"),
        ("subprocess.Popen", "class-not-found", FOREIGN.format("subprocess")),
        ("this:s", "class-not-found", FOREIGN.format("this")),
    ],
)
def test_a_class_that_makes_no_operator_is_reported_by_line(declare, name, code, problem):
    dag = drawn(declare(AS_JSON.replace(f'"{FEED}"', f'"{name}"', 1)))
    assert told(dag.faults) == [(code, "declared.json:6", f"operator 'feed': {problem}")]


TWICE = "operator.reader.block_size is set twice; the first is at declared.properties:5"


@pytest.mark.parametrize(
    ("line", "code", "problem"),
    [
        ("stream.lines.template = x", "key-unmatched", "stream 'lines' has a template"),
        ("stream.more.source = feed", "key-malformed", "stream 'more' names 'feed', which is not operator.port"),
        ("operator.reader.block_size = 8", "key-duplicated", TWICE),
        ("operator.reader.text", "key-required", "operator.reader.text has no value here"),
        ("stream.lines.sorce = x", "key-malformed", "stream.lines.sorce: a stream has no 'sorce'"),
        ("operator.o.classname = Nothing42", "class-not-found", "operator 'o': there is no class 'Nothing42'"),
    ],
)
def test_faults_of_keys_are_reported_by_line(declare, line, code, problem):
    dag = drawn(declare(AS_KEYS + line, "declared.properties"))
    assert told(dag.faults) == [(code, "declared.properties:16", problem)]


def test_a_property_that_no_operator_has_is_reported_with_its_line(declare):
    application = declare(AS_JSON.replace("blockSize", "blokSize"))
    settings = Settings(Config(), "Declared")
    settings.configure_application(application)
    settings.configure("reader", Reader())
    assert ("property-unknown", "declared.json:9") in [(f.code, str(f.where)) for f in settings.unmatched()]


NOTHING = "it declares no operators"


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.json", "{", "it is not JSON"),
        ("a.json", "[]", NOTHING),
        ("a.json", '{"streams": []}', NOTHING),
        ("a.properties", "a = \\u1", "'.*' is not an escape"),
    ],
)
def test_a_file_that_declares_nothing_or_is_not_there(declare, name, text, problem):
    with pytest.raises(ApplicationFaults, match=f"{name}:1: {problem}"):
        declare(text, name)
    with pytest.raises(ApplicationNotFound, match=f"did you mean '{name}'"):
        declared_application(Path(f"a{name}"))


@cases(
    "data, problem, line",
    ("a missing value", b'{\n"a": }', "it is not JSON: expecting value", 2),
    ("more than one value", b'{"a": 1}\n}', "it is not JSON: extra data", 2),
    ("nothing", b"", "it is not JSON: expecting value", 1),
    ("bytes of another encoding", b'{\n"a": "\xe9"}', "byte 0xE9 on this line is not UTF-8", 2),
    ("too deep", b"[" * 100_000, "it is nested too deeply", None),
)
def test_what_cannot_be_read(data, problem, line):
    with pytest.raises(ParseError, match=problem) as raised:
        read_json(data)
    assert raised.value.line == line


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON, st.sampled_from([None, 2]))
def test_it_reads_what_json_reads(data, indent):
    assert read_json(json.dumps(data, indent=indent).encode()) == data


@given(st.dictionaries(st.text(st.characters(categories=["L"]), min_size=1), st.dictionaries(st.text(), st.integers())))
def test_every_object_is_on_the_line_where_it_begins(data):
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in data.items()]
    document = read_json(("{\n" + ",\n".join(lines) + "\n}").encode())
    assert [value.line for value in document.values()] == list(range(2, len(data) + 2))
    assert all(isinstance(value, JsonObject) for value in document.values())
