"""The files that a scan found, as bytes: smaller than tuples, and sorted by time of change, then by path."""

import struct
from bisect import bisect_left
from collections.abc import Sequence

from dagkit_operators.filesystem.access import Found
from dagkit_operators.filesystem.settled import COARSE_TICK_MILLIS, settles_in_millis

_TIME = struct.Struct(">Q")
_EPOCH = 1 << 63
"""Added to times before they are packed, so that those before 1970 come first."""
_MARK = b"\0"
"""Precedes the length and the version of an object; paths do not contain it."""


def packed(found: Found) -> bytes:
    """A file as bytes. Its length is left out unless it has a version."""
    path = _TIME.pack(found[2] + _EPOCH) + found[0].encode()  # by index: it is done for each file
    return path if not found[3] else b"%b\0%d\0%b" % (path, found[1], found[3].encode())


def unpacked(content: bytes) -> Found:
    """The file; its length is -1 unless it has a version."""
    path, _, rest = content[_TIME.size :].partition(_MARK)
    length, _, version = rest.partition(_MARK)
    return Found(path.decode(), int(length) if version else -1, _time_in(content), version.decode())


def settle_in_millis(found: Sequence[bytes], now_millis: int) -> int:
    """How long to wait until all these files, which are sorted, are settled: see `settles_in_millis`."""
    first, last = (
        bisect_left(found, _TIME.pack(now_millis + distance + _EPOCH))
        for distance in (-COARSE_TICK_MILLIS, COARSE_TICK_MILLIS)
    )
    return max((settles_in_millis(unpacked(content), now_millis) for content in found[first:last]), default=0)


def _time_in(content: bytes) -> int:
    (time,) = _TIME.unpack_from(content)
    return int(time) - _EPOCH
