"""What a decision about partitions is made of, and what comes of it. All of it has a JSON form, for the ledger."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, JsonValue, NonNegativeInt, PositiveInt, model_validator

from dagkit.api.stats import Backlog, Capacity

Policy = Literal["drain", "apex"]

LONGEST_MILLIS = 10_000.0
"""Of a window in the middle of a large backlog: so long that what a window costs besides its work hardly shows."""
PIECE = 1 << 20
"""Positions that are worth a slot of their own, where nothing is known of what they cost."""


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScalingSettings(_Value):
    """How an operator is to follow its backlog."""

    policy: Policy = "drain"
    """`drain`: as many as work the backlog off soonest. `apex`: a partition for each block, in powers of two."""
    min_readers: PositiveInt = 1
    """Partitions at least."""
    max_readers: PositiveInt | None = None
    """Partitions at most; none: 16 by `apex`, and as many as the cluster can run at once by `drain`."""
    interval_millis: NonNegativeInt | None = None
    """The time between two looks; none: two minutes by `apex`, and none by `drain`."""
    target_drain_millis: NonNegativeInt = 0
    """How soon a backlog is to be worked off, by `drain`: no more partitions than that takes. 0: as soon as may be."""
    cool_down_millis: NonNegativeInt = 10_000
    """How long fewer partitions must be enough before `drain` takes some away."""
    apex_compat: bool = False
    """Whether `apex` also does what its documents deny: it begins with one, and rounds to less than `min_readers`."""

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        refuse_crossed(self.min_readers, self.max_readers)
        return self

    @property
    def interval(self) -> int:
        """The milliseconds between two looks, by whoever says so."""
        if self.interval_millis is not None:
            return self.interval_millis
        return APEX_INTERVAL_MILLIS if self.policy == "apex" else 0


def refuse_crossed(min_readers: int, max_readers: int | None) -> None:
    """Returns only if there is a count between the bounds."""
    if max_readers is not None and min_readers > max_readers:
        raise ValueError(f"min_readers {min_readers} is greater than max_readers {max_readers}")


APEX_INTERVAL_MILLIS = 120_000
APEX_MAX_READERS = 16


class Past(_Value):
    """What a policy remembers of its earlier looks; with nothing in it there was none."""

    looked_at_millis: int | None = None
    changed_at_millis: int | None = None
    shrunk_at_millis: int | None = None
    low_since_millis: int | None = None
    """Since when fewer partitions would have been enough."""
    low_half_millis: int | None = None
    """When the half of a cool-down began that is under way."""
    low_most: int = 0
    """The most that were needed in it."""
    low_most_before: int = 0
    """The most that were needed in the half before: what was needed earlier is forgotten."""
    patience: PositiveInt = 1
    """How many times the cool-down is waited for: it grows with each change that came to be regretted."""


class ScalingInputs(_Value):
    """All that a decision is made of."""

    settings: ScalingSettings = ScalingSettings()
    before: PositiveInt
    """How many partitions there are."""
    at_millis: int
    """When it is decided, in milliseconds since 1970."""
    backlog: Backlog = Backlog()
    capacity: Capacity = Capacity()
    past: Past = Past()

    @classmethod
    def of(cls, recorded: Mapping[str, JsonValue]) -> Self:
        """The inputs that were recorded."""
        return cls.model_validate(recorded)

    def as_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


@dataclass(frozen=True, slots=True)
class Decision:
    """How many partitions there are to be, and why."""

    after: int
    rule: str
    """Which rule settled it, in a few words; equal words mean an equal reason."""
    past: Past
    """What to remember for the next look."""
