"""Names in keys: literal, patterns, folded."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.conf.grammar.names import Fit, NamePattern, bare, folded, snake


@pytest.mark.parametrize(
    ("pattern", "name", "fit"),
    [
        ("Block-reader", "Block-reader", Fit.EXACT),
        ("*", "anything at all", Fit.STAR),
        ("op[12]", "op2", Fit.PATTERN),
        ("op[12]", "op12", Fit.NOT),
        ("op", "operator", Fit.NOT),
        ("Module$inner", "Module$inner", Fit.EXACT),
        (r"Module\$\w+", "Module$inner", Fit.PATTERN),
        ("C++", "C++", Fit.EXACT),
        ("*", "*", Fit.EXACT),
    ],
    ids=[
        "a name is itself",
        "a lone star is any name",
        "a pattern is tried",
        "a pattern is matched against the whole name",
        "a plain name is no prefix",
        "a module's inner name works by equality",
        "a module's inner names can be matched when the dollar is escaped",
        "a name that is no valid pattern works by equality",
        "equality outranks the pattern",
    ],
)
def test_fit(pattern, name, fit):
    assert NamePattern(pattern).fit(name) is fit


def test_a_lone_star_ranks_below_a_pattern_and_above_a_key_without_a_name():
    assert Fit.ANYONE < NamePattern("*").fit("op") < NamePattern("o.").fit("op") < NamePattern("op").fit("op")


def test_a_folded_name_fits_every_name_that_it_spells():
    pattern = NamePattern("BLOCK_READER", folded=True)
    assert [name for name in ("Block-reader", "block_reader", "Block reader", "Blockreader") if pattern.fit(name)] == [
        "Block-reader",
        "block_reader",
        "Block reader",
    ]


def test_a_name_that_cannot_be_compiled_says_why():
    assert NamePattern("*reader").fault == "nothing to repeat at position 0"


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("a{99999999999}", "it repeats something too often"),
        ("(" * 5000 + ")" * 5000, "it nests groups deeper than 20"),
        ("(" * 21 + ")" * 21, "it nests groups deeper than 20"),
        (r"(a)\1", r"\1 refers to a group, which cannot be matched in bounded time"),
        ("(?!x).*", "'(?!x' cannot be matched in bounded time"),
        ("a++", "++ cannot be matched in bounded time"),
    ],
    ids=["too many times", "too deep for Python", "too deep for us", "a group again", "looking ahead", "possessive"],
)
def test_what_is_no_pattern(pattern, problem):
    assert NamePattern(pattern).fault == problem
    assert NamePattern(pattern).fit("aa") is Fit.NOT


@pytest.mark.parametrize("pattern", ["(a+)+", r"(\w+-?)+x", "(a|a)*x", "a?" * 30 + "a" * 30, "(a*)*" * 9 + "x"])
def test_no_pattern_takes_long(pattern):
    before = time.perf_counter()
    assert NamePattern(pattern).fit("a" * 29 + "!") is Fit.NOT
    assert time.perf_counter() - before < 5


LETTERS = st.text("ab-", max_size=6)
PATTERNS = st.recursive(
    st.sampled_from(["a", "b", "-", ".", "[ab]", "[^a]", r"\w", r"\b", "^", "$", "{", "}"]),
    lambda below: st.one_of(
        st.builds("{}{}".format, below, below),
        st.builds("({}|{})".format, below, below),
        st.builds("(?:{}){}".format, below, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{,2}", "{2,}", "*?"])),
    ),
    max_leaves=6,
)


@given(PATTERNS, LETTERS)
def test_patterns_match_what_python_matches(pattern, name):
    fit = NamePattern(f"({pattern})(?:)").fit(name)
    assert (fit is Fit.PATTERN) == (re.fullmatch(f"({pattern})(?:)", name) is not None)


@pytest.mark.parametrize(
    ("camel", "snaked"),
    [
        ("blockSize", "block_size"),
        ("filePatternRegularExp", "file_pattern_regular_exp"),
        ("HTTPServer", "http_server"),
        ("block_size", "block_size"),
    ],
)
def test_snake(camel, snaked):
    assert snake(camel) == snaked


def test_every_spelling_of_a_property_is_bare_the_same():
    assert {bare(name) for name in ("blockSize", "block_size", "BLOCK_SIZE", "BlockSize")} == {"blocksize"}


def test_folding_keeps_letters_and_digits_alone():
    assert folded("Record-writer 2") == "RECORD_WRITER_2"
