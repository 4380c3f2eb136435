"""The messages between slots and the board: one JSON object a line, in ASCII: names of files may not be valid UTF-8."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Final, Literal

from pydantic import Discriminator, TypeAdapter

from dagkit.engine.program.address import Address
from dagkit.engine.work.handover import Handover, Standing

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
