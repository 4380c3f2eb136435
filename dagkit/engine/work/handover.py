"""Handovers: work that a busy slot passes to an idle slot of the same window.

The giver reports each handover as given, and the taker as taken. The driver compares both reports when the window ends
(`engine/record/work_records.py`), so a handover may be lost on its way at any time.

Slots and the board exchange messages of one JSON object a line, in ASCII: names of files may not be valid UTF-8.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Final, Literal, Protocol

from pydantic import Discriminator, TypeAdapter

from dagkit.engine.program.address import Address
from dagkit.engine.work.item import WorkItem

LEAST_HANDED_MILLIS: Final = 100.0
"""A slot with less work left gives none of it away: half of it is not worth another piece of a file."""


@dataclass(frozen=True, slots=True)
class Handover:
    """Work that one slot passed to another."""

    token: str
    """Random; no two handovers have the same."""
    into: Address
    slot: int
    """The slot that gave it."""
    work: tuple[WorkItem, ...]
    cut_from: int | None = None
    """The start of the item that the work was split from; None if the slot had not begun these items."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The progress of a slot in its work on one input."""

    name: str | None = None
    """The element that it processes, by its name in the ledger."""
    fraction: float | None = None
    """The part of that element that is done."""
    millis: float = 0.0
    """The time since it began that element."""
    left_millis: float | None = None
    """An estimate of the time until it is idle; None while nothing is measured."""
    done: int = 0
    """How many positions it has processed in the window, of all elements."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """The share of each operator in the time of the slot so far, without small ones; empty if it is not measured."""


@dataclass(frozen=True, slots=True)
class SlotStanding:
    """The progress of one slot of a window."""

    window_id: int
    into: Address
    slot: int
    standing: Standing


class Giver(Protocol):
    """A slot that works on one input. Another thread than that of the work calls it."""

    def give(self) -> Handover | None:
        """Give half of the remaining work away; None if there is nothing worth it."""

    def standing(self) -> Standing:
        """The present progress."""


class BoardLink:
    """The link of one slot and input to the board. This one has no board, and `SlotLink` works so once it is cut."""

    hands_over = False
    """Whether the slot may get work and give it away; otherwise it only reports its progress."""

    @property
    def is_up(self) -> bool:
        """Whether the slot reaches the board, and hands over."""
        return False

    @property
    def idle_millis(self) -> float:
        """How long the slot has waited for work of others. Called also from a handler of signals."""
        return 0.0

    def open(self, giver: Giver) -> None:
        """Announce that the slot begins its work."""

    def more(self, until: Callable[[], bool]) -> Handover | None:  # noqa: ARG002 - it does not wait
        """Wait until the slot gets work of another one. Return None if it gets none, or once `until` is true."""
        return None

    def close(self) -> None:
        """Announce that the slot has ended its work."""


LONGEST_LINE: Final = 16 << 20
"""The longest message in bytes. A longer one ends the connection."""


@dataclass(frozen=True, slots=True)
class BoardPlace:
    """Where the slots of one attempt at a window find the board."""

    host: str
    port: int
    token: str
    """The random token of the launch."""
    window: str
    """A random name of the attempt: the slots of an earlier one, if they still run, are refused."""


@dataclass(frozen=True, slots=True)
class Hello:
    """The first message of a slot."""

    token: str
    window: str
    into: Address
    slot: int
    kind: Literal["hello"] = "hello"


@dataclass(frozen=True, slots=True)
class Progressed:
    """The progress of a busy slot."""

    standing: Standing
    kind: Literal["progressed"] = "progressed"


@dataclass(frozen=True, slots=True)
class Idle:
    """A slot has no more work, and waits."""

    kind: Literal["idle"] = "idle"


@dataclass(frozen=True, slots=True)
class Given:
    """The answer of a slot that was asked for work."""

    handover: Handover | None
    kind: Literal["given"] = "given"


@dataclass(frozen=True, slots=True)
class Asked:
    """The driver asks a busy slot for work."""

    kind: Literal["asked"] = "asked"


@dataclass(frozen=True, slots=True)
class Handed:
    """The driver passes work to an idle slot."""

    handover: Handover
    kind: Literal["handed"] = "handed"


@dataclass(frozen=True, slots=True)
class Dismissed:
    """The driver lets an idle slot end."""

    kind: Literal["dismissed"] = "dismissed"


FromSlot = Hello | Progressed | Idle | Given
ToSlot = Asked | Handed | Dismissed
Message = FromSlot | ToSlot


def line_of(message: Message) -> bytes:
    """The line that holds a message."""
    return json.dumps(_adapter().dump_python(message, mode="json"), separators=(",", ":")).encode() + b"\n"


def message_in(line: bytes) -> Message:
    """The message in a line. Raise ValueError if there is none."""
    try:
        return _adapter().validate_python(json.loads(line))
    except RecursionError as error:
        raise ValueError("the message is nested too deeply") from error


@cache
def _adapter() -> TypeAdapter[Message]:
    return TypeAdapter(Annotated[Message, Discriminator("kind")])
