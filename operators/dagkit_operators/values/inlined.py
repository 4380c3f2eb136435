"""Inlined lambdas: the body of a lambda is compiled into the loop over the values, which saves a call for each value.

A Python call takes as long as the body of most lambdas. The loop is compiled from the lambda's source, if the source
file exists and still compiles to exactly the lambda's instructions. Otherwise, and for all other functions, the loop
calls the function for each value.
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
# For each line, a call and its body take 66 ns, and the same expression in a loop 46, of some 200 for all that is done
# with a line; calls took 1.09 to 1.15 times the processor time of loops. Rejected: sending the source with the program,
# which each function of each operator would need. So a worker without the author's file calls. A debugger sees a loop;
# tracebacks and breakpoints still show the author's line.

_VALUES: Final = "<values>"
"""The name of the loop's argument: not a valid identifier, so no lambda can use it."""
_READ_THE_FRAME: Final = frozenset({"locals", "vars", "dir", "eval", "exec", "super"})
"""Functions whose result depends on the calling frame."""
_NO_PLAIN_CALL: Final = (
    inspect.CO_VARARGS
    | inspect.CO_VARKEYWORDS
    | inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
)
"""Flags of code that takes any number of arguments, or returns a generator or a coroutine."""
_FUTURE: Final = 0x1FF0000
"""Flags of the imports from `__future__` that a lambda was compiled with."""
_VERSION: Final = 2
"""The version of `marshal` in use: it writes equal values as equal bytes."""


def keeping(predicate: Callable[[Any], Any]) -> Loop:
    """Return a function from many values to those for which the predicate holds."""
    return _looped(predicate, _kept) or (lambda values: list(filter(predicate, values)))


def making(function: Callable[[Any], Any]) -> Loop:
    """Return a function from many values to the function's result for each."""
    return _looped(function, _made) or (lambda values: list(map(function, values)))


def _looped(function: Callable[[Any], Any], looping: Callable[[CodeType, str], CodeType | None]) -> Loop | None:
    """The loop of a lambda, with its globals; None if it is no lambda that can be inlined."""
    if not isinstance(function, FunctionType) or function.__defaults__ or function.__closure__:
        return None
    own = function.__code__
    linecache.lazycache(own.co_filename, function.__globals__)  # of a module in an archive
    code = looping(own, own.co_filename)
    return None if code is None else FunctionType(code, function.__globals__)


# By code: a function would keep the globals of each program that a worker has run. Two files may have equal code.
@lru_cache(maxsize=256)
def _kept(own: CodeType, _: str) -> CodeType | None:
    found = _lambda_of(FunctionType(own, {}))
    return None if found is None else _loop(own, found, ast.Name(found.args.args[0].arg, ast.Load()), [found.body])


@lru_cache(maxsize=256)
def _made(own: CodeType, _: str) -> CodeType | None:
    found = _lambda_of(FunctionType(own, {}))
    return None if found is None else _loop(own, found, found.body, [])


def _loop(own: CodeType, found: ast.Lambda, item: ast.expr, conditions: list[ast.expr]) -> CodeType:
    """`[item for argument in values if conditions]`, as code with the lambda's source position."""
    target = ast.Name(found.args.args[0].arg, ast.Store())
    generator = ast.comprehension(target, ast.Name(_VALUES, ast.Load()), conditions, is_async=0)
    arguments = ast.arguments([], [ast.arg(_VALUES)], None, [], [], None, [])
    looping = ast.copy_location(ast.Lambda(arguments, ast.ListComp(item, [generator])), found)
    return _code_of(ast.fix_missing_locations(looping), own)


def _lambda_of(function: FunctionType) -> ast.Lambda | None:
    """The syntax tree of a lambda; None if its source is uncertain, or if inlining could change what it does."""
    if not _is_plain(function):
        return None
    own = function.__code__
    try:
        tree = ast.parse("".join(linecache.getlines(own.co_filename, function.__globals__)))
        written = (
            node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == own.co_firstlineno
        )
        return next((node for node in written if _same(_code_of(node, own), own)), None)
    # The file has changed, and is no valid Python now.
    except (SyntaxError, ValueError, RecursionError):
        return None
    # CPython 3.11 shares its recursion count between threads, and may miscount.
    except SystemError:
        return None


def _is_plain(function: FunctionType) -> bool:
    """Whether it is a lambda of one argument that uses only global names and has no inner scopes."""
    code = function.__code__
    arguments = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
    one = code.co_name == "<lambda>" and arguments == (1, 0, 0)
    alone = not function.__defaults__ and not function.__closure__ and not code.co_flags & _NO_PLAIN_CALL
    inner = code.co_nlocals > 1 or any(isinstance(constant, CodeType) for constant in code.co_consts)
    return one and alone and not inner and not _READ_THE_FRAME & set(code.co_names)


def _code_of(node: ast.Lambda, own: CodeType) -> CodeType:
    """The code that a lambda compiles to, with the flags and file name of its original code."""
    flags = own.co_flags & _FUTURE
    whole = compile(ast.Expression(node), own.co_filename, "eval", flags=flags, dont_inherit=True)
    return next(constant for constant in whole.co_consts if isinstance(constant, CodeType))


def _same(one: CodeType, other: CodeType) -> bool:
    """Whether two code objects have the same instructions, constants and names."""
    return list(_properties(one)) == list(_properties(other))


def _properties(code: CodeType) -> Iterator[Any]:
    yield code.co_code
    yield marshal.dumps(code.co_consts, _VERSION)
    yield code.co_names
    yield code.co_varnames
    yield code.co_exceptiontable
