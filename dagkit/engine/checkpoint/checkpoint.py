"""What a window leaves behind: all that the next one needs, and nothing that would have to be looked up."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from dagkit.engine.address import Address
from dagkit.engine.facts import Fact
from dagkit.engine.files.staging import Part
from dagkit.engine.work.item import WorkItem
from dagkit.engine.worker.instances import SavedState
from dagkit.ledger import Work
from dagkit.plan.model import Keys

MEMORY_FORMAT: Literal["dagkit.memory/1"] = "dagkit.memory/1"


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Held(_Value):
    """Items that a delay hands on in the next window."""

    into: Address
    slot: int
    items: tuple[JsonValue, ...]


class Partitioned(_Value):
    """The partitions that an operator was given while the application ran."""

    configured: int
    """As many as its configuration gave it then. Where that gives another count now, it was edited since, and holds."""
    keys: tuple[Mapping[str, Keys], ...]
    """What each owns, by input."""


class Altered(_Value):
    """A property or an attribute that was set while the application ran."""

    operator: str
    name: str
    value: JsonValue
    """As it was written; a secret is a reference."""
    configured: JsonValue
    """What its configuration said then. Where that says something else now, it was edited since, and holds."""


class Checkpoint(_Value):
    """The checkpoint of one window."""

    format: Literal["dagkit.memory/1"] = MEMORY_FORMAT
    window: int = 0
    """The window that left it; none has run yet where it is 0."""
    work: Work = Field(default_factory=Work)
    """What the window read, and what waits: the proof that no byte is lost or read twice."""
    queue: tuple[WorkItem, ...] = ()
    state: Mapping[str, tuple[SavedState, ...]] = {}
    """By operator, then by partition."""
    held: tuple[Held, ...] = ()
    files: tuple[Part, ...] = ()
    """Pieces of files that are not whole yet."""
    finished: tuple[Part, ...] = ()
    """Pieces of the files that became whole with this window; they are put in place after the commit."""
    read: tuple[tuple[int, int], ...] = ()
    """The numbers of the blocks that were read to their end, as half-open stretches: their files are whole."""
    watermarks: Mapping[str, datetime | None] = {}
    """How far event time has come, by the input of the work that tells it."""
    drained: bool = False
    """Whether operators were told, with this window, that nothing more comes for now."""
    ended: tuple[str, ...] = ()
    """Input operators that will never have anything again."""
    facts: tuple[Fact, ...] = ()
    """What was decided since the window before; the next window does not repeat it."""
    partitions: Mapping[str, Partitioned] = {}
    """Of operators that have others than their configuration gives them."""
    altered: tuple[Altered, ...] = ()
    """What was set while the application ran, in order; it goes over the configuration."""
    answered: tuple[str, ...] = ()
    """The requests that took effect with this window."""

    def with_files(self, files: tuple[Part, ...]) -> "Checkpoint":
        """The same checkpoint with other pieces of the files that are not whole."""
        return self if files == self.files else self.model_copy(update={"files": files})

    def as_json(self) -> dict[str, Any]:
        """The checkpoint as plain data; what is empty is left out."""
        data: dict[str, Any] = self.model_dump(mode="json")
        data["work"] = self.work.as_json()
        return {name: value for name, value in data.items() if value or name in ("format", "window", "work")}
