"""Messages of a queue, as a broker delivers them: those with an ID, and those that get one here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class QueueMessage:
    """A message of a queue."""

    id: str
    """What its sender calls it; without that, a digest of its content and a number."""
    body: bytes
    headers: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The body as text. Raise ValueError if it is not UTF-8."""
        return self.body.decode()


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """A message as a connection received it."""

    message: QueueMessage
    is_named: bool
    """Whether its sender or its transport gave it an ID."""
    is_redelivered: bool
    """Whether the broker has delivered it before."""
    received: Any
    """The message of kombu, which is acknowledged."""

    @classmethod
    def of(cls, received: Any) -> "Delivery":
        body = received.body
        content = body if isinstance(body, bytes) else str(body).encode()
        properties = received.properties or {}
        headers = {str(name): _plain(value) for name, value in (received.headers or {}).items()}
        # The transports that kombu emulates give each message a tag, which stays when it is delivered again.
        name = properties.get("message_id") or headers.get("id") or properties.get("delivery_tag")
        redelivered = bool((received.delivery_info or {}).get("redelivered"))
        message = QueueMessage(str(name or _digest(content, headers, properties)), content, headers)
        return cls(message, bool(name), redelivered, received)


def _digest(content: bytes, headers: Mapping[str, JsonValue], properties: Mapping[str, Any]) -> str:
    known = sorted((key, str(properties[key])) for key in ("correlation_id", "timestamp") if key in properties)
    return blake2b(repr((content, sorted(headers.items()), known)).encode(), digest_size=16).hexdigest()


def _plain(value: Any) -> JsonValue:
    return value if isinstance(value, str | int | float | bool | None) else str(value)


class Unnamed(NamedTuple):
    """The ID that the input gives to a message without one."""

    digest: str
    """The digest of its content."""
    number: int

    @property
    def id(self) -> str:
        return f"{self.digest}-{self.number}"


@dataclass(slots=True)
class UnnamedMessages:
    """Messages without an ID that were taken, as long as the broker may deliver them again.

    A message that the broker delivers for the first time is new, whatever it contains. A redelivered one is the oldest
    equal message that was taken and whose acknowledgement the broker has not confirmed; if there is none, it is new.
    """

    taken: dict[str, list[int]] = field(default_factory=dict)
    """Their numbers, by digest, oldest first."""
    next_number: int = 0

    def add(self, digest: str) -> Unnamed:
        """Number a new message."""
        message = Unnamed(digest, self.next_number)
        self.next_number += 1
        self.taken.setdefault(digest, []).append(message.number)
        return message

    def find(self, digest: str, is_here: Callable[[str], bool]) -> Unnamed | None:
        """Find the message that is delivered again: it is no delivery of the present connection."""
        candidates = (Unnamed(digest, number) for number in self.taken.get(digest, ()))
        return next((message for message in candidates if not is_here(message.id)), None)

    def remove(self, message: Unnamed) -> None:
        """Remove a message whose acknowledgement the broker has confirmed."""
        numbers = self.taken[message.digest]
        numbers.remove(message.number)
        if not numbers:
            del self.taken[message.digest]
