"""Tables: every answer that lists rows filters, sorts and pages them here.

What was read of a chain is kept as text, so that a sort over 100,000 windows reads each of them once.
"""

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from heapq import nlargest, nsmallest
from itertools import islice
from threading import Lock
from time import monotonic
from typing import Any

from dagkit.console.run_folder import RunFolder
from dagkit.engine.record.history import Window, windows_between
from dagkit.ledger import Chain

Row = dict[str, Any]

_SEPARATOR = re.compile(r"(?<=\d),(?=\d{3})")
_WORD = re.compile(r'(?:"[^"]*"?|[^\s"])+')
_CONDITION = re.compile(r"([a-z_]+)([<>=])(.+)")
_FIRST_CHUNK, _CHUNK = 4, 128
"""How many blocks are read at a time, at first and at most."""


@dataclass(frozen=True)
class Asked:
    """The part of a table that a request asks for."""

    like: str = ""
    """Words, each of which a row has in one of its values. `seconds>10` is a condition on a column."""
    sort: str = ""
    """The column by which rows are sorted, after `-` if the largest come first; empty: as they are found."""
    after: int = 0
    """How many rows to leave out."""
    limit: int = 50

    @property
    def words(self) -> tuple[str, ...]:
        """The words, in lower case; quotes join some to one. The page shows 12,345 for the number 12345."""
        return tuple(word.replace('"', "") for word in _WORD.findall(_SEPARATOR.sub("", self.like).lower()))


def page_of(rows: Iterable[Row | str], asked: Asked) -> Row:
    """A page of rows, each given as it is or as JSON; `next` is the next `after`; `total` is None if it is unknown."""
    chosen, end = _Counted(_chosen(rows, asked.words)), asked.after + asked.limit
    if asked.sort:
        is_down, column = asked.sort.startswith("-"), asked.sort.removeprefix("-")
        # A heap holds the rows up to the end of the page; a sort would hold all of them.
        best = nlargest if is_down else nsmallest
        found = best(end + 1, chosen, key=lambda row: _key(row.get(column), 0 if is_down else 3))
    else:
        found = list(islice(chosen, end + 1))
        if isinstance(rows, Sequence):  # it is in memory, so counting the rest reads nothing
            deque(chosen, 0)
    is_whole = bool(asked.sort) or len(found) <= end or isinstance(rows, Sequence)
    rest = end if len(found) > end else None
    return {"rows": found[asked.after : end], "next": rest, "total": chosen.number if is_whole else None}


class _Counted(Iterator[Row]):
    """Counts what it passes on."""

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows = rows
        self.number = 0

    def __next__(self) -> Row:
        row = next(self._rows)
        self.number += 1
        return row


def _chosen(rows: Iterable[Row | str], words: tuple[str, ...]) -> Iterator[Row]:
    """The rows that have all words."""
    conditions = [found.groups() for word in words if (found := _CONDITION.fullmatch(word))]
    plain = [word for word in words if not _CONDITION.fullmatch(word)]
    for row in rows:
        if isinstance(row, str):
            if any(word not in row.lower() for word in plain):  # without reading it
                continue
            row = json.loads(row)  # noqa: PLW2901 - the row as it is
        text = " ".join(_texts(row)).lower() if plain else ""
        if all(word in text for word in plain) and all(_holds(row, *condition) for condition in conditions):
            yield row


def _texts(value: object) -> Iterator[str]:
    """The values of a row as text, without the names of columns."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)
    elif value is not None:
        yield str(value)


def _holds(row: Row, column: str, comparison: str, text: str) -> bool:
    """Whether a column of a row is larger or smaller than a number, or equal to a text."""
    if comparison == "=":
        return str(row.get(column)).lower() == text
    kind, value = _key(row.get(column), 0)
    try:
        bound = float(text)
    except ValueError:
        return False
    return kind == 1 and (value > bound if comparison == ">" else value < bound)


def _key(value: object, nothing: int) -> tuple[int, Any]:
    """The key by which a value is sorted: numbers before texts; amounts by unit and lists by what they hold."""
    match value:
        case None:
            return (nothing, 0)
        case bool() | int() | float():
            return (1, value)
        case Mapping():
            return (1, sum(each for each in value.values() if isinstance(each, int | float)))
        case list() | tuple():
            return (1, len(value))
        case _:
            return (2, str(value))


LOOK_SECONDS = 0.4
"""How long one answer reads windows; the next one continues."""
MOST_KEPT = 1 << 17
"""The highest number of rows that are kept. The windows before them are not looked at."""


@dataclass
class ChainRows:
    """The rows of a table from the blocks of a chain, newest first: kept, and read further back as answers need it."""

    chain: Callable[[], AbstractContextManager[Chain | None]]
    rows_in: Callable[[Chain, int, int], Iterable[tuple[int, Iterable[Row]]]]
    """The numbers of blocks, from one to another, with their rows."""
    _lock: Lock = field(default_factory=Lock)
    _kept: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """The rows of the blocks from `_first` to `_last`."""
    _first: int = 0
    _last: int = -1
    _number: int = 0
    _is_cut: bool = False
    """Whether the last answer ended because its time was over."""

    def page(self, asked: Asked) -> Row:
        """A page. `looked` is how many blocks it is chosen from, of how many; if it `continues`, ask again for more."""
        with self._lock:
            self._forward()
            page = page_of(self._rows(monotonic() + LOOK_SECONDS), asked)
            looked = {"blocks": self._last - self._first + 1, "of": self._last + 1}
            total = page["total"] if self._first == 0 else None
            return {**page, "total": total, "looked": looked, "continues": self._is_cut}

    def _rows(self, until: float) -> Iterator[str]:
        """The rows, newest first; read older windows until the time is over."""
        block, number, self._is_cut = self._last, _FIRST_CHUNK, False
        while True:
            while block >= self._first:
                yield from self._kept.get(block, ())
                block -= 1
            if self._first <= 0 or self._number >= MOST_KEPT:
                return
            if monotonic() >= until:
                self._is_cut = True
                return
            first = max(0, self._first - number)
            self._read(first, self._first - 1)
            # Doubled, so that the first page reads few blocks, and a sort over all of them needs few reads.
            self._first, number = first, min(_CHUNK, 2 * number)

    def _forward(self) -> None:
        """Read the blocks that were added since; if they are many, begin again with the newest."""
        with self.chain() as chain:
            head = -1 if chain is None else chain.head.seq
        # A restart makes a chain shorter. Many new blocks are left to `_rows`, which reads as far back as a page needs.
        if head < self._last or head - self._last > _CHUNK:
            self._kept, self._first, self._number = {}, head + 1, 0
        else:
            self._read(self._last + 1, head)
        self._last = head

    def _read(self, first: int, last: int) -> None:
        """Keep the rows of these blocks."""
        # The folder is locked for one chunk only, so that other answers pass between two.
        with self.chain() as chain:
            for block, found in self.rows_in(chain, first, last) if chain is not None and first <= last else ():
                # Words of a search are compared with this text, so other characters must not be escapes.
                rows = tuple(json.dumps(row, ensure_ascii=False) for row in found)
                if rows:
                    self._kept[block] = rows
                    self._number += len(rows)


def table_of_windows(folder: RunFolder, rows_of: Callable[[Window], Iterable[Row]]) -> ChainRows:
    """The table of the rows of windows."""

    def rows_in(chain: Chain, first: int, last: int) -> Iterator[tuple[int, Iterable[Row]]]:
        for window in windows_between(chain, first, last):
            yield window.record.seq, rows_of(window)

    return ChainRows(folder.windows, rows_in)
