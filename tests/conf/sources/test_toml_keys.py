"""The lines of keys in TOML."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.conf.sources.toml_keys import toml_lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param("a = 1\nb = 2", {("a",): 1, ("b",): 2}, id="a line for a key"),
        pytest.param("\n# a = 0\na = 1 # b = 2\n", {("a",): 3}, id="comments count as lines, not as keys"),
        ("[t]\na = 1\n[t.u]\nb = 2", {("t",): 1, ("t", "a"): 2, ("t", "u"): 3, ("t", "u", "b"): 4}),
        pytest.param("a = [\n1, # ]\n2]\nb = 1", {("a",): 1, ("b",): 4}, id="a list may go on"),
        pytest.param('a = """\nb = 1\n"""\nc = 1', {("a",): 1, ("c",): 4}, id="so may a text"),
        pytest.param("a = '''\n\\'''\nc = 1", {("a",): 1, ("c",): 3}, id="a literal text has no escapes"),
        ('a = "]#"\nb = {c = "}", d = [1]}\ne = 1', {("a",): 1, ("b",): 2, ("b", "c"): 2, ("b", "d"): 2, ("e",): 3}),
        ("\"a b\".'c.d' . e = 1", {("a b",): 1, ("a b", "c.d"): 1, ("a b", "c.d", "e"): 1}),
        pytest.param("[t.u]\na = 1", {("t", "u"): 1, ("t", "u", "a"): 2}, id="a table has all of its name"),
        ("a = [ # [t]\n[1], 2,\n'[u]',\n]\n[t] # ]\nb = 1", {("a",): 1, ("t",): 5, ("t", "b"): 6}),
        pytest.param("[[t]]\na = 1\n[[t]]\na = 2", {("t",): 1, ("t", "a"): 2}, id="the first of several tables"),
        pytest.param('a = """"quoted""""\nb = 1', {("a",): 1, ("b",): 2}, id="quotes at the end of a long text"),
    ],
)
def test_lines(text, lines):
    tomllib.loads(text)
    assert toml_lines(text) == lines


KEYS = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=4)
VALUES = st.sampled_from(["1", "'#'", '"]"', '"""\n x = 1\n"""', "[\n1,\n2\n]", "{a = [1], b = '}'}", "true"])


@given(st.lists(st.tuples(KEYS, VALUES), unique_by=lambda pair: pair[0]))
def test_every_key_is_found_on_the_line_where_it_was_written(pairs):
    text, expected = "", {}
    for key, value in pairs:
        expected[key,] = text.count("\n") + 1
        text += f"{key} = {value} # the rest\n"
    assert {path: line for path, line in toml_lines(text).items() if len(path) == 1} == expected
