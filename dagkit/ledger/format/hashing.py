"""Canonical JSON, and hashes in the notation of the Open Data Fabric."""

import hashlib
import json
from typing import Annotated, Any

from pydantic import StringConstraints

SHA3_256 = "f1620"
"""Base16, multicodec sha3-256, 32 bytes."""

Multihash = Annotated[str, StringConstraints(pattern=r"^f1620[0-9a-f]{64}$")]
"""A hash that names its own algorithm."""


def hash_of(content: bytes) -> Multihash:
    """The hash of these bytes, by which they are named."""
    return SHA3_256 + hashlib.sha3_256(content).hexdigest()


def read_json(text: bytes | str) -> Any:
    """Parse JSON; raise `ValueError` also for NaN, duplicate keys and nesting that is too deep."""
    try:
        return _decode(text.decode() if isinstance(text, bytes) else text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not valid JSON")


def _without_duplicates(members: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(members)
    # Parsers differ in which of two they keep, so one text would have two meanings.
    if len(unique) != len(members):
        raise ValueError("it has a duplicate key")
    return unique


_decode = json.JSONDecoder(parse_constant=_no_number, object_pairs_hook=_without_duplicates).decode
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")).encode


def canonical(value: Any) -> str:
    """The one JSON text of `value`: keys sorted, no spaces, so that equal values have equal hashes."""
    try:
        return _encode(value)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
