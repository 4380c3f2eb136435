"""Lambdas in loops: a loop gives what calls would give; if that is uncertain, the function is called."""

import bdb
import gc
import linecache
import sys
import traceback
import weakref
from types import FunctionType

import pytest

from dagkit.backends.spark.shipping.shipping import Known
from dagkit_operators.values import inlined
from dagkit_operators.values.expressions import value
from dagkit_operators.values.inlined import keeping, making

LIMIT = 3
LEAST = 1


def is_looped(function):
    """Whether its text stands in the loop."""
    return isinstance(function, FunctionType) and inlined._lambda_of(function) is not None


LOOPED = {
    "of a global": lambda number: number > LIMIT,
    "of an operator that stops early": lambda number: number and not number % 2,
    "of a condition": lambda number: str(number) if number > 1 else None,
    "the second of a line": (lambda number: number + 1, lambda number: number + 2)[1],
    "of another global than the first of a line": (lambda number: number > LEAST, lambda number: number > LIMIT)[1],
    "of many lines": lambda number: (
        number
        > 2
    ),
}  # fmt: skip


def a_function(number):
    return number > 1


def a_closure(limit):
    return lambda number: number > limit


CALLED = {
    "a function that has a name": a_function,
    "a closure": a_closure(1),
    "an expression": value > 1,
    "one of C": bool,
    "one with a default": lambda number, limit=1: number > limit,
    "one of any number of arguments": lambda *numbers: numbers[0] > 1,
    "one with a loop of its own": lambda number: [each for each in (number,) if each > 1],
    "one that names something": lambda number: (larger := number) > 1 and larger,
    "one that asks where it is": lambda number: "number" in locals() and number > 1,
    "one without a file": eval("lambda number: number > 1"),  # noqa: S307 - a lambda without a file
}


@pytest.mark.parametrize("name", [*LOOPED, *CALLED])
def test_a_plain_lambda_is_looped_and_whatever_else_is_called_and_both_give_the_same(name):
    function, values = (LOOPED | CALLED)[name], [0, 1, 2, 3, 4, 5.5, True]
    assert is_looped(function) == (name in LOOPED)
    assert making(function)(values) == list(map(function, values))
    assert keeping(function)(values) == list(filter(function, values))


def lambda_in(file, text):
    """What a module of one line has under the name `function`."""
    file.write_text(text)
    linecache.checkcache(str(file))
    names = {}
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

    def parse(_):
        raise SystemError("AST constructor recursion depth mismatch (before=66, after=61)")

    monkeypatch.setattr(inlined.ast, "parse", parse)
    assert keeping(lambda number: number % 2)([1, 2, 3]) == [1, 3]


def test_a_lambda_that_travelled_is_looped_where_its_file_is_there():
    way = Known([])
    travelled = way.loads(way.dumps(lambda number: number > LIMIT))
    assert is_looped(travelled)
    assert keeping(travelled)([3, 4]) == [4]


@pytest.mark.parametrize("of", [keeping, making])
def test_a_lambda_of_a_program_that_was_replaced_is_freed_with_its_globals(of):
    gone, plain = [], LOOPED["of a global"]
    for limit in 3, 2, 1:
        function = FunctionType(plain.__code__, {"LIMIT": limit})
        weakref.finalize(function, gone.append, limit)
        assert of(function)([2, 3]) == of(lambda number, least=limit: number > least)([2, 3])
        del function
    gc.collect()
    assert gone == [3, 2, 1]


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

    def __init__(self, line, name):
        super().__init__()
        self.set_break(__file__, line)
        self.name = name
        self.seen = []

    def user_line(self, frame):
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
