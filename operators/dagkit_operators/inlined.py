"""Lambdas asked of many values: what a lambda says stands in the loop itself, and nothing is called for each value.

To call a function of Python takes as long as what most of them do. So the loop is compiled from the lambda's own text,
if the file is there that it came from, and only if that text still makes the very instructions that the lambda has:
else, and for whatever is no plain lambda, each value is a call.
"""

import ast
import inspect
import linecache
import marshal
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any, Final

Loop = Callable[[Sequence[Any]], list[Any]]

_VALUES: Final = "<values>"
"""The name of what is looped over: one that nobody can have written."""
_LOOKS_AROUND: Final = frozenset({"locals", "vars", "dir", "eval", "exec", "super"})
"""What answers by where it is asked."""
_NO_PLAIN_CALL: Final = (
    inspect.CO_VARARGS
    | inspect.CO_VARKEYWORDS
    | inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
)
"""Flags of code that takes any number of arguments, or gives a generator or a coroutine."""
_FUTURE: Final = 0x1FF0000
"""Flags of the imports from `__future__` that a lambda was compiled with."""
_VERSION: Final = 2
"""Of `marshal`: one that writes equal values as equal bytes."""


def keeping(predicate: Callable[[Any], Any]) -> Loop:
    """Gives those of many values for which the predicate holds."""
    looped = _kept(predicate) if isinstance(predicate, FunctionType) else None
    return looped or (lambda values: list(filter(predicate, values)))


def making(function: Callable[[Any], Any]) -> Loop:
    """Gives what the function makes of each of many values."""
    looped = _made(function) if isinstance(function, FunctionType) else None
    return looped or (lambda values: list(map(function, values)))


@lru_cache(maxsize=256)
def _kept(predicate: FunctionType) -> Loop | None:
    found = _lambda_of(predicate)
    if found is None:
        return None
    return _loop(predicate, found, ast.Name(found.args.args[0].arg, ast.Load()), [found.body])


@lru_cache(maxsize=256)
def _made(function: FunctionType) -> Loop | None:
    found = _lambda_of(function)
    return None if found is None else _loop(function, found, found.body, [])


def _loop(function: FunctionType, found: ast.Lambda, item: ast.expr, conditions: list[ast.expr]) -> Loop:
    """`[item for argument in values if conditions]`, as a function that stands where the lambda stands."""
    target = ast.Name(found.args.args[0].arg, ast.Store())
    each = ast.comprehension(target, ast.Name(_VALUES, ast.Load()), conditions, is_async=0)
    arguments = ast.arguments([], [ast.arg(_VALUES)], None, [], [], None, [])
    looping = ast.copy_location(ast.Lambda(arguments, ast.ListComp(item, [each])), found)
    return FunctionType(_code_of(ast.fix_missing_locations(looping), function.__code__), function.__globals__)


def _lambda_of(function: FunctionType) -> ast.Lambda | None:
    """The lambda as it was written; none where it is not known for sure, or could tell a loop from a call."""
    if not _is_plain(function):
        return None
    own = function.__code__
    try:
        tree = ast.parse("".join(linecache.getlines(own.co_filename, function.__globals__)))
        written = (
            node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == own.co_firstlineno
        )
        return next((node for node in written if _same(_code_of(node, own), own)), None)
    except (SyntaxError, ValueError, RecursionError):  # what stands there now is no Python, or not this one's
        return None
    except SystemError:  # CPython 3.11 counts how deep it is for all threads together, and may find that it miscounted
        return None


def _is_plain(function: FunctionType) -> bool:
    """Whether it is a lambda of one argument and of global names, with nothing inside that has names of its own."""
    code = function.__code__
    arguments = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
    one = code.co_name == "<lambda>" and arguments == (1, 0, 0)
    alone = not function.__defaults__ and not function.__closure__ and not code.co_flags & _NO_PLAIN_CALL
    inner = code.co_nlocals > 1 or any(isinstance(constant, CodeType) for constant in code.co_consts)
    return one and alone and not inner and not _LOOKS_AROUND & set(code.co_names)


def _code_of(node: ast.Lambda, own: CodeType) -> CodeType:
    """What a lambda is compiled to, in the file that this code came from."""
    flags = own.co_flags & _FUTURE
    whole = compile(ast.Expression(node), own.co_filename, "eval", flags=flags, dont_inherit=True)
    return next(constant for constant in whole.co_consts if isinstance(constant, CodeType))


def _same(one: CodeType, other: CodeType) -> bool:
    """Whether two pieces of code do the same, instruction by instruction."""
    return list(_traits(one)) == list(_traits(other))


def _traits(code: CodeType) -> Iterator[Any]:
    yield code.co_code
    yield marshal.dumps(code.co_consts, _VERSION)
    yield code.co_names
    yield code.co_varnames
    yield code.co_exceptiontable
