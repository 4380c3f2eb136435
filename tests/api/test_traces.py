"""Which lines are an author's, and how they show in the text of an exception."""

import dataclasses
import json
import os
import sys
from pathlib import Path

import pydantic
import pytest

from dagkit.api.traces import author_frames, author_lines, author_where, is_authored, spoken
from dagkit_operators import value


def test_what_python_libraries_and_dagkit_wrote_is_not_the_authors_and_everything_else_is():
    dag = Path(__file__).parents[2] / "dagkit" / "api" / "dag.py"
    libraries = [module.__file__ for module in (os, dataclasses, pydantic, pytest)]
    for filename in (*libraries, str(dag), "<string>", "<frozen importlib._bootstrap>"):
        assert not is_authored(filename), filename
    for filename in (__file__, f"{sys.prefix}/src/app/app.py", f"{sys.base_prefix}/app.py", "app.py"):
        assert is_authored(filename), filename


def _raised(function, *arguments):
    with pytest.raises(Exception) as raised:  # noqa: PT011 - any will do
        function(*arguments)
    return raised.value


def decode():
    return json.loads("{")


def test_an_exception_out_of_a_library_is_reported_by_the_line_that_called_it():
    where = author_where(_raised(decode))
    assert where.line == decode.__code__.co_firstlineno + 1
    assert author_lines(_raised(decode))[-1] == f'{where} in decode: return json.loads("{{")'


def deep(levels):
    return shallow(levels - 1) if levels else 1 / 0


def shallow(levels):
    return deep(levels - 1) if levels else 1 / 0


def test_a_long_way_is_shortened_from_above():
    lines = author_lines(_raised(deep, 30))
    assert len(lines) == 9
    assert lines[0].startswith("… ")
    assert "1 / 0" in lines[-1]


NOTED = ValueError("wrong")
NOTED.add_note("more")


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (ValueError("one\ntwo"), "ValueError: one"),
        (KeyError("a"), "KeyError: 'a'"),
        (ValueError(), "ValueError"),
        (SyntaxError("odd", ("app.py", 3, 1, "x x", 3, 2)), "SyntaxError: odd"),
        (NOTED, "ValueError: wrong"),
    ],
)
def test_an_exception_is_reported_in_one_line_without_its_notes(raised, said):
    assert spoken(raised) == said


def test_a_line_of_the_operator_library_is_nobodys_own_wherever_it_lies():
    """In a checkout it lies in no folder of libraries."""
    with pytest.raises(TypeError, match="value is no condition") as raised:
        _ = ~value.starts_with("#") & value != ""
    frames = [Path(frame.filename).name for frame in author_frames(raised.value)]
    assert frames == ["test_traces.py"]
