"""Statements about files: checksums and totals in files beside them, and totals in their own last lines."""

import csv
import hashlib
import re
from collections import deque
from collections.abc import Iterable, Iterator
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveInt, field_validator, model_validator

from dagkit.ground.patterns import HELP, groups_of, named_groups, refusal
from dagkit.ground.urls import plain
from dagkit_operators.compression.codec import CompressionBroken
from dagkit_operators.filesystem.access import Found
from dagkit_operators.finding.contents import bytes_of_file, content_of_file, hash_of

ALGORITHMS = ("md5", "sha1", "sha256", "sha512")
"""The algorithms of checksum files, as their names end."""
_LONGEST = 1 << 20
"""The most bytes read of a checksum or control file."""
_MOST_DIGITS = 30
"""The digits that are read of a total. No file has so many bytes or rows, so that more digits change nothing."""
_TOTAL = re.compile(r"^\s*(rows|bytes)\s*[=:]\s*(\d+)\s*$", re.IGNORECASE | re.MULTILINE)


class Stated(NamedTuple):
    """The checksum or the totals of a file as another file states them; None or empty if it states none."""

    checksum: str | None = None
    totals: tuple[tuple[str, int], ...] = ()


def stated_checksum(control: Found, found: Found) -> Stated | None:
    """The checksum that a file in the format of md5sum states for another; None if it states none, or not all of it."""
    length = hashlib.new(_algorithm(control), usedforsecurity=False).digest_size * 2
    for line in _text(control).splitlines():
        checksum, _, name = line.strip().partition(" ")
        # An asterisk marks a file that md5sum has read in binary mode.
        name = name.lstrip(" *").rpartition("/")[2]
        # A checksum file for a single file may leave out its name.
        if name in ("", name_of(found.path)) and re.fullmatch(rf"[0-9a-fA-F]{{{length}}}", checksum):
            return Stated(checksum.lower())
    return None


def stated_totals(control: Found) -> Stated | None:
    """The totals in a file of lines such as `rows=3` or `bytes: 12`; None if it states none."""
    found = _TOTAL.findall(_text(control))
    totals = tuple((str(name).lower(), int(number.lstrip("0")[:_MOST_DIGITS] or 0)) for name, number in found)
    return Stated(totals=totals) if totals else None


def contradiction(found: Found, control: Found, stated: Stated) -> str | None:
    """Why a file contradicts a statement about it; None if it agrees. It reads the file for a checksum or for rows."""
    if stated.checksum is not None:
        checksum = hash_of(found, _algorithm(control))
        if checksum != stated.checksum:
            return f"{_algorithm(control)} is {checksum}, and {name_of(control.path)} states {stated.checksum}"
    for name, number in stated.totals:
        try:
            actual = found.length if name == "bytes" else _rows(found)
        except CompressionBroken as error:
            return f"its rows cannot be counted: {error.problem}"
        if actual != number:
            return f"it has {actual} {name}, and {name_of(control.path)} states {number}"
    return None


def _algorithm(control: Found) -> str:
    return name_of(control.path).rpartition(".")[2].lower()


def name_of(path: str) -> str:
    """The name of a file without its folder."""
    return plain(path).rpartition("/")[2]


def _text(control: Found) -> str:
    content = b""
    for chunk in bytes_of_file(control):
        content += chunk
        if len(content) > _LONGEST:
            break
    return content.decode("utf-8-sig", "replace")


def _rows(found: Found) -> int:
    """The lines of the content. The last one needs no newline."""
    rows, last = 0, b"\n"
    for chunk in content_of_file(found):
        rows += chunk.count(b"\n")
        last = chunk[-1:]
    return rows + (last != b"\n")


TOTALS = frozenset({"rows", "sum"})
"""The totals that a trailer can state."""
_LONGEST_LINE = 1 << 20
"""The most bytes of a line that are kept."""
# The sum must be exact. Rounded, a file could agree with a wrong total.
_DIGITS = 60
_EXACT = Context(prec=_DIGITS, traps=[Inexact])


class Trailer(BaseModel):
    """How the last line of a file states the totals of the lines before it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pattern: str
    """A pattern that the whole last line matches, with the groups `rows`, `sum` or both: `END,(?P<rows>\\d+)`."""
    header_lines: NonNegativeInt = 0
    """How many lines at the beginning of a file are no rows."""
    sum_column: PositiveInt | None = None
    """The column, from 1 on, whose numbers have the stated sum."""
    delimiter: str = ","
    """The character between two columns. A column may be in double quotes."""

    @field_validator("pattern")
    @classmethod
    def _states_totals(cls, pattern: str) -> str:
        why_not = refusal(pattern)
        if why_not is not None:
            raise ValueError(f"it is no regular expression: {why_not}; {HELP}")
        names = named_groups(pattern)
        if not names or names - TOTALS:
            raise ValueError("its named groups are not `rows`, `sum` or both; write END,(?P<rows>[0-9]+)")
        return pattern

    @field_validator("delimiter")
    @classmethod
    def _is_one_character(cls, delimiter: str) -> str:
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise ValueError("it is no single character that may stand between two columns")
        return delimiter

    @model_validator(mode="after")
    def _has_a_column_for_the_sum(self) -> "Trailer":
        if ("sum" in named_groups(self.pattern)) != (self.sum_column is not None):
            raise ValueError("set sum_column exactly if the pattern has a group named `sum`")
        return self

    def contradiction(self, found: Found) -> str | None:
        """Why a file contradicts its trailer; None if it agrees. Raise TrailerMissing if it has none."""
        try:
            lines = _Lines(content_of_file(found))
            total = None if self.sum_column is None else self._sum_of(lines)
            if total is None:
                deque(lines, maxlen=0)  # reads to the last line
        except (CompressionBroken, _NoNumber) as error:
            return f"its totals cannot be computed: {error}"
        stated = groups_of(self.pattern, lines.last.decode("utf-8", "replace"))
        if stated is None:
            raise TrailerMissing
        rows = max(0, lines.before_last - self.header_lines)
        if "rows" in stated and _number(stated["rows"]) != rows:
            return f"it has {rows} rows, and its last line states {stated['rows']}"
        if "sum" in stated and _number(stated["sum"]) != total:
            return f"column {self.sum_column} has the sum {total}, and its last line states {stated['sum']}"
        return None

    def _sum_of(self, lines: "_Lines") -> Decimal:
        """The sum of the column in all lines before the last one."""
        assert self.sum_column is not None, "a sum has a column"
        total = Decimal(0)
        for number, line in enumerate(lines, start=1):
            if number <= self.header_lines:
                continue
            text = line.decode("utf-8", "replace")
            try:
                columns = next(csv.reader([text], delimiter=self.delimiter), [])
            except csv.Error as error:
                raise _NoNumber(f"line {number} has no columns: {error}") from error
            value = _number(columns[self.sum_column - 1]) if len(columns) >= self.sum_column else None
            if value is None:
                raise _NoNumber(f"line {number} has no number in column {self.sum_column}")
            try:
                total = _EXACT.add(total, value)
            except Inexact as error:
                raise _NoNumber(f"the sum to line {number} has more than {_DIGITS} digits") from error
        return total


class TrailerMissing(Exception):
    """The last line of a file is no trailer, so that the file may still be written."""


class _NoNumber(ValueError):
    """A line has no number where one is expected."""


class _Lines:
    """Iterates over the lines of a content before its last one, and then knows that one."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self.before_last = 0
        """How many lines come before the last one, so far."""
        self.last = b""
        """The last line, at most its last `_LONGEST_LINE` bytes, without its end."""

    def __iter__(self) -> Iterator[bytes]:
        line: bytes | None = None
        for following in self._split():
            if line is not None:
                self.before_last += 1
                yield line
            line = following
        self.last = b"" if line is None else line

    def _split(self) -> Iterator[bytes]:
        rest = b""
        for chunk in self._chunks:
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (line.removesuffix(b"\r") for line in lines)
            rest = rest[-_LONGEST_LINE:]
        if rest:
            yield rest.removesuffix(b"\r")


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
