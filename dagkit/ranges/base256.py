"""Byte strings as numbers between 0 and 1: each byte is a digit to the base 256 after the point.

Therefore trailing NULs do not change the number, and the end of all strings, None here, is 1. The arithmetic uses
integers, so it is exact at any length.
"""

DIGITS_OF_A_FLOAT = 53
"""The number of binary digits in the mantissa of a float."""


def number(key: bytes | None, length: int) -> int:
    """The key as an integer of `length` digits; further bytes are cut off."""
    return 1 << 8 * length if key is None else int.from_bytes(key[:length].ljust(length, b"\0"), "big")


def numbers(*keys: bytes | None) -> tuple[int, ...]:
    """The keys as integers with the number of digits of the longest key."""
    length = max(len(key or b"") for key in keys)
    return tuple(number(key, length) for key in keys)


def share(whole: int, fraction: float) -> int:
    """A fraction of a whole, rounded down. Exact for integers that no float can hold."""
    numerator, denominator = fraction.as_integer_ratio()
    return whole * numerator // denominator


def fraction_between(key: bytes, start: bytes, stop: bytes | None) -> float:
    """The fraction of the distance from start to stop that lies before the key; 0 if there is no distance."""
    low, at, high = numbers(start, key, stop)
    return 0.0 if low == high else (at - low) / (high - low)
