"""Lambdas in loops: a loop gives what calls would give; if that is uncertain, the function is called."""

import ast
import bdb
import linecache
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

import pytest

from dagkit.backends.spark.shipping import Known
from dagkit_operators.values import inlined
from dagkit_operators.values.expressions import value
from dagkit_operators.values.inlined import keeping, making

LIMIT = 3
LEAST = 1


def is_looped(function: Any) -> bool:
    """Whether its text stands in the loop."""
    return isinstance(function, FunctionType) and inlined._lambda_of(function) is not None


@pytest.mark.parametrize(
    "function",
    [
        lambda number: number > LIMIT,
        lambda number: number and not number % 2,
        lambda number: str(number) if number > 1 else None,
        (lambda number: number + 1, lambda number: number + 2)[1],
        (lambda number: number > LEAST, lambda number: number > LIMIT)[1],
        lambda number: (
            number
            > 2
        ),
    ],
    ids=[
        "of a global",
        "of an operator that stops early",
        "of a condition",
        "the second of a line",
        "of another global than the first of a line",
        "of many lines",
    ],
)  # fmt: skip
def test_a_plain_lambda_is_looped_and_gives_the_same(function):
    values = [0, 1, 2, 3, 4, 5.5, True]
    assert is_looped(function)
    assert making(function)(values) == list(map(function, values))
    assert keeping(function)(values) == list(filter(function, values))


def a_function(number: int) -> bool:
    return number > 1


def a_closure(limit: int) -> Callable[[int], bool]:
    return lambda number: number > limit


@pytest.mark.parametrize(
    "function",
    [
        a_function,
        a_closure(1),
        value > 1,
        bool,
        lambda number, limit=1: number > limit,
        lambda *numbers: numbers[0] > 1,
        lambda number: [each for each in (number,) if each > 1],
        lambda number: (larger := number) > 1 and larger,
        lambda number: "number" in locals() and number > 1,
        eval("lambda number: number > 1"),  # noqa: S307 - a lambda without a file
    ],
    ids=[
        "a function that has a name",
        "a closure",
        "an expression",
        "one of C",
        "one with a default",
        "one of any number of arguments",
        "one with a loop of its own",
        "one that names something",
        "one that asks where it is",
        "one without a file",
    ],
)
def test_whatever_is_no_plain_lambda_is_called(function):
    values = [0, 1, 2, 3]
    assert not is_looped(function)
    assert making(function)(values) == list(map(function, values))
    assert keeping(function)(values) == list(filter(function, values))


def lambda_in(file: Path, text: str) -> Any:
    """What a module of one line has under the name `function`."""
    file.write_text(text)
    linecache.checkcache(str(file))
    names: dict[str, Any] = {}
    exec(compile(text, str(file), "exec"), names)  # noqa: S102 - our own text
    return names["function"]


@pytest.mark.parametrize(
    "now",
    ["function = lambda n: n > 2\n", "function = lambda n: n > 1.0\n", "function = lambda n: n >\n", "", "x = 1\x00"],
    ids=["another number", "a float for a whole number", "no Python", "nothing", "bytes of no text"],
)
def test_a_file_that_was_edited_since_is_not_believed(tmp_path, now):
    function = lambda_in(tmp_path / "app.py", "function = lambda n: n > 1\n")
    (tmp_path / "app.py").write_text(now)
    linecache.checkcache(str(tmp_path / "app.py"))
    assert not is_looped(function)
    assert keeping(function)([1, 2]) == [2]


def test_a_text_that_python_fails_to_parse_is_not_asked_for(monkeypatch):
    """As CPython 3.11 does now and then, where several threads parse."""

    def parse(_: str) -> ast.AST:
        raise SystemError("AST constructor recursion depth mismatch (before=66, after=61)")

    monkeypatch.setattr(inlined.ast, "parse", parse)
    assert keeping(lambda number: number % 2)([1, 2, 3]) == [1, 3]


def test_a_lambda_that_travelled_is_looped_where_its_file_is_there():
    way = Known([])
    travelled = way.loads(way.dumps(lambda number: number > LIMIT))
    assert is_looped(travelled)
    assert keeping(travelled)([3, 4]) == [4]


def test_global_names_are_looked_up_when_values_are_asked(monkeypatch):
    above = keeping(lambda number: number > LIMIT)
    monkeypatch.setitem(globals(), "LIMIT", 1)
    assert above([1, 2, 3]) == [2, 3]


def test_an_error_shows_the_line_of_the_lambda():
    function = lambda number: 1 / number  # noqa: E731 - a lambda is meant
    with pytest.raises(ZeroDivisionError) as caught:
        making(function)([0])
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.lineno) == (__file__, function.__code__.co_firstlineno)
    assert "1 / number" in str(last.line)


class Breaking(bdb.Bdb):
    """A debugger with a breakpoint on one line, which writes down what a name means at each stop."""

    def __init__(self, line: int, name: str) -> None:
        super().__init__()
        self.set_break(__file__, line)
        self.name = name
        self.seen: list[Any] = []

    def user_line(self, frame: FrameType) -> None:
        if self.break_here(frame) and self.name in frame.f_locals:
            self.seen.append(frame.f_locals[self.name])
        self.set_continue()


def test_a_breakpoint_on_the_line_of_the_lambda_stops_for_each_value():
    function = lambda number: number > LIMIT  # noqa: E731 - a lambda is meant
    assert is_looped(function)
    debugger, before = Breaking(function.__code__.co_firstlineno, "number"), sys.gettrace()
    debugger.runcall(keeping(function), [3, 4, 5])
    sys.settrace(before)  # a debugger removes that of a measurement of coverage
    assert list(dict.fromkeys(debugger.seen)) == [3, 4, 5]
