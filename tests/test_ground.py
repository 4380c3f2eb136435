"""The ground: the clock as a run sees it, overlays of dicts, and patterns from outside."""

import json
import pickle
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fsspec.implementations.webhdfs import WebHDFS
from hypothesis import given
from hypothesis import strategies as st

from dagkit.engine.program.differences import applied, difference
from dagkit.ground.clock import PATIENCE, SystemClock, patient
from dagkit.ground.overlays import Overlay
from dagkit.ground.patterns import is_whole, refusal
from dagkit.ground.webhdfs import WebHdfs
from tests.cases import cases

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


class Machine:
    """What a machine's two clocks say."""

    def __init__(self):
        self.said, self.passed = NOON, 0.0
        self.clock = SystemClock(lambda: self.said, lambda: self.passed)

    def after(self, seconds, *, set_by=timedelta()):
        self.passed += seconds
        self.said += timedelta(seconds=seconds) + set_by
        return self.clock.now() - NOON


def test_a_clock_that_is_set_back_goes_on_at_the_same_pace_and_one_that_is_set_forward_is_followed():
    machine = Machine()
    assert machine.after(5) == timedelta(seconds=5)
    assert machine.after(1, set_by=-timedelta(hours=1)) == timedelta(seconds=6)
    assert machine.after(2) == timedelta(seconds=8)
    assert Machine().after(1, set_by=timedelta(hours=1)) == timedelta(hours=1, seconds=1)


def test_the_machine_says_what_time_it_is():
    before = datetime.now(UTC)
    assert before <= SystemClock().now() <= datetime.now(UTC) + timedelta(seconds=1)


@pytest.mark.parametrize("factor", ["3", "0.5", "0", "-1", "nan", "inf", "long", "", None])
def test_the_variable_multiplies_limits_if_it_is_a_positive_number(factor, monkeypatch):
    monkeypatch.delenv(PATIENCE, raising=False)
    if factor is not None:
        monkeypatch.setenv(PATIENCE, factor)
    assert patient(2.0) == {"3": 6.0, "0.5": 1.0}.get(factor, 2.0)


NAMES = st.sampled_from("abcdefgh")
CHANGES = st.lists(st.tuples(st.sets(NAMES, max_size=3), st.dictionaries(NAMES, st.integers(0, 3), max_size=4)))


@given(st.dictionaries(NAMES, st.integers(0, 3)), CHANGES)
def test_an_overlay_equals_the_dict_that_was_changed_in_place_also_in_order(first, steps):
    overlay, expected = Overlay.of(first), dict(first)
    for gone, entries in steps:
        before, was = overlay, dict(expected)
        for name in gone:
            expected.pop(name, None)
        expected |= entries
        overlay = overlay.changed(gone, entries)
        assert list(overlay.items()) == list(expected.items())
        assert (len(overlay), list(overlay)) == (len(expected), list(expected))
        assert {name: name in overlay for name in "abcdefgh"} == {name: name in expected for name in "abcdefgh"}
        assert list(before.items()) == list(was.items())
        for most in range(-1, 4):
            assert sorted(overlay.up_to(most, int)) == sorted(n for n, value in expected.items() if value <= most)
        assert overlay.total(int) == sum(expected.values())
        change = difference(before, overlay)
        assert list((was if change is None else applied(was, change)).items()) == list(expected.items())
    copied = pickle.loads(pickle.dumps(overlay))  # noqa: S301 - made here
    assert (copied, list(copied)) == (expected, list(expected))


@given(st.dictionaries(NAMES, st.integers(0, 3)), CHANGES)
def test_a_change_is_applied_to_an_overlay_as_to_a_dict(first, steps):
    overlay: Any = Overlay.of(first)
    for gone, entries in steps:
        change = {"-": list(gone), "*": {name: {"=": value} for name, value in entries.items()}}
        overlay, first = applied(overlay, change), applied(first, change)
        assert isinstance(overlay, Overlay)
        assert list(overlay.items()) == list(first.items())


def test_a_change_costs_what_changed_and_layers_stay_few():
    entries = {f"{number:06}": number for number in range(5000)}
    overlay = Overlay.of(entries)
    for number in range(400):
        before = overlay
        overlay = overlay.changed((), {f"{number * 7 % 5000:06}": -number})
        assert difference(before, overlay) == {"*": {f"{number * 7 % 5000:06}": {"=": -number}}}
        assert overlay.layers[0].set is entries
        assert len(overlay.layers) <= 12
    assert json.dumps(overlay.whole()) == json.dumps(entries | {f"{n * 7 % 5000:06}": -n for n in range(400)})


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


@pytest.mark.parametrize("mode", ["create", "overwrite"])
def test_a_file_in_hdfs_that_cannot_be_renamed_leaves_nothing(monkeypatch, mode):
    files: set[str] = set()

    def call(_: WebHDFS, operation: str, *, path: str, **__: Any) -> None:
        if operation == "RENAME":
            raise RuntimeError("the quota is exceeded")
        files.remove(path)

    monkeypatch.setattr(WebHDFS, "pipe_file", lambda _, path, __: files.add(path))
    monkeypatch.setattr(WebHDFS, "_call", call)
    with pytest.raises(OSError, match="the quota"):
        WebHdfs("host", skip_instance_cache=True).pipe_file("/blocks/7", b"content", mode=mode)
    assert files == set()
