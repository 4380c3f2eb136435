"""However an application is broken, its author gets diagnostics, never a traceback."""

import itertools

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagkit.cli import main
from tests.cli.samples import WORD_COUNT
from tests.examples import examples

ANSWERS = {0, 2, 3, 4, 6}
"""Right, wrongly asked, at fault, wrongly configured, not found: an answer to every application."""

numbers = itertools.count()
few = settings(
    max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
pytestmark = pytest.mark.slow

OPERATORS = ("lines", "split", "count", "other", "", "a.b", "Lines()", "None")
PLACED = ["Lines()", "Split()", "Count()", "Split(min_length='x')", "Split(nonsense=1)", "Lines", "3"]
PORTS = ["lines.lines", "split.lines", "split.words", "count.items", "count.counts", "lines", "5"]
ENDS = ["lines", "split", "count", "split.words", "count.items", "Split()"]
BEARERS = ["split", "split.lines", "split.words", "count", "None", "Split()"]
SETTERS = ["operator_attribute", "input_port_attribute", "output_port_attribute", "unifier_attribute"]
SETTINGS = [
    *("OperatorContext.PARTITIONER, StatelessPartitioner(3)", "OperatorContext.PARTITIONER, StatelessPartitioner(0)"),
    *("OperatorContext.PARTITIONER, 'three'", "OperatorContext.MEMORY_MB, -1", "PortContext.PARTITION_PARALLEL, True"),
    *("PortContext.QUEUE_CAPACITY, lambda: 1", "DagContext.STREAMING_WINDOW_SIZE_MILLIS, 0", "3, 4"),
]
OTHERS = [
    *("del lines", "dag.placements.clear()", "dag.operator('nobody')", "conf['nothing']", "conf.read('a', int)"),
    *("dag.add_module('m', WordCount())", "dag.add_stream('s').set_source(split.lines)", "dag = None", "exit()"),
    *("dag.add_stream('s').set_source(3)", "dag.add_stream('s').add_sink(None)", "assert False", "raise Exception"),
    *("dag.set_attribute('MEMORY_MB', 3)", "dag.stream('text').set_locality('NEAR')", "return 3", "yield 3"),
    "raise KeyboardInterrupted",
]
any_of = st.sampled_from
STATEMENTS = st.one_of(
    st.builds("dag.add_operator({!r}, {})".format, any_of(OPERATORS), any_of(PLACED)),
    st.builds(
        "dag.add_stream({!r}, {}, {})".format,
        *(any_of(["text", "words", "more", "", "a.b"]), any_of(PORTS), any_of(PORTS)),
    ),
    st.builds("{} >> {}".format, any_of(ENDS), any_of(ENDS)),
    st.builds("dag.set_{}({}, {})".format, any_of(SETTERS), any_of(BEARERS), any_of(SETTINGS)),
    any_of(OTHERS),
)


@few
@given(st.lists(STATEMENTS, min_size=1, max_size=4), st.sampled_from(["validate", "plan", "explain", "graph"]))
def test_whatever_is_drawn_is_answered(folder, statements, verb):
    names = "DagContext, OperatorContext, PortContext, StatelessPartitioner"
    text = WORD_COUNT.replace("from dagkit import", f"from dagkit import {names},")
    _is_answered(folder, text + "".join(f"        {statement}\n" for statement in statements), verb)


@few
@given(st.integers(0, len(WORD_COUNT)), st.integers(0, 400), st.sampled_from(["", "x", "(", "\n", "\t", "é"]))
def test_whatever_is_cut_out_of_the_file_is_answered(folder, start, length, instead):
    _is_answered(folder, WORD_COUNT[:start] + instead + WORD_COUNT[start + length :])


@few
@given(st.binary(max_size=200))
def test_whatever_the_file_holds_is_answered(folder, data):
    path = folder / f"binary{next(numbers)}.py"
    path.write_bytes(data)
    assert _answer("validate", path.name) in ANSWERS


WORDS = ["operator", "lines", "split", "*", ".*", "(", "attr", "prop", "port", "words", "MEMORY_MB", "x", ""]
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
DOTTED = st.builds("dt.{}".format, st.lists(any_of(WORDS), max_size=6).map(".".join))
KEYS = DOTTED | st.text(CHARACTERS, min_size=1, max_size=12)
VALUES = any_of(["", "1", "-1", "true", "${x}", "${env:NO_SUCH}", "{% 1 %}", "json:Foo", "[", "{", "é", "a:b=c,d"])


@few
@given(st.lists(st.tuples(KEYS, VALUES), max_size=4), st.booleans())
def test_whatever_is_configured_is_answered(folder, defined, unknown):
    (folder / "word_count.py").write_text(WORD_COUNT, encoding="utf-8")
    definitions = [part for key, value in defined for part in ("-D", f"{key}={value}")]
    lenient = ["--allow-unknown"] if unknown else []
    assert _answer("validate", "word_count.py", *definitions, *lenient) in ANSWERS
    assert _answer("config", "word_count.py", "--all", *definitions, *lenient) in ANSWERS


@few
@given(
    st.binary(max_size=120) | st.text(max_size=80).map(str.encode), st.sampled_from([".xml", ".properties", ".toml"])
)
def test_whatever_a_property_file_holds_is_answered(folder, data, ending):
    (folder / "word_count.py").write_text(WORD_COUNT, encoding="utf-8")
    (folder / f"p{ending}").write_bytes(data)
    assert _answer("validate", "word_count.py", "-c", f"p{ending}") in ANSWERS


PATHS = any_of(["x" * 5000, "/" * 300, "..", "a:b", ":b", "a:", "-", "json:dumps", "os:path", "."])


@few
@given(st.text(CHARACTERS, max_size=30) | PATHS)
def test_whatever_app_is_called_is_answered(target):
    assert _answer("validate", "--", target) in ANSWERS
    assert _answer("describe", "--", target) in ANSWERS
    assert _answer("status", "--", target) in ANSWERS
    assert _answer("diff", "--", target, target) in ANSWERS


DECLARATIONS = st.from_regex(r'\{"(operators|streams|schema)": [\[\]{}"a-z0-9:,]{0,30}\}').map(str.encode)


@few
@given(st.binary(max_size=120) | DECLARATIONS)
def test_whatever_a_declaration_holds_is_answered(folder, data):
    for ending in (".json", ".properties"):
        (folder / f"declared{ending}").write_bytes(data)
        assert _answer("validate", f"declared{ending}") in ANSWERS
        assert _answer("diff", f"declared{ending}", f"declared{ending}") in ANSWERS


def _is_answered(folder, text, verb="validate"):
    path = folder / f"broken{next(numbers)}.py"
    path.write_text(text, encoding="utf-8")
    assert _answer(verb, path.name) in ANSWERS


def _answer(*arguments):
    """The exit code; whatever is no answer is raised."""
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert "Traceback" not in result.stderr
    assert (result.exit_code == 0) or result.stderr
    return result.exit_code
