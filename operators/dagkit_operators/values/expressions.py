"""Expressions: functions of a value, described as data, so that they can be evaluated on whole columns.

    from dagkit_operators import Filter, value

    Filter(~value.starts_with("."))
    Filter((value.length() > 3) & value.matches("[a-z]+"))

An expression can also be called with one value: `value.starts_with(".")("...")` is True. Both ways give the same
results. Of a value that is missing, which is None, each test is false but `!=` and `== None`, and what is made of it is
None. On lines, tests for equal, leading, trailing and contained text compare bytes without decoding them; every other
expression is evaluated value by value.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from dagkit import Arrowed, Column, Lines, Listed
from dagkit.errors import did_you_mean
from dagkit.ground.patterns import whole_matcher
from dagkit.schema.columns import kept_of
from dagkit_operators.native.bytewise import begin_with, kept_by_beginning
from dagkit_operators.values.masks import mask_by_value, mask_of

if TYPE_CHECKING:
    import pyarrow as pa


class Expression:
    """An operation on the results of other expressions and on constants."""

    __slots__ = ("_function", "operands", "operation")

    def __init__(self, operation: str, *operands: Any) -> None:
        self.operation = operation
        self.operands = operands
        self._function = _function_of(operation, operands)

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the function, which is often a lambda, and is made again of the others.
        return Expression, (self.operation, *self.operands)

    def starts_with(self, text: Any) -> "Expression":
        """Whether the value begins with this text."""
        return Expression("starts_with", self, text)

    def ends_with(self, text: Any) -> "Expression":
        """Whether the value ends with this text."""
        return Expression("ends_with", self, text)

    def contains(self, text: Any) -> "Expression":
        """Whether the text contains this text, or the collection this value."""
        return Expression("contains", self, text)

    def matches(self, pattern: "str | re.Pattern[str]") -> "Expression":
        """Whether the whole text matches this pattern, in linear time.

        It is a pattern of RE2, or of Python's `re` if RE2 accepts it, too: see `dagkit.ground.patterns`. Raise
        ValueError if RE2 refuses it.
        """
        if isinstance(pattern, re.Pattern):
            return Expression("matches", self, pattern.pattern, pattern.flags & ~re.UNICODE)
        return Expression("matches", self, pattern, 0)

    def length(self) -> "Expression":
        """The number of characters of the text, or of values of the collection."""
        return Expression("length", self)

    def upper(self) -> "Expression":
        """The text in upper case."""
        return Expression("upper", self)

    def lower(self) -> "Expression":
        """The text in lower case."""
        return Expression("lower", self)

    def strip(self) -> "Expression":
        """The text without whitespace at its ends."""
        return Expression("strip", self)

    def field(self, name: str) -> "Expression":
        """The field of the value with this name, or the value of a mapping for this key."""
        return Expression("field", self, name)

    @property
    def is_condition(self) -> bool:
        """Whether the result may be true or false. The value itself and a field may be conditions, too."""
        return self.operation == "value" or self.operation not in _NO_CONDITIONS

    if not TYPE_CHECKING:  # with __getattr__, a type checker would accept any name

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            known = [method for method in dir(Expression) if not method.startswith("_")]
            raise AttributeError(f"an expression has no {name!r}; {did_you_mean(name, known)}")

    def __invert__(self) -> "Expression":
        return Expression("not", self)

    def __and__(self, other: Any) -> "Expression":
        joined: Expression = self._joined("and", other)
        return joined

    def __or__(self, other: Any) -> "Expression":
        joined: Expression = self._joined("or", other)
        return joined

    def _joined(self, operation: str, other: Any) -> Any:
        """Join two conditions. Raise TypeError if a side is not one, as happens if a comparison lacks parentheses."""
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
        # `==` makes an expression, so two expressions are the same if their texts are: see `__bool__`.
        return hash(repr(self))

    def __bool__(self) -> bool:
        """Whether two expressions compared with == or != are the same. Raise TypeError for any other expression."""
        if self.operation in ("==", "!="):
            one, other = self.operands
            if isinstance(one, Expression) and isinstance(other, Expression):
                return (repr(one) == repr(other)) == (self.operation == "==")
        raise TypeError(
            f"{self!r} is asked of values later; join expressions with &, | and ~, not with and, or and not"
        )

    def __call__(self, item: Any) -> Any:
        """The result for one value."""
        return self._function(item)

    def mask(self, column: Column) -> "pa.BooleanArray":
        """The mask of the values of a column for which the expression holds."""
        known = self.known(column)
        return mask_by_value(self._function, column) if known is None else known

    def known(self, column: Column) -> "pa.BooleanArray | None":
        """The mask of the values for which the expression holds, if nothing must be decoded for it; else None."""
        return _known(self, column)

    def kept(self, column: Column) -> "Column | None":
        """The values for which the expression holds, if it tests how lines begin; else None: a mask is needed."""
        return _kept(self, column, wanted=True)

    def of(self, column: Column) -> Column:
        """The result for each value of a column."""
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
    """The function of one value that computes an operation."""
    match operation, operands:
        case "value", ():
            return _itself
        case "and", (Expression() as one, Expression() as other):
            return lambda item: bool(one(item) and other(item))
        case "or", (Expression() as one, Expression() as other):
            return lambda item: bool(one(item) or other(item))
        case "matches", (Expression() as text, pattern, flags):
            return _after(text, _unless_missing(whole_matcher(pattern, flags), result=False))
        case (("upper" | "lower" | "strip"), (Expression() as text,)):
            return _after(text, _unless_missing(operator.methodcaller(operation)))
        case (("==" | "!="), (Expression() as one, (str() | bytes()) as constant)):
            return _after(one, _equal_to(operation, constant))
        case (("starts_with" | "ends_with"), (Expression() as text, part)) if not isinstance(part, Expression):
            test = operator.methodcaller(operation.replace("_", ""), part)
            return _after(text, _unless_missing(test, result=False))
    function, given = _OPERATIONS[operation], [_given(operand) for operand in operands]
    if len(given) == 1:
        return _after(operands[0], function)
    left, right = given
    return lambda item: function(left(item), right(item))


def _unless_missing(function: Callable[[Any], Any], result: Any = None) -> Callable[[Any], Any]:
    """A function of a value with another result for a missing one."""

    # A missing value is found where the function raises, so that no other value is tested for it.
    def asked(item: Any) -> Any:
        try:
            return function(item)
        except (TypeError, AttributeError):
            if item is None:
                return result
            raise

    return asked


def _false_if_missing(test: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A test of two values that is false if one is missing and cannot be tested."""

    def tested(one: Any, other: Any) -> Any:
        try:
            return test(one, other)
        except (TypeError, AttributeError):
            if one is None or other is None:
                return False
            raise

    return tested


def _equal_to(operation: str, constant: str | bytes) -> Callable[[Any], bool]:
    """Compare values with a text or with bytes. Raise TypeError for the other kind, which is never equal: a mistake."""
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
    """Apply a function to the result of another expression."""
    if first.operation == "value":
        return function
    return lambda item: function(first(item))


def _given(operand: Any) -> Callable[[Any], Any]:
    return operand if isinstance(operand, Expression) else lambda _: operand


def field_of(of: Any, name: str) -> Any:
    """The field of a value with this name, or the value of a mapping for this key."""
    return of[name] if isinstance(of, Mapping) else getattr(of, name)


_BY_ORDER: Final = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


_NO_CONDITIONS: Final = frozenset(["value", "upper", "lower", "strip", "length"])
"""Operations whose result is not a condition."""

_OPERATIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "not": operator.not_,
    "==": operator.eq,
    "!=": operator.ne,
    **{sign: _false_if_missing(compare) for sign, compare in _BY_ORDER.items()},
    "starts_with": _false_if_missing(lambda text, part: text.startswith(part)),
    "ends_with": _false_if_missing(lambda text, part: text.endswith(part)),
    "contains": _false_if_missing(operator.contains),
    "length": _unless_missing(len),
    "field": lambda of, name: None if of is None else field_of(of, name),
}


def _known(asked: Any, column: Column) -> "pa.BooleanArray | None":
    """The mask, if Arrow computes it exactly as Python would; None if each value must be tested."""
    import pyarrow.compute as pc  # noqa: PLC0415 - Arrow is not loaded when only compiling

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
    """The mask of two joined conditions."""
    import pyarrow.compute as pc  # noqa: PLC0415 - Arrow is not loaded when only compiling

    first = _known(one, column)
    if first is None:
        return None
    second = _known(other, column)
    if second is not None:
        return pc.and_(first, second) if joined == "and" else pc.or_(first, second)
    # Only on values for which the left condition does not decide: the right one may rely on it, as in a test of a
    # length before that of a character.
    undecided = first if joined == "and" else pc.invert(first)
    return pc.replace_with_mask(first, undecided, mask_of(other, column.where(undecided)))


def _of_lines(operation: str, text: Any, lines: Lines) -> "pa.BooleanArray | None":
    """The mask of a comparison of lines with a text, computed on bytes. Delimiters are no part of the lines."""
    import pyarrow.compute as pc  # noqa: PLC0415 - Arrow is not loaded when only compiling

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
        # A text with a byte of the delimiter could be found where the line ends, across the delimiter.
        case "contains" if not set(sought) & set(lines.delimiter):
            return pc.match_substring(lines.ended, sought)
    return None


def _beginning(operation: str, text: Any, delimiter: bytes) -> tuple[bytes, bool] | None:
    """Express a comparison as a prefix of the line with its delimiter, and whether lines must have it or not."""
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
    """The lines for which the expression is `wanted`, if it tests how lines begin; else None: a mask is needed.

    For `and`, only the left side must be such a test: the right side is evaluated on the lines that remain.
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
                kept = kept_by_beginning(column.ended, beginning, wanted=wanted == begin)
                return Lines(kept, column.delimiter, starts=lambda: _kept_starts(asked, column, wanted=wanted))
    return None


def _kept_starts(asked: Expression, column: Column, *, wanted: bool) -> Sequence[int] | None:
    """The positions of the values for which the expression is `wanted`."""
    import pyarrow.compute as pc  # noqa: PLC0415 - not loaded when only compiling

    mask = asked.mask(column)
    return kept_of(column.starts, mask if wanted else pc.invert(mask))


def _bytes_of(text: Any) -> bytes | None:
    """The text in UTF-8; None if it holds lone surrogates, which may be parts of other characters."""
    try:
        return text.encode() if isinstance(text, str) else None
    except UnicodeEncodeError:
        return None


def _of_array(operation: str, constant: Any, array: "pa.Array") -> "pa.BooleanArray | None":
    """The mask of a comparison with a constant, if Arrow compares both exactly as Python does; else None."""
    import pyarrow as pa  # noqa: PLC0415 - Arrow is not loaded when only compiling
    import pyarrow.compute as pc  # noqa: PLC0415

    # Arrow's result for a missing value is missing, and that of a test here is false.
    if array.null_count:
        return None
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        texts = {"starts_with": pc.starts_with, "ends_with": pc.ends_with, "contains": pc.match_substring}
        function = texts.get(operation, {"==": pc.equal, "!=": pc.not_equal}.get(operation))
        return None if function is None or _bytes_of(constant) is None else function(array, constant)
    function = COMPARISONS.get(operation)
    exact = isinstance(constant, int) and not isinstance(constant, bool) and abs(constant) <= EXACT
    whole, real = pa.types.is_signed_integer(array.type), pa.types.is_float64(array.type)
    comparable = (exact and (whole or real)) or (isinstance(constant, float) and real)
    if function is None or not comparable:
        return None
    return getattr(pc, function)(array, pa.scalar(constant, pa.float64() if real else pa.int64()))


COMPARISONS: Final = {
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
"""The functions of Arrow that compare."""
EXACT: Final = 2**53
"""Floats represent all integers up to this one exactly."""


value: Final = Expression("value")
"""The value under test: the value of a record, any other item as a whole."""
