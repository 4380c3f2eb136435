"""Names of contents: canonical JSON, and hashes as the Open Data Fabric writes them."""

import hashlib
import json
from typing import Annotated, Any

from pydantic import StringConstraints

SHA3_256 = "f1620"
"""Base16, multicodec sha3-256, 32 bytes."""

Multihash = Annotated[str, StringConstraints(pattern=r"^f1620[0-9a-f]{64}$")]
"""A hash that says how it was made."""


def hash_of(content: bytes) -> Multihash:
    """The name of these very bytes."""
    return SHA3_256 + hashlib.sha3_256(content).hexdigest()


def read_json(text: bytes | str) -> Any:
    """The one value that the text says, or `ValueError`: also for NaN, a name said twice, and nesting without end."""
    try:
        return _decode(text.decode() if isinstance(text, bytes) else text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _each_name_once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) != len(members):
        raise ValueError("a name is said twice")
    return found


_decode = json.JSONDecoder(parse_constant=_no_number, object_pairs_hook=_each_name_once).decode
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")).encode


def canonical(value: Any) -> str:
    """The only JSON text that says `value`: keys sorted, no blanks, so that equal values have equal hashes."""
    try:
        return _encode(value)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
