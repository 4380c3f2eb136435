"""What was compiled of `bytewise.c` where dagkit was built; nothing where there was no compiler."""

import ctypes
import zlib
from collections.abc import Callable
from ctypes import c_char_p, c_int32, c_int64, c_uint8, c_uint32, c_void_p
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).with_name("bytewise.c")
LIBRARY = Path(__file__).with_name("libbytewise.so")


@dataclass(frozen=True, slots=True)
class Compiled:
    """The functions of `bytewise.c`; addresses that they are given must stay good until they return."""

    path: str
    ends: Callable[..., int] | None
    """None for processors on which numpy is faster."""
    beginning: Callable[..., int]


def about() -> str:
    """What `dagkit --version` tells of this library."""
    found = compiled()
    if found is None:
        return "bytes are looked at by numpy, for there is no compiled C of this version"
    return "bytes are looked at in C" if found.ends is not None else "bytes are looked at in C, and for lines by numpy"


@cache
def compiled() -> Compiled | None:
    """What this installation of dagkit has."""
    return opened(LIBRARY)


def opened(path: Path) -> Compiled | None:
    """The functions of a library, if it is for this machine, and was compiled of the very text that stands here."""
    try:
        library = ctypes.CDLL(str(path))
        known = c_uint32.in_dll(library, "dagkit_source").value
        if known != zlib.crc32(SOURCE.read_bytes()):
            return None
        beginning = library.dagkit_beginning
    except (OSError, ValueError, AttributeError):
        return None
    ends = getattr(library, "dagkit_ends", None)
    if ends is not None:
        ends.argtypes = c_void_p, c_int64, c_uint8, c_void_p, c_int64
        ends.restype = c_int64
    beginning.argtypes = c_void_p, c_void_p, c_int64, c_char_p, c_int32, c_int32, c_void_p, c_void_p
    beginning.restype = c_int64
    return Compiled(str(path), ends, beginning)
