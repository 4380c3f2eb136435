"""Expressions: what is asked of a value, said as data, so that whole columns can be asked at once.

    from dagkit_operators import Filter, value

    Filter(~value.starts_with("."))
    Filter((value.length() > 3) & value.matches("[a-z]+"))

An expression is a function of one value, too: `value.starts_with(".")("...")` is True. Both ways give the same answers.
Of lines, tests for equal, leading, ending and contained text look at the bytes, and nothing is decoded; everything else
asks each value.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from dagkit import Column, Lines, Listed
from dagkit_operators.masks import each, mask_of

if TYPE_CHECKING:
    import pyarrow as pa


class Expression:
    """What is asked of a value: an operation on what other expressions give, and on constants."""

    __slots__ = ("_function", "operands", "operation")

    def __init__(self, operation: str, *operands: Any) -> None:
        self.operation = operation
        self.operands = operands
        self._function = _function_of(operation, operands)

    def __reduce__(self) -> tuple[Any, ...]:
        return Expression, (self.operation, *self.operands)

    def starts_with(self, text: Any) -> "Expression":
        """Whether the text begins so."""
        return Expression("starts_with", self, text)

    def ends_with(self, text: Any) -> "Expression":
        """Whether the text ends so."""
        return Expression("ends_with", self, text)

    def contains(self, text: Any) -> "Expression":
        """Whether this is somewhere in the text, or among the values of a collection."""
        return Expression("contains", self, text)

    def matches(self, pattern: "str | re.Pattern[str]") -> "Expression":
        """Whether the whole text is of this form, as Python's `re` has it."""
        compiled = re.compile(pattern)
        return Expression("matches", self, compiled.pattern, compiled.flags & ~re.UNICODE)

    def length(self) -> "Expression":
        """How many characters the text has, or values the collection."""
        return Expression("length", self)

    def upper(self) -> "Expression":
        """The text in upper case."""
        return Expression("upper", self)

    def lower(self) -> "Expression":
        """The text in lower case."""
        return Expression("lower", self)

    def strip(self) -> "Expression":
        """The text without blanks at its ends."""
        return Expression("strip", self)

    def field(self, name: str) -> "Expression":
        """What stands in a field of the value, or under a key of a mapping."""
        return Expression("field", self, name)

    def __invert__(self) -> "Expression":
        return Expression("not", self)

    def __and__(self, other: Any) -> "Expression":
        return Expression("and", self, other) if isinstance(other, Expression) else NotImplemented

    def __or__(self, other: Any) -> "Expression":
        return Expression("or", self, other) if isinstance(other, Expression) else NotImplemented

    def __eq__(self, other: object) -> "Expression":  # type: ignore[override]
        return Expression("==", self, other)

    def __ne__(self, other: object) -> "Expression":  # type: ignore[override]
        return Expression("!=", self, other)

    def __lt__(self, other: Any) -> "Expression":
        return Expression("<", self, other)

    def __le__(self, other: Any) -> "Expression":
        return Expression("<=", self, other)

    def __gt__(self, other: Any) -> "Expression":
        return Expression(">", self, other)

    def __ge__(self, other: Any) -> "Expression":
        return Expression(">=", self, other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __bool__(self) -> bool:
        """Whether two expressions are the same, where that is what was asked; any other has no answer yet."""
        if self.operation in ("==", "!="):
            one, other = self.operands
            if isinstance(one, Expression) and isinstance(other, Expression):
                return (repr(one) == repr(other)) == (self.operation == "==")
        raise TypeError(
            f"{self!r} is asked of values later; join expressions with &, | and ~, not with and, or and not"
        )

    def __call__(self, item: Any) -> Any:
        """What it gives for one value."""
        return self._function(item)

    def mask(self, column: Column) -> "pa.BooleanArray":
        """For which values of a column it holds."""
        known = _mask_of_bytes(self, column) if isinstance(column, Lines) else None
        return each(self._function, column) if known is None else known

    def of(self, column: Column) -> Column:
        """What it gives for each value of a column."""
        return column if self.operation == "value" else Listed(list(map(self._function, column.values())))

    def __repr__(self) -> str:
        operands = [repr(operand) for operand in self.operands]
        match self.operation:
            case "value":
                return "value"
            case "not":
                return f"~{operands[0]}"
            case "and" | "or" | "==" | "!=" | "<" | "<=" | ">" | ">=":
                sign = {"and": "&", "or": "|"}.get(self.operation, self.operation)
                return f"({operands[0]} {sign} {operands[1]})"
            case "matches" if not self.operands[2]:
                return f"{operands[0]}.matches({operands[1]})"
            case _:
                return f"{operands[0]}.{self.operation}({', '.join(operands[1:])})"


def _function_of(operation: str, operands: Sequence[Any]) -> Callable[[Any], Any]:
    """What an operation gives for one value."""
    match operation, operands:
        case "value", ():
            return _itself
        case "and", (Expression() as one, Expression() as other):
            return lambda item: bool(one(item) and other(item))
        case "or", (Expression() as one, Expression() as other):
            return lambda item: bool(one(item) or other(item))
        case "matches", (Expression() as text, pattern, flags):
            fullmatch = re.compile(pattern, flags).fullmatch
            return _after(text, lambda item: fullmatch(item) is not None)
        case (("upper" | "lower" | "strip"), (Expression() as text,)):
            return _after(text, operator.methodcaller(operation))
        case (("starts_with" | "ends_with"), (Expression() as text, part)) if not isinstance(part, Expression):
            return _after(text, operator.methodcaller(operation.replace("_", ""), part))
    function, given = _OPERATIONS[operation], [_given(operand) for operand in operands]
    if len(given) == 1:
        return _after(operands[0], function)
    left, right = given
    return lambda item: function(left(item), right(item))


def _itself(item: Any) -> Any:
    return item


def _after(first: "Expression", function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of what another expression gives."""
    if first.operation == "value":
        return function
    return lambda item: function(first(item))


def _given(operand: Any) -> Callable[[Any], Any]:
    return operand if isinstance(operand, Expression) else lambda _: operand


def _field(of: Any, name: str) -> Any:
    return of[name] if isinstance(of, Mapping) else getattr(of, name)


_OPERATIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "not": operator.not_,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "starts_with": lambda text, part: text.startswith(part),
    "ends_with": lambda text, part: text.endswith(part),
    "contains": operator.contains,
    "length": len,
    "field": _field,
}


def _mask_of_bytes(asked: Any, column: Lines) -> "pa.BooleanArray | None":
    """Where it holds for lines, found in their bytes; none where the bytes alone do not tell."""
    import pyarrow.compute as pc  # noqa: PLC0415 - whoever only compiles does not load Arrow

    if not isinstance(asked, Expression):
        return None
    match asked.operation, asked.operands:
        case "not", (inner,):
            known = _mask_of_bytes(inner, column)
            return None if known is None else pc.invert(known)
        case ("and" | "or") as joined, (Expression() as one, Expression() as other):
            # What the bytes do not tell is asked of the values, and of those alone for which it matters, since the
            # right side may rely on the left.
            return _joined(joined, one, other, column)
        case operation, (Expression(operation="value"), str() as text):
            found = _bytes_of(text)
            return None if found is None else _compared(operation, found, column)
    return None


def _joined(joined: str, one: Expression, other: Expression, column: Lines) -> "pa.BooleanArray | None":
    import pyarrow.compute as pc  # noqa: PLC0415 - whoever only compiles does not load Arrow

    first, second = _mask_of_bytes(one, column), _mask_of_bytes(other, column)
    if first is None:
        return None
    if second is not None:
        return pc.and_(first, second) if joined == "and" else pc.or_(first, second)
    undecided = first if joined == "and" else pc.invert(first)
    answers = mask_of(other, column.where(undecided))
    return pc.replace_with_mask(first, undecided, answers)


def _bytes_of(text: str) -> bytes | None:
    """The bytes that this text has wherever it stands; none for halves of characters, which may be parts of others."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None


def _compared(operation: str, text: bytes, column: Lines) -> "pa.BooleanArray | None":
    """Where lines compare so with a text. What ends them is no part of them, and must not be taken for one."""
    import pyarrow.compute as pc  # noqa: PLC0415 - whoever only compiles does not load Arrow

    ended, apart = column.ended, not set(text) & set(column.delimiter)
    match operation:
        case "==":
            return pc.equal(ended, text + column.delimiter)
        case "!=":
            return pc.not_equal(ended, text + column.delimiter)
        case "ends_with":
            return pc.ends_with(ended, text + column.delimiter)
        case "starts_with" if apart:
            return pc.starts_with(ended, text)
        case "contains" if apart:
            return pc.match_substring(ended, text)
    return None


value: Final = Expression("value")
"""The value that is asked: of a record its value, of any other item the whole."""
