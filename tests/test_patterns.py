"""Patterns from outside: they match what Python matches, in linear time."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.ground.patterns import is_whole, refusal
from tests.cases import cases


@cases(
    "pattern, problem",
    ("nothing to repeat", "*reader", "no argument for repetition operator: *"),
    ("a group again", r"(a)\1", r"invalid escape sequence: \1"),
    ("looking ahead", "(?!x).*", "invalid perl operator: (?!"),
    ("looking behind", "(?<=x).*", "invalid perl operator: (?<="),
    ("possessive", "a++", "bad repetition operator: ++"),
    ("too many times", "a{2000}", "invalid repetition size: {2000}"),
    ("too many times within one another", "(a{500}){500}", "invalid repetition size: {500}"),
    ("not closed", "(", "missing ): ("),
    ("no text", "a\ud800", "it contains half of a surrogate pair"),
)
def test_what_is_refused(pattern, problem):
    assert refusal(pattern) == problem
    assert not is_whole(pattern, "aa")


NESTED = "(" * 900 + "a+" + ")+" * 900


@pytest.mark.parametrize(
    "pattern", ["(a+)+", r"(\w+-?)+x", "(a|a)*x", "a?" * 300 + "a" * 300, "(a*)*" * 9 + "x", NESTED]
)
def test_no_pattern_tries_exponentially_many_ways(pattern):
    """With a matcher that tries one way after the other, this test does not end."""
    assert not is_whole(pattern, "a" * 299 + "!")


def test_a_name_that_is_not_text_has_question_marks():
    assert is_whole(r"a\?+", "a\udcff\udcfe")
    assert is_whole("...", "a\udcff\udcfe")


LETTERS = st.text("ab-", max_size=6)
PATTERNS = st.recursive(
    st.sampled_from(["a", "b", "-", ".", "[ab]", "[^a]", r"\w", r"\b", "^", "$", "{", "}"]),
    lambda below: st.one_of(
        st.builds("{}{}".format, below, below),
        st.builds("({}|{})".format, below, below),
        st.builds("(?:{}){}".format, below, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{2,}", "*?"])),
    ),
    max_leaves=6,
)


@given(PATTERNS, LETTERS)
def test_patterns_match_what_python_matches(pattern, name):
    assert is_whole(pattern, name) == (re.fullmatch(pattern, name) is not None)
