"""Amounts as text for people."""

from collections.abc import Mapping
from typing import Final

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
    shown = [in_bytes(count) if unit == BYTE else _of_unit(count, unit) for unit, count in sorted(amounts.items())]
    return " and ".join(shown) or in_bytes(0)


def _of_unit(count: float, unit: str) -> str:
    number = f"{count:,.0f}"
    return f"{number} {unit}{'' if number == '1' else 's'}"


def in_time(seconds: float) -> str:
    """A time in readable form: `12 s`, `3 min 20 s`, `2 h 5 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def counted(count: int, noun: str) -> str:
    """`1 stage`, `2 stages`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
