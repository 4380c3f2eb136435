"""The libraries compiled from the C here when dagkit was built; absent if there was no compiler."""

import ctypes
import zlib
from collections.abc import Callable
from ctypes import c_char_p, c_int32, c_int64, c_uint8, c_uint32, c_void_p
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dagkit.ground.native_libraries import content_of, library_at, other_platform, own_platform

SOURCE = Path(__file__).with_name("bytewise.c")
LIBRARY = Path(__file__).with_name("libbytewise.so")
JSON_SOURCE = Path(__file__).with_name("json_members.c")
JSON_LIBRARY = Path(__file__).with_name("libjson_members.so")
KAFKA_SOURCE = Path(__file__).with_name("kafka_columns.c")
KAFKA_LIBRARY = Path(__file__).with_name("libkafka_columns.so")


@dataclass(frozen=True, slots=True)
class Compiled:
    """The functions of `bytewise.c`. The caller keeps the memory behind each address alive until they return."""

    path: str
    ends: Callable[..., int] | None
    """None on processors on which numpy is faster."""
    beginning: Callable[..., int]


def about() -> str:
    """The line that `dagkit --version` prints about this library."""
    found = compiled()
    if found is None:
        other = other_platform(LIBRARY)
        return f"byte scanning: numpy ({_for(other) if other else 'this version has no compiled C'})"
    return "byte scanning: compiled C" if found.ends is not None else "byte scanning: compiled C, for lines numpy"


def _for(other: str) -> str:
    return f"the compiled C is for {other}, and this is {own_platform()}"


@cache
def compiled(path: Path = LIBRARY) -> Compiled | None:
    """The functions of `bytewise.c`; None unless a library of them loads here and was compiled from the C here."""
    library = _loaded(path, SOURCE)
    beginning = getattr(library, "dagkit_beginning", None)
    if beginning is None:
        return None
    ends = getattr(library, "dagkit_ends", None)
    if ends is not None:
        ends.argtypes = c_void_p, c_int64, c_uint8, c_void_p, c_int64
        ends.restype = c_int64
    beginning.argtypes = c_void_p, c_void_p, c_int64, c_char_p, c_int32, c_int32, c_void_p, c_void_p
    beginning.restype = c_int64
    return Compiled(str(path), ends, beginning)


@cache
def json_members(path: Path = JSON_LIBRARY) -> ctypes.CDLL | None:
    """The same for `json_members.c`."""
    library = _loaded(path, JSON_SOURCE)
    if library is not None:
        library.dagkit_members.argtypes = c_void_p, c_int64, c_int64, c_void_p, c_int64, c_void_p
        library.dagkit_members.restype = c_int32
        library.dagkit_others.argtypes = c_void_p, c_int64, c_void_p, c_int64, c_void_p
        library.dagkit_others.restype = c_int32
    return library


@cache
def kafka_columns(path: Path = KAFKA_LIBRARY) -> ctypes.CDLL | None:
    """The same for `kafka_columns.c`."""
    library = _loaded(path, KAFKA_SOURCE)
    if library is not None:
        address, number = c_void_p, c_int64
        library.dagkit_take.argtypes = address, address, c_int32, address, address, number
        library.dagkit_take.restype = number
        library.dagkit_release.argtypes = address, address, number
        library.dagkit_release.restype = None
        library.dagkit_messages.argtypes = address, address, number, address
        library.dagkit_messages.restype = number
        library.dagkit_columns.argtypes = address, address, number, *[address] * 4
        library.dagkit_columns.restype = None
        library.dagkit_send.argtypes = address, address, address, number, number, *[address] * 4
        library.dagkit_send.restype = number
    return library


def _loaded(path: Path, source: Path) -> ctypes.CDLL | None:
    """A library; None unless it loads on this machine and was compiled from this source."""
    try:
        library = library_at(path)
        known = c_uint32.in_dll(library, "dagkit_source").value
        return library if known == zlib.crc32(content_of(source)) else None
    except (OSError, ValueError):
        return None
