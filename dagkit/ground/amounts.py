"""Amounts and tables as text for people."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

BYTE: Final = "byte"
"""The unit of positions that are those of bytes."""


def in_bytes(count: float) -> str:
    """A number of bytes in readable form: `512 B`, `1.5 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def in_units(amounts: Mapping[str, float]) -> str:
    """Amounts by their unit in readable form: `1.5 MB`, `1,234 offsets`, `1.5 MB and 1 key`; `0 B` for none."""
    shown = [
        in_bytes(count) if unit == BYTE else counted(round(count), unit) for unit, count in sorted(amounts.items())
    ]
    return " and ".join(shown) or in_bytes(0)


def with_amounts(what: str, amounts: Mapping[str, float]) -> str:
    """Something with its amounts: `3 elements, 1.5 MB`; alone if there are none, as of work without an end."""
    return f"{what}, {in_units(amounts)}" if amounts else what


def in_time(seconds: float) -> str:
    """A time in readable form: `12 s`, `3 min 20 s`, `2 h 5 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def part_done(fraction: float) -> str:
    """The part of unfinished work that is done: `67%`, at most `99%`."""
    # a slot has read all of its input before it has processed the last items, and 99.6 % would be rounded up
    return f"{min(round(fraction * 100), 99)}%"


def counted(count: int, noun: str) -> str:
    """`1 stage`, `2,000 stages`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def some_of(values: Sequence[T], most: int, *, text: Callable[[T], str] = str, more: str = "more") -> list[str]:
    """The texts of the first values, then `and 7 more` if there are more than `most`."""
    rest = len(values) - most
    return [*map(text, values[:most]), *([f"and {rest} {more}"] if rest > 0 else [])]


def what_was_read(amounts: Mapping[str, int], items: int, *, of_items: str = "read") -> str:
    """The positions that were read: `1.5 MB read`; or, without any, what was done with items: `1,234 items read`;
    or `nothing read`.
    """
    if not any(amounts.values()):
        return f"{counted(items, 'item')} {of_items}" if items else "nothing read"
    return f"{in_units(amounts)} read"


def what_was_written(size: int, files: int) -> str:
    """The bytes written, and the files that were completed: `1.5 MB written to 2 files`, `nothing written`.

    An earlier launch may have written what a file holds.
    """
    if not size:
        return "nothing written" + (f", {counted(files, 'file')} completed" if files else "")
    return f"{in_bytes(size)} written" + (f" to {counted(files, 'file')}" if files else "")


def aligned(rows: Iterable[Sequence[str]], *, to_right: bool = False) -> str:
    """Rows as text in columns; `to_right` aligns all but the first of them to the right."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    pad = str.rjust if to_right else str.ljust
    return "\n".join("  ".join([row[0].ljust(widths[0]), *map(pad, row[1:], widths[1:])]).rstrip() for row in rows)
