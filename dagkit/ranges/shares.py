"""Shares of an element whose restriction is no range of offsets: the integers that stand for its work in a ledger."""

from typing import Final

SHARES: Final = 2**62
"""How many an element has."""


def percent(share: int) -> str:
    """`25.0 %` of an element; what is not the whole is not rounded up to it."""
    return f"{share * 1000 // SHARES / 10} %"


def share_of(place: int | None, *, is_shares: bool) -> float | None:
    """The part of an element, from 0 to 1; None of positions."""
    return place / SHARES if is_shares and place is not None else None
