"""Each verb answers what it is asked."""

import json
from itertools import product

import pytest

import dagkit_operators
from dagkit import Operator
from dagkit.api.attributes import BY_SCOPE
from dagkit.cli.application.anatomy import anatomy_of
from dagkit.compiler import STEPS
from dagkit.ledger import Ledger
from dagkit.plan import read_plan
from tests.cli.samples import WORD_COUNT


@pytest.fixture
def advised(write):
    """An application with three partitions and an advisory."""
    text = WORD_COUNT.replace("from dagkit import", "from dagkit import OperatorContext, StatelessPartitioner,")
    text += "        dag.set_operator_attribute(count, OperatorContext.MEMORY_MB, 2048)\n"
    text += "        dag.set_operator_attribute(split, OperatorContext.PARTITIONER, StatelessPartitioner(3))\n"
    return write("advised.py", text).name


LAST = WORD_COUNT.count("\n")


def words(text):
    return [line.split() for line in text.splitlines() if line.strip()]


def test_validate_shows_advisories_beside_the_result_unless_it_shall_be_quiet(dagkit, advised, disconnected):
    answer, result = dagkit("validate", advised), "WordCount is valid: 3 operators, 2 streams, 3 stages; 1 advisory\n"
    assert (answer.code, answer.out) == (0, result)
    assert answer.err.startswith(f"advised.py:{LAST + 1}: advisory: MEMORY_MB of count is accepted")
    for quiet in ("--quiet", "-q"):
        answer = dagkit("validate", advised, quiet)
        assert (answer.code, answer.out, answer.err) == (0, result, "")
    assert "1 problem" in dagkit("validate", disconnected, "--quiet").err


def test_validate_shows_what_it_read_when_asked(dagkit, word_count, write):
    key = "dt.operator.split.prop.min_length"
    write("p.properties", f"{key} = 2\ndt.operator.lines.prop.folder = x\n")
    answer = dagkit("validate", word_count, "-c", "p.properties", "-D", f"{key}=4", "--verbose")
    line = WORD_COUNT.partition("class WordCount")[0].count("\n") + 1
    assert answer.err.splitlines() == [
        f"application: WordCount at word_count.py:{line}",
        "configuration: 2 keys from p.properties",
        "configuration: 1 key from the command line",
    ]


def test_validate_gives_one_document_for_right_and_wrong(dagkit, advised, disconnected):
    for app, code, fault in ((advised, 0, "attribute-advisory"), (disconnected, 3, "input-unconnected")):
        answer = dagkit("validate", app, "--json")
        document = answer.document
        assert (document["schema"], document["valid"]) == ("dagkit.validation/1", code == 0)
        assert (answer.code, document["exit_code"], [d["code"] for d in document["diagnostics"]]) == (
            code,
            code,
            [fault],
        )


def test_what_an_application_prints_stays_out_of_the_result(dagkit, write):
    write("loud.py", "print('imported')\n" + WORD_COUNT + "        print('drawn')\n")
    answer = dagkit("plan", "loud.py", "--json")
    assert answer.document["application"] == "WordCount"
    assert answer.err == "imported\ndrawn\n"


def test_plan_shows_partitions_and_why_and_stages_and_why_they_are_cut(dagkit, word_count, advised):
    shown = words(dagkit("plan", advised).out)
    assert ["lines", "test.lines/1", "1", "1", "default"] in shown
    (split,) = [row for row in shown if row[:2] == ["split", "test.split/1"]]
    assert (split[2:4], f"advised.py:{LAST + 2}" in split) == (["2", "3"], True)
    shown = words(dagkit("plan", word_count).out)
    assert ["1", "0", "driver", "1", "lines"] in shown
    assert ["2", "0", "workers", "1", "split", ">", "count"] in shown
    assert [row[3:5] for row in shown if row[:3] == ["lines.lines", ">", "split.lines"]] == [["driver", "no"]]


def test_plan_shows_more_or_less_when_asked_and_is_a_document_that_can_be_read_again(dagkit, advised):
    answer = dagkit("plan", advised, "--json")
    assert answer.document["schema"] == "dagkit.plan/1"
    assert read_plan(answer.out).by_name["split"].count == 3
    assert "attribute-advisory" in answer.err
    brief, verbose, quiet = (dagkit("plan", advised, *options) for options in ([], ["-v"], ["-q"]))
    shown = words(verbose.out)
    assert (["split", "min_length", "1"] in shown, ["count", "MEMORY_MB", "2048"] in shown) == (True, True)
    assert set(brief.out.splitlines()) <= set(verbose.out.splitlines())
    assert ["advisory" in text for text in (brief.out, quiet.out + quiet.err)] == [True, False]


SPLITTER = """
from dagkit_operators import FileSplitterInput

def populate_dag(dag, conf) -> None:
    dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["in"]}))
"""


def test_explain_says_what_a_setting_gives_up(dagkit, write):
    write("app.py", SPLITTER)
    assert dagkit("explain", "app.py").err == ""
    answer = dagkit("explain", "app.py", "-D", "dt.operator.Splitter.prop.windowDataManager=noop")
    assert "advisory: Splitter: window_data_manager is 'noop', so each launch reads all files" in answer.err
    assert (answer.code, "[guarantee-waived]" in answer.err) == (0, True)


@pytest.mark.parametrize("step", STEPS)
def test_every_step_is_listed_and_can_be_printed(dagkit, advised, step):
    assert [row[0] for row in words(dagkit("explain", advised).out)][2:] == list(STEPS)
    shown = dagkit("explain", advised, "--step", step)
    document = dagkit("explain", advised, "--step", step, "--json").document
    assert (shown.code, shown.out.splitlines()[0].split()[0]) == (0, "WordCount")
    assert "split" in shown.out
    family = {"fused": "dagkit.fused/1", "ordered": "dagkit.plan/1"}.get(step, "dagkit.graph/1")
    assert document["schema"] == family


def test_explain_shows_operators_once_with_their_lines_and_reasons_for_cuts(dagkit, advised):
    shown = words(dagkit("explain", advised, "--step", "drawn").out)
    (placed,) = [row for row in shown if row[:2] == ["split", "Split"]]
    assert placed[-1] == f"advised.py:{LAST - 3}"
    assert ["words", "split.words", "count.items", f"advised.py:{LAST}"] in shown
    assert ["count", "MEMORY_MB", "2048", "code", "at", f"advised.py:{LAST + 1}"] in shown
    cuts = dagkit("explain", advised, "--step", "fused", "--json").document["cuts"]
    assert [(cut["stream"], cut["kind"]) for cut in cuts] == [("text", "driver"), ("words", "counts")]
    assert all(cut["reason"] in dagkit("explain", advised, "--step", "fused").out for cut in cuts)


def test_a_step_that_was_not_reached_cannot_be_printed(dagkit, write, disconnected):
    write("raising.py", WORD_COUNT + "        raise ValueError\n")
    assert "split" in dagkit("explain", "raising.py", "--step", "drawn").out
    for target, step in ((disconnected, "checked"), ("raising.py", "resolved")):
        dagkit("explain", target, "--step", step).fails(3)
    dagkit("explain", disconnected, "--step", "fuse").fails(2, "fused")
    shown = dagkit("explain", "--help").out
    assert ([step for step in STEPS if step not in shown], "…" in shown) == ([], False)


def test_nothing_changes_between_equal_applications(dagkit, word_count, write):
    write("old.json", dagkit("plan", word_count, "--json").out)
    same = dagkit("diff", word_count, word_count, "--exit-code")
    assert (same.code, same.out, same.err.startswith("no change: both plans are ")) == (0, "", True)
    assert dagkit("diff", "old.json", word_count, "--exit-code").code == 0
    assert dagkit("diff", word_count, word_count, "-D", "dt.operator.split.prop.min_length=3", "--exit-code").code == 0


def test_changes_are_reported_in_words_and_as_a_document_and_exit_with_10_when_asked(dagkit, word_count, advised):
    answer = dagkit("diff", word_count, advised)
    assert (answer.code, dagkit("diff", word_count, advised, "--exit-code").code) == (0, 10)
    assert "operator split: attribute PARTITIONER is now set to" in answer.out
    assert "split runs as 3 instead of 1" in answer.out
    assert f"{len(answer.out.splitlines())} changes: " in answer.err
    answer = dagkit("diff", word_count, advised, "--json", "--exit-code")
    document = answer.document
    assert (answer.code, document["schema"], document["changed"]) == (10, "dagkit.diff/1", True)
    assert document["old"]["fingerprint"] != document["new"]["fingerprint"]
    assert {change["kind"] for change in document["changes"]} >= {"operator", "partitions", "stage"}


def test_a_plan_that_cannot_be_read_exits_with_6(dagkit, word_count, write):
    for text, said in (
        ('{"schema": "dagkit.plan/99"}', "dagkit.plan/99"),
        ('{"schema": "dagkit.plan/1"}', "is not a plan"),
    ):
        write("plan.json", text)
        dagkit("diff", "plan.json", word_count).fails(6, said)
    Ledger.create("never")
    dagkit("diff", "never", word_count).fails(6, "never has no plan: no launch has recorded one")


WEAK = "# weaker\ndt.operator.split.prop.min_length = 2\ndt.operator.count.prop.password = hunter2\nmine = one\n"


@pytest.fixture
def files(write):
    write("weak.properties", WEAK)
    write("strong.properties", "apex.operator.split.prop.min_length = 3\n")
    return ["-c", "weak.properties", "-c", "strong.properties"]


def test_config_shows_the_values_that_hold_where_they_come_from_and_what_is_overridden(dagkit, word_count, files):
    assert dagkit("config", word_count, *files, "-D", "mine=two").out == (
        "apex.operator.split.prop.min_length = 3\ndt.operator.count.prop.password = **********\nmine = two\n"
    )
    assert words(dagkit("config", word_count, *files, "-D", "mine=two", "--origin").out)[1:] == [
        ["apex.operator.split.prop.min_length", "3", "<-", "strong.properties:1", "file"],
        ["dt.operator.count.prop.password", "**********", "<-", "weak.properties:3", "file"],
        ["mine", "two", "<-", "the", "command", "line", "command", "line"],
    ]
    shown = words(dagkit("config", word_count, *files, "--all").out)
    assert ["overridden:", "dt.operator.split.prop.min_length", "2", "<-", "weak.properties:2", "file"] in shown
    document = dagkit("config", word_count, *files, "--all", "--json").document
    entries = [(e["value"], e["file"], e["line"], e["holds"]) for e in document["entries"][:2]]
    assert entries == [("3", "strong.properties", 1, True), ("2", "weak.properties", 2, False)]
    assert document["schema"] == "dagkit.config/1"


def test_the_environment_is_a_source_and_a_configuration_at_fault_is_shown_as_far_as_it_goes(dagkit, word_count):
    (entry,) = dagkit("config", word_count, "--json", DAGKIT_OPERATOR__SPLIT__PROP__MIN_LENGTH="3").document["entries"]
    assert (entry["value"], entry["source"], entry["file"]) == ("3", "environment", "the environment")
    answer = dagkit("config", word_count, "-D", "a=${b}", "-D", "c=1")
    assert (answer.code, "c = 1" in answer.out, "[reference-unresolved]" in answer.err) == (4, True, True)


def test_the_applications_own_file_is_read(dagkit, write):
    write("wc/app.py", WORD_COUNT)
    write("wc/properties.properties", "mine = own\n")
    write("wc/conf/night.properties", "mine = night\n")
    assert dagkit("config", "wc").out == "mine = own\n"
    assert dagkit("config", "wc", "--apconf", "night.properties").out == "mine = night\n"


NONE_FOUND = (
    "no property file was found: dagkit looks beside the application for properties or properties-WordCount, ending in "
    ".xml, .properties or .toml\n"
)


@pytest.mark.parametrize("name", ["shop.properties", "properties.yaml"])
def test_a_property_file_under_another_name_is_missed(dagkit, write, name):
    write("wc/app.py", WORD_COUNT)
    write(f"wc/{name}", "mine = own\n")
    answer = dagkit("config", "wc")
    assert (answer.code, answer.out, answer.err) == (0, "", NONE_FOUND)
    assert dagkit("config", "wc", "-v").err.count(NONE_FOUND) == 1
    assert (NONE_FOUND in dagkit("validate", "wc", "-v").err, dagkit("validate", "wc").err) == (True, "")
    write("empty.toml", "")
    assert "property file" not in dagkit("config", "wc", "-v", "-c", "empty.toml").err
    write("wc/properties.toml", "")
    assert "property file" not in dagkit("config", "wc", "-v").err


MIN_LENGTH = {"name": "min_length", "type": "int", "required": False, "default": 1, "constraints": []}


@pytest.mark.parametrize("name", ["word_count:Split", "word_count.Split", "word_count.py:Split"])
def test_describe_takes_every_way_to_name_a_class(dagkit, word_count, name):
    document = dagkit("describe", name, "--json").document
    assert (document["schema"], document["class"]) == ("dagkit.operator/1", "word_count.Split")
    assert document["properties"] == [{**MIN_LENGTH, "doc": "Letters that a word has at least."}]


CONSTRAINED = '''
from typing import Annotated
from pydantic import Field, PositiveInt, SecretStr
from dagkit import Operator, auto_metric, avg

class Constrained(Operator):
    count: PositiveInt = 2
    """How many."""
    ratio: Annotated[float, Field(ge=0, lt=1, description="How much.")]
    names: list[str] = Field(default_factory=list, max_length=3)
    password: SecretStr = SecretStr("hunter2")
    test: object = lambda line: line
    rejected = auto_metric(0)

    @auto_metric(aggregators=[max, avg])
    def longest(self) -> int:
        """The longest line so far."""
        return 1
'''


def test_describe_shows_what_values_must_be_and_what_makes_one_metric_of_all_partitions(dagkit, write):
    write("ops.py", CONSTRAINED)
    document = dagkit("describe", "ops.py:Constrained", "--json").document
    told = {p["name"]: p for p in document["properties"]}
    assert (told["count"]["constraints"], told["count"]["doc"]) == (["> 0"], "How many.")
    assert (told["ratio"]["constraints"], told["ratio"]["doc"]) == ([">= 0", "< 1"], "How much.")
    assert told["ratio"]["required"] is True
    assert (told["names"]["default"], told["names"]["constraints"]) == ([], ["max_length 3"])
    assert "hunter2" not in json.dumps(told)
    assert document["metrics"] == [
        {"name": "rejected", "aggregators": ["sum"], "doc": ""},
        {"name": "longest", "aggregators": ["max", "avg"], "doc": "The longest line so far."},
    ]
    shown = words(dagkit("describe", "ops.py:Constrained").out)
    assert ["longest", "max,", "avg", "The", "longest", "line", "so", "far."] in shown


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("DelayOprator", "did you mean 'DelayOperator'?"),
        ("kafka", "did you mean 'KafkaReader' or 'KafkaSplitter' or 'KafkaWriter'?"),
        ("nothing_alike", "`dagkit describe` lists all"),
        ("word_count:Spilt", "did you mean 'Split'?"),
        ("word_count:Line", "Line of word_count is not an operator"),
        ("no_such_module:Split", "there is no module no_such_module"),
        ("no_such_module.Split", "there is no module no_such_module"),
        ("word_count.py:Zzz", "help: known here: 'Count', 'Lines', 'Split'"),
        ("spilt --in word_count.py", "did you mean 'split'?"),
        ("mine.py", "mine.py defines no operators [application-missing]\n  help: it imports Split: name one of them\n"),
    ],
)
def test_an_operator_that_is_not_there_exits_with_6(dagkit, write, word_count, name, said):
    write("mine.py", "from word_count import Split\n")
    dagkit("describe", *name.split()).fails(6, said)


def test_describe_shows_an_operator_of_a_file_and_in_its_application(dagkit, word_count):
    answer = dagkit("describe", f"{word_count}:Split")
    shown = words(answer.out)
    assert shown[0] == ["Split", "test.split/1,", "operator"]
    assert "Short ones are dropped." in answer.out
    assert ["input", "lines", "Line", "required"] in shown
    assert ["output", "words", "Word", "optional"] in shown
    at = shown.index(["min_length", "int;", "default", "1"])
    assert shown[at + 1] == ["Letters", "that", "a", "word", "has", "at", "least."]
    assert ["partitionable", "yes"] in shown
    shown = words(dagkit("describe", "split", "--in", word_count, "-D", "dt.operator.split.prop.minLength=4").out)
    (row,) = [row for row in shown if row[:2] == ["min_length", "int;"]]
    assert row[2:9] == ["default", "1;", "value", "4,", "set", "by", "dt.operator.split.prop.minLength"]


MASKED = """
from collections.abc import Mapping
from pydantic import BaseModel, Field, SecretStr
from dagkit import InputOperator, InputPort, Operator, OutputPort

class Server(BaseModel):
    host: str = "here"
    password: str = "none"
    entry: SecretStr = Field(default=SecretStr(""), max_length=20)

class Guarded(Server):
    more: SecretStr = SecretStr("")

class Lines(InputOperator):
    lines = OutputPort(str)
    server: Server = Server()
    token: str = "none"
    options: dict[str, str] = {}
    door: SecretStr | None = None
    doors: Mapping[str, SecretStr] = {}
    short: SecretStr = Field(default=SecretStr(""), max_length=3)

class Count(Operator):
    items = InputPort(str)

def populate_dag(dag, conf):
    lines, count = dag.add_operator("lines", Lines()), dag.add_operator("count", Count())
    dag.add_stream("lines", lines.lines, count.items)
"""
"""An application with secrets by name and by type."""
BY_NAME = """\
dt.operator.lines.prop.server.password = hunter2
dt.operator.lines.prop.server.host = ${env:PLACE}
dt.operator.lines.prop.token = hunter2
dt.operator.lines.prop.options(api.key) = hunter2
"""


BY_TYPE = [
    "operator.lines.prop.door=hunter2",
    r"operator.li\w+.prop.door=hunter2",
    "operator.lines.prop.server.entry=hunter2",
    "operator.lines.prop.doors.front=hunter2",
    'operator.lines.prop.doors={"front": "hunter2"}',
    'operator.lines.prop.server={"host": "there", "entry": "hunter2"}',
    "operator.lines.prop.server=Guarded::more=hunter2",
    "template.all.prop.door=hunter2",
]


VERBS = [
    *("validate", "plan", "plan --json", "describe lines --in", "describe lines --json --in", "graph", "graph --json"),
    *("explain --step resolved", "explain --step resolved --json", "explain --step fused", "graph -f dot", "config"),
    *("explain --step fused --json", "config --all --origin", "config --json", "config --all --json"),
]
"""Commands that print what a property was set to."""
SECRET_CASES = {
    *((verb, BY_TYPE[number % len(BY_TYPE)]) for number, verb in enumerate(VERBS)),
    *product(("config --json", "explain --step resolved"), BY_TYPE),
}


@pytest.mark.parametrize(("verb", "setting"), sorted(SECRET_CASES))
def test_a_secret_is_shown_by_no_command(dagkit, write, verb, setting):
    write("masked.py", MASKED)
    template = "dt.template.all.matchIdRegExp = lines" if "template" in setting else ""
    write("secrets.properties", BY_NAME * (".server=" not in setting) + template)
    options = ("-c", "secrets.properties", "-D", f"dt.{setting}")
    answer = dagkit(*verb.split(), "masked.py", *options, PLACE="hunter2")
    assert (answer.code, bool(answer.out)) == (0, True), answer.err
    assert "hunter2" not in answer.out + answer.err


@pytest.mark.parametrize("key", ["short", "server.entry", "server"])
@pytest.mark.parametrize(("verb", "code"), [("validate", 4), ("config", 0), ("explain", 4)])
def test_a_secret_by_type_that_is_refused_is_not_shown(dagkit, write, verb, code, key):
    write("masked.py", MASKED)
    value = '{"entry": "hunter2-and-much-too-long", "hots": 1}' if key == "server" else "hunter2-and-much-too-long"
    answer = dagkit(verb, "masked.py", "-D", f"dt.operator.lines.prop.{key}={value}")
    shown = answer.out + answer.err
    assert (answer.code, "**********" in shown, "hunter2" in shown) == (code, True, False)


def test_secrets_that_are_overridden_or_of_an_application_that_does_not_draw_are_not_shown(dagkit, write):
    write("masked.py", MASKED)
    keys = ["-D", "dt.operator.lines.prop.door=hunter2", "-D", "dt.operator.lines.prop.door=hunter3"]
    answer = dagkit("config", "--all", "masked.py", *keys)
    assert (answer.out.count("**********"), "hunter" in answer.out + answer.err) == (2, False)
    write("masked.py", MASKED.replace("dag.add_stream(", "dag.add_steam("))
    answer = dagkit("config", "masked.py", *keys[:2], "-D", "dt.operator.lines.attr.MEMORY_MB=64")
    shown = ["dt.operator.lines.prop.door = **********", "dt.operator.lines.attr.MEMORY_MB = 64"]
    assert (answer.code, answer.out.splitlines()) == (0, shown)


def test_who_set_a_part_of_a_property_is_reported(dagkit, write):
    write("masked.py", MASKED)
    key = "dt.operator.lines.prop.server.host"
    values = dagkit("describe", "lines", "--in", "masked.py", "--json", "-D", f"{key}=there").document["values"]
    shown = {"class": "masked.Server", "host": "there", "password": "**********", "entry": ""}
    assert (values["server"]["origin"], values["server"]["value"] | {"entry": ""}) == (
        f"{key} at the command line",
        shown,
    )
    assert values["token"] == {"value": "none", "origin": "default"}


RICH = '''
from pydantic import BaseModel, PositiveInt
from dagkit import InputOperator, InputPort, Operator, OutputPort, Partitioner, Unifier

def word_of(item):
    return item

class Scanner(BaseModel):
    every: PositiveInt = 5
    """Seconds."""

class Sum(Unifier):
    merged = OutputPort(str)

class Reader(InputOperator):
    """Reads."""
    lines = OutputPort(str, unifier=Sum)
    scanner: Scanner = Scanner()
    """What is scanned."""

class Count(Operator, Partitioner):
    words = InputPort(str, key=word_of)
    lines = InputPort(str, key=lambda item: item, optional=True)
    def define_partitions(self, partitions, context):
        return partitions

def populate_dag(dag, conf):
    reader, count = dag.add_operator("reader", Reader()), dag.add_operator("count", Count())
    dag.add_stream("lines", reader.lines, count.words)
'''


def test_describe_shows_keys_unifiers_who_partitions_itself_and_what_a_nested_model_holds(dagkit, write):
    write("rich.py", RICH)
    count = dagkit("describe", "rich.py:Count").out
    assert ["input", "words", "str", "required", "key=word_of"] in words(count)
    assert ["partitions", "itself", "yes"] in words(count)
    assert f"key=the function at rich.py:{RICH[: RICH.index('key=lambda')].count(chr(10)) + 1}" in count
    reader, facts = (
        words(dagkit("describe", "rich.py:Reader").out),
        ["scanner.every", "int;", "must", "be", ">", "0;", "default"],
    )
    assert ["output", "lines", "str", "optional", "unifier=Sum"] in reader
    assert ["partitions", "itself", "no"] in reader
    assert [*facts, "5"] in reader
    key = "dt.operator.reader.prop.scanner.every=7"
    assert [*facts, "5;", "value", "7"] in words(dagkit("describe", "reader", "--in", "rich.py", "-D", key).out)


def test_describe_lists_the_operators_of_an_application_of_a_file_and_of_the_libraries(dagkit, write, word_count):
    write("rich.py", RICH)
    answer = dagkit("describe", "--in", "rich.py")
    assert [row[:2] for row in words(answer.out)[1:]] == [["reader", "Reader"], ["count", "Count"]]
    document = dagkit("describe", "--in", "rich.py", "--json").document
    assert (document["schema"], document["application"]) == ("dagkit.operators/1", "rich")
    assert document["operators"][0]["summary"] == "Reads."
    assert [row[1] for row in words(dagkit("describe", word_count).out)[1:]] == ["Count", "Lines", "Split"]
    document = dagkit("describe", word_count, "--json").document
    assert document["operators"][0] == {"package": "word_count.py", "name": "Count", "summary": "Counts words."}
    assert ["dagkit", "DelayOperator"] in [row[:2] for row in words(dagkit("describe").out)]
    names = [each["name"] for each in dagkit("describe", "--json").document["operators"]]
    assert ("DelayOperator" in names, "RowOperator" in names) == (True, False)
    document = dagkit("describe", "DelayOperator", "--json").document
    assert (document["kind"], [port["name"] for port in document["ports"]]) == ("dagkit.delay/1", ["input", "output"])


def test_describe_lists_every_attribute_with_its_option(dagkit, word_count):
    assert "MEMORY_MB" not in dagkit("describe", f"{word_count}:Split").out
    document = dagkit("describe", "--attributes", "--json").document
    listed = {(each["scope"], each["name"]) for each in document["attributes"]}
    assert listed == {(scope.value, name) for scope, catalogue in BY_SCOPE.items() for name in catalogue}
    shown = words(dagkit("describe", "--attributes").out)
    assert {row[0] for row in shown} >= {name for _, name in listed}
    assert ["MEMORY_MB", "advisory"] in [row[:2] for row in shown]


BEGINNINGS = {"dot": "digraph", "svg": "<svg", "mermaid": "%% WordCount", "json": '{\n  "schema": "dagkit.picture/1"'}
BEGINNINGS |= {"text": "WordCount: "}


@pytest.mark.parametrize(("form", "begins"), BEGINNINGS.items())
def test_graph_draws_every_text_format_without_a_dot_binary(dagkit, word_count, form, begins):
    for view, options in (("logical", []), ("physical", ["--physical"])):
        answer = dagkit("graph", word_count, "-f", form, *options, PATH="/nowhere")
        assert (answer.code, answer.err) == (0, "")
        assert (answer.out.startswith(begins), view in answer.out) == (True, True)
        if form == "text":
            assert answer.out == dagkit("graph", word_count, *options).out, "it is the usual one"


FILES = {"x.svg": b"<svg", "x.SVG": b"<svg", "x.dot": b"digraph", "x.text": b"WordCount", "x.gv": b"digraph"}


@pytest.mark.parametrize(
    ("file", "begins"), [*FILES.items(), ("x.mmd", b"%%"), ("x.txt", b"WordCount"), ("x.json", b"{")]
)
def test_graph_takes_the_format_from_the_file(dagkit, word_count, folder, file, begins):
    answer = dagkit("graph", word_count, "-o", file)
    assert (answer.code, answer.out, f"of WordCount to {file}" in answer.err) == (0, "", True)
    assert (folder / file).read_bytes().startswith(begins)


def test_graph_prefers_the_format_that_is_named_and_a_picture_and_a_document_cannot_both_be_meant(
    dagkit, word_count, folder
):
    assert dagkit("graph", word_count, "-o", "x.svg", "-f", "mermaid", "-q").err == ""
    assert (folder / "x.svg").read_text().startswith("%%")
    assert dagkit("graph", word_count, "-o", "q.json", "--json").code == 0
    assert json.loads((folder / "q.json").read_text())["schema"] == "dagkit.picture/1"
    for arguments in ("-o p.svg", "-f svg", "-f svg -o p.json"):
        answer = dagkit("graph", word_count, *arguments.split(), "--json")
        assert (answer.code, answer.document["exit_code"], "asks for svg" in answer.document["message"]) == (2, 2, True)
    assert not list(folder.glob("p.*"))


@pytest.mark.slow
@pytest.mark.parametrize(("form", "begins"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_graph_draws_images_without_a_dot_binary(dagkit, word_count, folder, form, begins):
    pytest.importorskip("pygraphviz")
    assert dagkit("graph", word_count, "--physical", "-o", f"x.{form}", PATH="/nowhere").code == 0
    assert (folder / f"x.{form}").read_bytes().startswith(begins)


def test_a_picture_that_cannot_be_drawn_or_written_is_refused(dagkit, word_count, monkeypatch):
    answer = dagkit("graph", word_count, "-o", "x.bmp")
    assert (answer.code, "name a format with -f" in " ".join(answer.err.split())) == (2, True)
    dagkit("graph", word_count, "-o", "absent/x.svg").fails(5, "cannot write absent/x.svg: No such file or directory")
    monkeypatch.setattr("dagkit.cli.compiling.graph.is_terminal", lambda _: True)
    dagkit("graph", word_count, "-f", "png").fails(2, "write it to a file with -o")
    monkeypatch.setattr("dagkit.cli.compiling.graph.is_terminal", lambda _: False)
    monkeypatch.setattr("dagkit.render.engines.ENGINES", {})
    dagkit("graph", word_count, "-f", "png").fails(5, "nothing installed can draw PNG")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_prints_a_script(dagkit, shell):
    answer = dagkit("completion", shell)
    assert (answer.code, "_DAGKIT_COMPLETE" in answer.out) == (0, True)
    assert "%Y" not in dagkit("ledger", "show", "--help").out, "a time is asked for in words"


def test_every_property_and_metric_of_the_library_has_a_meaning_and_constraints_that_a_reader_understands():
    classes = [getattr(dagkit_operators, name) for name in dagkit_operators.__all__]
    sheets = [anatomy_of(kind) for kind in classes if isinstance(kind, type) and issubclass(kind, Operator)]
    assert sheets
    for sheet in sheets:
        assert [part.name for part in (*sheet.properties, *sheet.metrics) if not part.doc] == [], sheet.name
        constraints = [one for part in sheet.properties for one in part.constraints]
        assert [one for one in constraints if " at 0x" in one or one.endswith("()")] == [], sheet.name
