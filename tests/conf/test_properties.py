"""Properties of every form, set on a component."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from dagkit.api.configuration import Origin, Source
from dagkit.api.operators import Operator
from dagkit.conf.grammar.parsed_entry import ParsedEntry
from dagkit.conf.grammar.property_keys import Address, Element, PropertyPath, parse_path
from dagkit.conf.values.conversion import Conversion
from dagkit.conf.values.properties import with_properties
from dagkit.errors import Where
from tests.cases import cases
from tests.conf.samples import Bean, Colour, Point, Reader, Scanner, SlowScanner, Span, long_enough, point


def given_of(line, path, raw, shown=None):
    address = parse_path(f"prop.{path}")
    key = f"dt.operator.reader.{path}"
    return ParsedEntry(key, raw, Origin(Source.FILE, Where("conf.xml", line), key, shown), address)


def configure(*settings, component=None, conversion=None):
    given = [given_of(line, *setting) for line, setting in enumerate(settings, start=1)]
    return with_properties(component or Reader(), given, "reader", conversion)


class Shared:
    shared = 5


SLOW = "tests.conf.samples.SlowScanner"


@pytest.mark.parametrize(
    ("path", "raw", "field", "value"),
    [
        ("blockSize", "7", "block_size", 7),
        ("block_size", " 7 ", "block_size", 7),
        ("blockSize", 7, "block_size", 7),
        ("ratio", "0.25", "ratio", 0.25),
        ("enabled", "true", "enabled", True),
        ("text", 5, "text", "5"),
        ("text", True, "text", "true"),
        ("text", "", "text", ""),
        ("path", "/data/x", "path", Path("/data/x")),
        ("colour", "GREEN", "colour", Colour.GREEN),
        ("colour", "g", "colour", Colour.GREEN),
        ("level", "2", "level", 2),
        ("names", "a, b,c", "names", ("a", "b", "c")),
        ("names", "", "names", ()),
        ("names", '["a,b", "c"]', "names", ("a,b", "c")),
        ("names", ["a", 1], "names", ("a", "1")),
        ("numbers", "1,2", "numbers", [1, 2]),
        ("pair", "tests.conf.samples.Bean, x", "pair", (Bean, "x")),
        ("distinct", "a,b,a", "distinct", frozenset({"a", "b"})),
        ("tags", "a=1,b=2", "tags", {"a": 1, "b": 2}),
        ("tags", '{"a": 1}', "tags", {"a": 1}),
        ("tags", {"a": 1}, "tags", {"a": 1}),
        ("tags.key1", "1", "tags", {"key1": 1}),
        ("tags(key1.dot)", "1", "tags", {"key1.dot": 1}),
        ("names[0]", "a", "names", ("a",)),
        ("keep", "tests.conf.samples:long_enough", "keep", long_enough),
        ("keep", {"$function": "tests.conf.samples:long_enough"}, "keep", long_enough),
        ("payload", "tests.conf.samples.Bean", "payload", Bean),
        ("payload", {"$class": "tests.conf.samples.Bean"}, "payload", Bean),
        ("scanner.files", "a,b", "scanner", Scanner(files=("a", "b"))),
        ("scanner.filePatternRegularExp", "x", "scanner", Scanner(file_pattern_regular_exp="x")),
        ("scanner", {"scanIntervalMillis": 7}, "scanner", Scanner(scan_interval_millis=7)),
        ("scanner", '{"scan_interval_millis": 7}', "scanner", Scanner(scan_interval_millis=7)),
        ("scanner", f"{SLOW}::patience=3", "scanner", SlowScanner(patience=3)),
        ("scanner", {"class": SLOW, "patience": 3}, "scanner", SlowScanner(patience=3)),
        ("spare.files", "a", "spare", Scanner(files=("a",))),
        ("scanners.a.files", "x", "scanners", {"a": Scanner(files=("x",))}),
        ("span", {"start": 5}, "span", Span(start=5)),
        ("point", "1/2", "point", Point(1, 2)),
        ("either", "5", "either", 5),
        ("either", SLOW, "either", SlowScanner()),
        ("extras", '{"a": [1]}', "extras", {"a": [1]}),
    ],
)
def test_a_value_of_every_type(path, raw, field, value):
    configured = configure((path, raw), conversion=Conversion({Point: point}))
    assert (configured.diagnostics, configured.unknown, configured.component.faults) == ((), (), ())
    assert getattr(configured.component, field) == value
    assert type(getattr(configured.component, field)) is type(value)


def test_objects_with_arguments_and_properties():
    listener = "tests.conf.samples.Listener"
    reader = configure(("listener", f"{listener}:a:threshold=5"), ("listeners", f"{listener}:b,{listener}")).component
    assert [(one.name, one.threshold) for one in (reader.listener, *reader.listeners)] == [("a", 5), ("b", 0), ("", 0)]


@pytest.mark.parametrize(("name", "value", "kind"), [("payload", Shared, "type"), ("keep", long_enough, "function")])
def test_nothing_is_set_on_a_class_or_a_function_which_all_share(name, value, kind):
    ((_, unknown),) = configure((f"{name}.shared", "7"), component=Reader(**{name: value})).unknown
    assert f"{kind} values have no properties" in unknown.problem
    assert (Shared.shared, vars(long_enough)) == (5, {})


def test_the_last_of_several_settings_wins_also_of_a_whole_and_its_part():
    configured = configure(("blockSize", "1"), ("block_size", "2"), ("blockSize", "3"))
    assert configured.component.block_size == 3
    assert str(configured.origins["block_size"].where) == "conf.xml:3"
    configured = configure(("scanner", f"{SLOW}::patience=3"), ("scanner.files", "a"), ("scanner.patience", "4"))
    assert configured.component.scanner == SlowScanner(files=("a",), patience=4)
    assert configure(("scanner.files", "a"), ("scanner", SLOW)).component.scanner == SlowScanner()


def test_a_part_keeps_what_code_set_on_the_others_and_the_component_that_was_given_stays_as_it_was():
    reader = Reader(scanner=SlowScanner(files=("a",), patience=9), tags={"a": 1}, names=("x", "y"))
    parts = [("scanner.recursive", "false"), ("tags.b", "2"), ("names[1]", "z"), ("names[2]", "w"), ("tags.a", "3")]
    configured = configure(*parts, component=reader).component
    assert configured.scanner == SlowScanner(files=("a",), patience=9, recursive=False)
    assert (configured.tags, configured.names) == ({"a": 3, "b": 2}, ("x", "z", "w"))
    assert (reader.tags, reader.names, reader.scanner.recursive) == ({"a": 1}, ("x", "y"), True)
    assert configure(component=reader).component is reader


class Aliased(BaseModel):
    file_name: str = Field(default="", alias="fileName")
    line_count: int = Field(default=0, alias="lines")


class Holder(Operator):
    held: Aliased = Aliased()


@pytest.mark.parametrize("name", ["fileName", "file_name"])
def test_a_field_may_be_called_by_its_alias_too(name):
    holder = Holder(held=Aliased(fileName="a", lines=3))
    assert configure((f"held.{name}", "b"), component=holder).component.held == Aliased(fileName="b", lines=3)


def test_every_value_remembers_its_origin_by_path():
    configured = configure(("scanner.scanIntervalMillis", "5"), ("tags(a.b)", "1"), ("names[0]", "x"))
    lines = {"scanner.scan_interval_millis": 1, "tags.a.b": 2, "names.0": 3}
    assert {path: origin.where.line for path, origin in configured.origins.items()} == lines


WEAK, STRONG = '{"files": ["weak"]}', '{"files": ["strong"]}'


@cases(
    "settings",
    ("a whole beats a weaker part", [("scanner.files", "weak"), ("Scanner", STRONG)]),
    ("a part beats a weaker whole", [("Scanner", WEAK), ("SCANNER.Files", "strong")]),
    ("a part beats a weaker part", [("scanner.files", "weak"), ("SCANNER.Files", "strong")]),
)
def test_strength_counts_across_spellings(settings):
    configured = configure(settings[0], ("scanner.recursive", "false"), settings[1])
    assert (configured.diagnostics, configured.component.scanner.files) == ((), ("strong",))
    assert configured.component.scanner.recursive is (settings[1][0] == "Scanner")


def test_strength_counts_across_the_spellings_of_a_place_in_a_map():
    configured = configure(("scanners.a.files", "weak"), ("scanners(a)", STRONG), ("scanners.a.recursive", "true"))
    assert configured.component.scanners["a"].files == ("strong",)


def test_what_pydantic_refuses_waits_among_the_faults():
    configured = configure(("blockSize", "many"))
    problem = "input should be a valid integer, unable to parse string as an integer"
    assert [(fault.path, fault.message) for fault in configured.component.faults] == [("block_size", problem)]
    assert (configured.diagnostics, str(configured.origins["block_size"].where)) == ((), "conf.xml:1")


NO_PAIR = "it must be key=value pairs separated by commas, and 'a' is not a pair"
NO_TRUTH = "recursive: input should be a valid boolean, unable to interpret input"


@pytest.mark.parametrize(
    ("path", "raw", "problem"),
    [
        ("names[2]", "a", "names of reader cannot be 'a': it has 0 values, so there is no [2] to set"),
        (f"names.{'1' * 5000}", "a", "names of reader cannot be 'a': it has 0 values, so there is no [1111"),
        ("tags", "a", f"tags of reader cannot be 'a': {NO_PAIR}"),
        ("tags", "{a}", "tags of reader cannot be '{a}': it must be JSON"),
        ("names", 5, "names of reader cannot be 5: it must be values separated by commas, or a JSON list"),
        ("spare", "", "spare of reader cannot be '': it must be a kind of Scanner, as Class or Class:argument"),
        ("spare", "tests.conf.samples.Bean", "it must be a kind of Scanner, and Bean is not one"),
        ("scanner.recursive", "maybe", f"scanner of reader cannot be 'maybe': {NO_TRUTH}"),
        ("scanner", {"fils": 1}, "Scanner has no property 'fils'; did you mean 'files'"),
        ("point", "1-2", "the converter for Point refuses it: not enough values to unpack"),
        ("span", {"start": "x"}, "it must be a whole number"),
        ("span.end", "9", "'end' of Span cannot be set"),
        ("keep", {"$function": "app:<lambda>", "digest": "0"}, "has no name that a file could refer to"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_converted_is_reported_with_the_line_that_set_it(path, raw, problem):
    (told,) = configure(("scanner.files", "in"), (path, raw), conversion=Conversion({Point: point})).diagnostics
    assert (told.code, str(told.where)) == ("property-invalid", "conf.xml:2")
    assert problem in told.problem


def test_a_class_that_is_not_there_is_reported_as_such():
    (told,) = configure(("payload", "tests.conf.samples.Beam")).diagnostics
    assert (told.code, told.help) == ("class-not-found", "did you mean 'Bean'?")


def test_a_secret_is_not_quoted():
    (told,) = configure(("tags", "hunter2", "${env:TAGS}")).diagnostics
    assert told.problem.startswith(
        "tags of reader cannot be ${env:TAGS}: it must be key=value pairs separated by commas"
    )
    assert told.problem.endswith(", and '${env:TAGS}' is not a pair")


@pytest.mark.parametrize(
    ("path", "problem", "help_"),
    [
        ("blokSize", "reader has no property 'blokSize'", "did you mean 'block_size'?"),
        ("lines", "reader has no property 'lines'", "did you mean"),
        ("scanner.fils", "Scanner of reader has no property 'fils'", "did you mean 'files'?"),
        ("blockSize.x", "int values have no properties, so block_size has no parts", "set block_size as a whole"),
        ("listener.x", "it is not set, so listener has no parts to set", "set listener as a whole"),
        ("tags.a.b", "it is not set, so tags.a has no parts to set", "set tags.a as a whole"),
    ],
)
def test_what_it_does_not_have_suggests_a_near_name(path, problem, help_):
    configured = configure((path, "1"))
    ((_, unknown),) = configured.unknown
    assert (configured.diagnostics, unknown.code) == ((), "property-unknown")
    assert problem in unknown.problem
    assert help_ in unknown.help


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(
    PLAIN | st.sampled_from(["{", "[", "a=1", "a.B:c", ":"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
STEPS = st.lists(st.sampled_from(["files", "a", "x", "recursive", "start"]) | st.integers(0, 3), max_size=2)


@given(st.lists(st.tuples(st.sampled_from(list(Reader.model_fields)), STEPS, VALUES), max_size=4))
@example([("distinct", [], [[]])])
def test_no_value_breaks_a_component(settings):
    """Every setting results in a component, in a fault of it, or in a diagnostic."""
    planted = [
        ParsedEntry(
            "key",
            raw,
            Origin(Source.FILE, Where("conf.xml", line), "key"),
            Address(Element.OPERATOR, PropertyPath((field, *steps))),
        )
        for line, (field, steps, raw) in enumerate(settings)
    ]
    configured = with_properties(Reader(), planted, "reader")
    assert isinstance(configured.component, Reader)
    assert {told.code for told in configured.diagnostics} <= {"property-invalid", "class-not-found"}
