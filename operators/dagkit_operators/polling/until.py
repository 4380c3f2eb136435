"""Conditions: when the polls of an element end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, PositiveInt


@dataclass(frozen=True, slots=True)
class Polls:
    """The times and outputs of an element's polls, after the last one."""

    now: datetime
    began: datetime
    """When the first poll was."""
    newest: datetime
    """When the last new output was found; at first, when the first poll was."""
    outputs: Sequence[Any]
    """All outputs of the last poll."""


class _Condition(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class UntilElapsed(_Condition):
    """An element is polled until this time has passed since its first poll."""

    elapsed_millis: PositiveInt
    """The time since the first poll."""

    def holds(self, polls: Polls) -> bool:
        return polls.now - polls.began >= timedelta(milliseconds=self.elapsed_millis)


class UntilQuiet(_Condition):
    """An element is polled until this time has passed without a new output."""

    quiet_millis: PositiveInt
    """The time without a new output."""

    def holds(self, polls: Polls) -> bool:
        return polls.now - polls.newest >= timedelta(milliseconds=self.quiet_millis)


class UntilAny(_Condition):
    """An element is polled until one of these conditions holds."""

    any_of: tuple["Condition", ...] = Field(min_length=1)
    """The conditions."""

    def holds(self, polls: Polls) -> bool:
        return any(is_over(each, polls) for each in self.any_of)


class UntilAll(_Condition):
    """An element is polled until all of these conditions hold after the same poll."""

    all_of: tuple["Condition", ...] = Field(min_length=1)
    """The conditions."""

    def holds(self, polls: Polls) -> bool:
        return all(is_over(each, polls) for each in self.all_of)


Condition = UntilElapsed | UntilQuiet | UntilAny | UntilAll | Callable[[list[Any]], bool]
"""When the polls of an element end. A function takes all outputs of a poll, and returns True after the last poll."""


def is_over(condition: Condition, polls: Polls) -> bool:
    """Whether a condition holds, so that no poll follows."""
    return condition.holds(polls) if isinstance(condition, _Condition) else bool(condition(list(polls.outputs)))
