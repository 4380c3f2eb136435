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

from dagkit import Arrowed, Column, Lines, Listed
from dagkit.errors import did_you_mean
from dagkit_operators.bytewise import begin_with, kept_by_beginning
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

    @property
    def is_condition(self) -> bool:
        """Whether it may be true or false; the value itself, and a field, may be so, too."""
        return self.operation == "value" or self.operation not in _NO_CONDITIONS

    if not TYPE_CHECKING:  # a checker would take any name for one that there is

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            asked = [each for each in dir(Expression) if not each.startswith("_")]
            raise AttributeError(f"an expression has no {name!r}; {did_you_mean(name, asked)}")

    def __invert__(self) -> "Expression":
        return Expression("not", self)

    def __and__(self, other: Any) -> "Expression":
        joined: Expression = self._joined("and", other)
        return joined

    def __or__(self, other: Any) -> "Expression":
        joined: Expression = self._joined("or", other)
        return joined

    def _joined(self, operation: str, other: Any) -> Any:
        """Both sides in one; a side that is no condition is what Python makes of a comparison without parentheses."""
        if not isinstance(other, Expression):
            return NotImplemented
        for side in (self, other):
            if side.operation in _NO_CONDITIONS:
                sign = "&" if operation == "and" else "|"
                raise TypeError(
                    f"{side!r} is no condition, and {sign} joins conditions; it binds closer than comparisons do: "
                    f"write ({side!r} == …) {sign} (…), each comparison in parentheses"
                )
        return Expression(operation, self, other)

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
        known = self.known(column)
        return each(self._function, column) if known is None else known

    def known(self, column: Column) -> "pa.BooleanArray | None":
        """For which values of a column it holds, if nothing must be decoded to tell."""
        return _known(self, column)

    def kept(self, column: Column) -> "Column | None":
        """The values of a column for which it holds, where it asks lines how they begin; else a mask tells."""
        return _kept(self, column, wanted=True)

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
        case (("==" | "!="), (Expression() as one, (str() | bytes()) as constant)):
            return _after(one, _equal_to(operation, constant))
        case (("starts_with" | "ends_with"), (Expression() as text, part)) if not isinstance(part, Expression):
            return _after(text, operator.methodcaller(operation.replace("_", ""), part))
    function, given = _OPERATIONS[operation], [_given(operand) for operand in operands]
    if len(given) == 1:
        return _after(operands[0], function)
    left, right = given
    return lambda item: function(left(item), right(item))


def _equal_to(operation: str, constant: str | bytes) -> Callable[[Any], bool]:
    """Whether a value is equal to a text, or to bytes; one of the other kind never is, so nobody means to ask."""
    compare = _OPERATIONS[operation]
    unlike: type = bytes if isinstance(constant, str) else str

    def compared(item: Any) -> bool:
        if isinstance(item, unlike):
            alike = (
                constant.encode(errors="replace") if isinstance(constant, str) else constant.decode(errors="replace")
            )
            raise TypeError(f"{item!r} {operation} {constant!r}: texts and bytes are never equal; ask for {alike!r}")
        answer: bool = compare(item, constant)
        return answer

    return compared


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


_NO_CONDITIONS: Final = frozenset(["value", "upper", "lower", "strip", "length"])
"""What gives something that is asked further, and holds for nothing by itself."""

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


def _known(asked: Any, column: Column) -> "pa.BooleanArray | None":
    """Where it holds, if Arrow can tell just as Python would; none where each value must be asked."""
    import pyarrow.compute as pc  # noqa: PLC0415 - whoever only compiles does not load Arrow

    match asked.operation, asked.operands:
        case "not", (Expression() as inner,):
            known = _known(inner, column)
            return None if known is None else pc.invert(known)
        case ("and" | "or") as joined, (Expression() as one, Expression() as other):
            return _joined(joined, one, other, column)
        case operation, (Expression(operation="value"), constant) if isinstance(column, Lines):
            return _of_lines(operation, constant, column)
        case operation, (Expression(operation="value"), constant) if isinstance(column, Arrowed):
            return _of_array(operation, constant, column.arrow)
    return None


def _joined(joined: str, one: Expression, other: Expression, column: Column) -> "pa.BooleanArray | None":
    """Both sides, the right one asked of no value for which the left one decides, since it may rely on that."""
    import pyarrow.compute as pc  # noqa: PLC0415 - whoever only compiles does not load Arrow

    first = _known(one, column)
    if first is None:
        return None
    second = _known(other, column)
    if second is not None:
        return pc.and_(first, second) if joined == "and" else pc.or_(first, second)
    undecided = first if joined == "and" else pc.invert(first)
    return pc.replace_with_mask(first, undecided, mask_of(other, column.where(undecided)))


def _of_lines(operation: str, text: Any, lines: Lines) -> "pa.BooleanArray | None":
    """Where lines compare so with a text, by their bytes. What ends a line is no part of it."""
    import pyarrow.compute as pc  # noqa: PLC0415 - whoever only compiles does not load Arrow

    asked = _beginning(operation, text, lines.delimiter)
    if asked is not None:
        beginning, wanted = asked
        begin = begin_with(lines.ended, beginning)
        return begin if wanted else pc.invert(begin)
    sought = _bytes_of(text)
    if sought is None:
        return None
    match operation:
        case "ends_with":
            return pc.ends_with(lines.ended, sought + lines.delimiter)
        case "contains" if not set(sought) & set(lines.delimiter):
            return pc.match_substring(lines.ended, sought)
    return None


def _beginning(operation: str, text: Any, delimiter: bytes) -> tuple[bytes, bool] | None:
    """How lines begin, what ends them included, that compare so with a text: with these bytes, or not with them."""
    sought = _bytes_of(text)
    if sought is None:
        return None
    match operation:
        case "==" | "!=":
            return sought + delimiter, operation == "=="
        case "starts_with" if not set(sought) & set(delimiter):
            return sought, True
    return None


def _kept(asked: Expression, column: Column, *, wanted: bool) -> Column | None:
    """The lines for which it holds, or does not, as it is wanted, where it asks how they begin; else a mask must tell.

    Of both sides of `and` the left one is enough: the right one is asked of what is left.
    """
    match asked.operation, asked.operands:
        case "not", (Expression() as inner,):
            return _kept(inner, column, wanted=not wanted)
        case "and", (Expression() as one, Expression() as other) if wanted:
            left = _kept(one, column, wanted=True)
            if left is None:
                return None
            both = _kept(other, left, wanted=True)
            return left.where(other.mask(left)) if both is None else both
        case operation, (Expression(operation="value"), text) if isinstance(column, Lines):
            found = _beginning(operation, text, column.delimiter)
            if found is not None:
                beginning, begin = found
                return Lines(kept_by_beginning(column.ended, beginning, wanted=wanted == begin), column.delimiter)
    return None


def _bytes_of(text: Any) -> bytes | None:
    """The bytes that this text has wherever it stands; none for halves of characters, which may be parts of others."""
    try:
        return text.encode() if isinstance(text, str) else None
    except UnicodeEncodeError:
        return None


def _of_array(operation: str, constant: Any, array: "pa.Array") -> "pa.BooleanArray | None":
    """Where values compare so with a constant, if both are text or numbers that Arrow compares as Python does."""
    import pyarrow as pa  # noqa: PLC0415 - whoever only compiles does not load Arrow
    import pyarrow.compute as pc  # noqa: PLC0415

    if array.null_count:
        return None
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        texts = {"starts_with": pc.starts_with, "ends_with": pc.ends_with, "contains": pc.match_substring}
        function = texts.get(operation, {"==": pc.equal, "!=": pc.not_equal}.get(operation))
        return None if function is None or _bytes_of(constant) is None else function(array, constant)
    function = _NUMBERS.get(operation)
    exact = isinstance(constant, int) and not isinstance(constant, bool) and abs(constant) <= EXACT
    whole, real = pa.types.is_signed_integer(array.type), pa.types.is_float64(array.type)
    comparable = (exact and (whole or real)) or (isinstance(constant, float) and real)
    if function is None or not comparable:
        return None
    return getattr(pc, function)(array, pa.scalar(constant, pa.float64() if real else pa.int64()))


_NUMBERS: Final = {
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
EXACT: Final = 2**53
"""Whole numbers up to here are the same as floats."""


value: Final = Expression("value")
"""The value that is asked: of a record its value, of any other item the whole."""
