"""Routing codes: a number for a key, equal for equal keys on every machine and in every run."""

import dataclasses
import struct
import zlib
from collections.abc import Sequence
from enum import Enum
from typing import Any


class NoRoutingCode(TypeError):
    """The value has no code that would be the same in another process."""


def routing_code(key: Any) -> int:
    """The code of a key: a whole number is its own, text has a checksum, and what is made of parts combines theirs."""
    if isinstance(key, Enum):
        return routing_code(key.value)
    if isinstance(key, int):
        return int(key)
    if isinstance(key, str):
        return zlib.crc32(key.encode("utf-8", "surrogatepass"))
    if isinstance(key, bytes | bytearray | memoryview):
        return zlib.crc32(key)
    if isinstance(key, float):
        return zlib.crc32(struct.pack("<d", key))
    if key is None:
        return 0
    if isinstance(key, tuple | list):
        return _combined(key)
    if dataclasses.is_dataclass(key) and not isinstance(key, type):
        return _combined([getattr(key, field.name) for field in dataclasses.fields(key)])
    raise NoRoutingCode(
        f"{type(key).__name__} has no routing code that another process would agree on; "
        "declare the input with key=, or set a STREAM_CODEC"
    )


def _combined(parts: Any) -> int:
    code = 1
    for part in parts:
        code = (31 * code + routing_code(part)) & 0xFFFFFFFF
    return code


def routing_codes(keys: Sequence[Any]) -> list[int]:
    """The codes of many keys; texts, which are most of them, without a call for each."""
    if all(type(key) is str for key in keys):
        crc = zlib.crc32
        return [crc(key.encode("utf-8", "surrogatepass")) for key in keys]
    return [routing_code(key) for key in keys]
