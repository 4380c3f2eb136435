"""Facts: the decisions of the engine around a window, with their reasons, kept in its checkpoint for later review."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue

from dagkit.engine.program.address import Address
from dagkit.engine.program.stored_value import StoredValue
from dagkit.ranges.progress import share_of


class Split(StoredValue):
    """Work was split at the position or share `at`, which begins the second piece."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    fact: Literal["split"] = "split"
    into: Address
    """The input that the work belongs to."""
    source: str
    start: int
    at: int
    end: int | None
    """None if the work has no end."""
    element_id: int | None = Field(default=None, validation_alias="block", serialization_alias="block")
    """The number of the split element, if it is a numbered stretch of a source."""
    slot: int | None = None
    """The slot that was working on it; None if no slot had begun it."""
    why: str
    """The rule that split it, in a few words."""
    is_shares: bool = False
    """Whether `start`, `at` and `end` are shares of the element. Up to November 2026 windows did not record that."""

    def as_row(self) -> dict[str, Any]:
        """The fields as JSON; shares, if there are any, also as parts of 1."""
        fields = self.model_dump(mode="json", exclude={"fact", "is_shares"})
        places = ("start", "at", "end")
        return fields | {f"{name}_share": share_of(fields[name], is_shares=self.is_shares) for name in places}


class Scaled(StoredValue):
    """A policy reviewed the number of partitions of an operator; if `before` equals `after`, it kept the number."""

    fact: Literal["scaled"] = "scaled"
    operator: str
    at: datetime
    before: int
    after: int
    policy: str
    """The policy that decided."""
    rule: str
    """The rule of the policy that applied, in a few words."""
    inputs: Mapping[str, JsonValue] = {}
    """All values that the decision depends on, so that it can be reproduced."""


class Changed(StoredValue):
    """A property or an attribute was changed while the application ran."""

    fact: Literal["changed"] = "changed"
    operator: str
    name: str
    at: datetime
    before: JsonValue
    after: JsonValue


class Forgotten(StoredValue):
    """A file was forgotten on request, so that it is read again."""

    fact: Literal["forgotten"] = "forgotten"
    operator: str
    path: str
    at: datetime


Decision = Literal["set-aside", "given-up", "retried"]


class Decided(StoredValue):
    """Pending work was set aside or given up, or work that was set aside was put back."""

    fact: Literal["decided"] = "decided"
    decision: Decision
    into: Address
    """The input that the work belongs to."""
    source: str
    start: int
    end: int | None
    """None if the work has no end."""
    is_shares: bool = False
    """Whether `start` and `end` are shares of the element."""
    reason: str
    by: str | None = None
    """The user who requested it; None if the engine decided."""
    at: datetime

    @property
    def operator(self) -> str:
        """The operator whose work it is."""
        return self.into.operator


Fact = Annotated[Split | Scaled | Changed | Forgotten | Decided, Field(discriminator="fact")]
