"""Facts: what the engine decided around a window, and why. They stand in its checkpoint, for whoever asks later."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from dagkit.engine.address import Address


class _Fact(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Split(_Fact):
    """Work was divided: what lies before `at` is one piece now, and what lies from `at` on is another."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    fact: Literal["split"] = "split"
    into: Address
    """The input whose work it was."""
    source: str
    start: int
    at: int
    end: int | None
    """None where there is no end."""
    element_id: int | None = Field(default=None, validation_alias="block", serialization_alias="block")
    """The number of the element that was divided, if it is a numbered stretch of a source."""
    slot: int | None = None
    """Who was at work on it; None where nobody had begun it."""
    why: str
    """The rule that divided it, in a few words."""


class Scaled(_Fact):
    """Somebody looked at the number of partitions of an operator; where `before` is `after`, nothing changed."""

    fact: Literal["scaled"] = "scaled"
    operator: str
    at: datetime
    before: int
    after: int
    policy: str
    """Who decided."""
    rule: str
    """Which of its rules settled it, in a few words."""
    inputs: Mapping[str, JsonValue] = {}
    """All that the decision was made of, so that it can be made again."""


class Changed(_Fact):
    """A property or an attribute was changed while the application ran."""

    fact: Literal["changed"] = "changed"
    operator: str
    name: str
    at: datetime
    before: JsonValue
    after: JsonValue


Fact = Annotated[Split | Scaled | Changed, Field(discriminator="fact")]
