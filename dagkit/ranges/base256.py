"""Byte strings as numbers between 0 and 1: each byte is a digit to the base 256, behind the point.

So trailing NULs change nothing, and the end of all strings, None here, is 1. Integers carry the arithmetic, which makes
it exact at any length.
"""

DIGITS_OF_A_FLOAT = 53


def number(key: bytes | None, length: int) -> int:
    """The key as an integer of so many digits; what does not fit is cut off."""
    return 1 << 8 * length if key is None else int.from_bytes(key[:length].ljust(length, b"\0"), "big")


def numbers(*keys: bytes | None) -> tuple[int, ...]:
    """The keys as integers of as many digits as the longest has."""
    length = max(len(key or b"") for key in keys)
    return tuple(number(key, length) for key in keys)


def share(whole: int, fraction: float) -> int:
    """So much of a whole, rounded down, for wholes beyond any float."""
    numerator, denominator = fraction.as_integer_ratio()
    return whole * numerator // denominator


def fraction_between(key: bytes, start: bytes, stop: bytes | None) -> float:
    """What part of the way from start to stop lies before the key; 0 where there is no way to go."""
    low, at, high = numbers(start, key, stop)
    return 0.0 if low == high else (at - low) / (high - low)
