"""Messages without an ID: equal ones are distinguished by number, and a redelivered one is recognised."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple


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
