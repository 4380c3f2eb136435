"""Files beside a file that state its checksum or its totals, and whether the file agrees with them."""

import hashlib
import re
from typing import NamedTuple

from dagkit.ground.urls import plain
from dagkit_operators.compression.codec import CompressionBroken
from dagkit_operators.filesystem.access import Found
from dagkit_operators.finding.contents import bytes_of_file, content_of_file

ALGORITHMS = ("md5", "sha1", "sha256", "sha512")
"""The algorithms of checksum files, as their names end."""
_LONGEST = 1 << 20
"""The most bytes read of a checksum or control file."""
_MOST_DIGITS = 30
"""The digits that are read of a total. No file has so many bytes or rows, so that more digits change nothing."""
_TOTAL = re.compile(r"^\s*(rows|bytes)\s*[=:]\s*(\d+)\s*$", re.IGNORECASE | re.MULTILINE)


class Stated(NamedTuple):
    """What a checksum or control file states about a file. What is None or missing is not stated."""

    checksum: str | None = None
    totals: tuple[tuple[str, int], ...] = ()


def stated_checksum(control: Found, found: Found) -> Stated | None:
    """The checksum that a file in the format of md5sum states for another; None if it states none, or not all of it."""
    length = hashlib.new(_algorithm(control), usedforsecurity=False).digest_size * 2
    for line in _text(control).splitlines():
        checksum, _, name = line.strip().partition(" ")
        name = name.lstrip(" *").rpartition("/")[2]
        if name in ("", _name(found)) and re.fullmatch(rf"[0-9a-fA-F]{{{length}}}", checksum):
            return Stated(checksum.lower())
    return None


def stated_totals(control: Found) -> Stated | None:
    """The totals in a file of lines such as `rows=3` or `bytes: 12`; None if it states none."""
    found = _TOTAL.findall(_text(control))
    totals = tuple((str(name).lower(), int(number.lstrip("0")[:_MOST_DIGITS] or 0)) for name, number in found)
    return Stated(totals=totals) if totals else None


def contradiction(found: Found, control: Found, stated: Stated) -> str | None:
    """Why a file contradicts what is stated about it; None if it agrees. The bytes and rows are read if need be."""
    if stated.checksum is not None:
        checksum = _checksum(found, _algorithm(control))
        if checksum != stated.checksum:
            return f"{_algorithm(control)} is {checksum}, and {_name(control)} states {stated.checksum}"
    for name, number in stated.totals:
        try:
            actual = found.length if name == "bytes" else _rows(found)
        except CompressionBroken as error:
            return f"its rows cannot be counted: {error.problem}"
        if actual != number:
            return f"it has {actual} {name}, and {_name(control)} states {number}"
    return None


def _algorithm(control: Found) -> str:
    return _name(control).rpartition(".")[2].lower()


def _name(found: Found) -> str:
    return plain(found.path).rpartition("/")[2]


def _text(control: Found) -> str:
    content = b""
    for chunk in bytes_of_file(control):
        content += chunk
        if len(content) > _LONGEST:
            break
    return content.decode("utf-8-sig", "replace")


def _checksum(found: Found, algorithm: str) -> str:
    digest = hashlib.new(algorithm, usedforsecurity=False)
    for chunk in bytes_of_file(found):
        digest.update(chunk)
    return digest.hexdigest()


def _rows(found: Found) -> int:
    """The lines of the content. The last one needs no newline."""
    rows, last = 0, b"\n"
    for chunk in content_of_file(found):
        rows += chunk.count(b"\n")
        last = chunk[-1:]
    return rows + (last != b"\n")
