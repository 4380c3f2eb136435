"""A message of a queue, as a broker delivers it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class QueueMessage:
    """A message of a queue."""

    id: str
    """What its sender calls it; without that, a digest of its body and its properties."""
    body: bytes
    headers: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The body as text. Raise ValueError if it is not UTF-8."""
        return self.body.decode()


def message_of(delivered: Any) -> QueueMessage:
    """A message of kombu."""
    body = delivered.body
    content = body if isinstance(body, bytes) else str(body).encode()
    properties = delivered.properties or {}
    headers = {str(name): _plain(value) for name, value in (delivered.headers or {}).items()}
    name = properties.get("message_id") or headers.get("id")
    if not name:
        known = sorted((key, str(properties[key])) for key in ("correlation_id", "timestamp") if key in properties)
        name = blake2b(repr((content, sorted(headers.items()), known)).encode(), digest_size=16).hexdigest()
    return QueueMessage(str(name), content, headers)


def _plain(value: Any) -> JsonValue:
    return value if isinstance(value, str | int | float | bool | None) else str(value)
