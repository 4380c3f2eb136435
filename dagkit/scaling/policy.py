"""Policies, their inputs and their decisions. All inputs have a JSON form, for the ledger.

A policy is built in, or an installed distribution names it in the entry-point group `dagkit.policies`, or a setting
gives its path, `package.module:Class`, in the author's code or in a library of operators.
"""

import importlib
import importlib.metadata
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    model_validator,
)

from dagkit.api.code_origin import may_be_named
from dagkit.api.stats import Backlog, BatchedOperatorStats, Capacity
from dagkit.errors import did_you_mean


def waiting(backlog: Backlog) -> str:
    if not backlog.blocks:
        return "no block waits"
    blocks = "1 block waits" if backlog.blocks == 1 else f"{backlog.blocks} blocks wait"
    endless = f", {backlog.endless} of them without an end" if backlog.endless else ""
    return f"{blocks}{endless}, {amount(backlog.positions)} positions"


def available(capacity: Capacity) -> str:
    """The cores, and the speed of one."""
    more = f" of up to {capacity.most_cores}" if capacity.most_cores > capacity.cores else ""
    cores = f"1 core{more}" if capacity.cores == 1 else f"{capacity.cores} cores{more}"
    rate = capacity.positions_per_second
    return cores if rate is None else f"{cores}, each reads {amount(rate)} per second"


def amount(number: float) -> str:
    """A number with three digits and a unit prefix."""
    for letter in ("", "k", "M", "G", "T"):
        if abs(number) < 999.5:
            return f"{number:.3g}{letter}"
        number /= 1000
    return f"{number:.3g}P"


LONGEST_MILLIS = 10_000.0
"""The length of windows in a large backlog: long enough that the fixed cost of a window hardly matters."""
PIECE = 1 << 20
"""The number of positions that justify a separate slot, if their cost is unknown."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The number of partitions, and the reason."""

    after: int
    rule: str
    """The rule that decided, in a few words; equal words mean equal reasons."""
    memory: Mapping[str, JsonValue] = field(default_factory=dict)
    """The policy receives this as `ScalingInputs.memory` with its next decision."""


class ScalingPolicy(BaseModel, ABC):
    """Decides how many partitions follow a backlog. Its fields are its settings.

    `decide` is a pure function of its inputs, so a recorded decision can be repeated. A policy returns what it must
    remember as `Decision.memory`, and receives it with its next decision.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str]
    """The policy's name in ledgers, metrics and explanations."""
    default_interval_millis: ClassVar[int] = 0
    """The time between two decisions, unless `interval_millis` is set."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Name the policy after its class, unless it declares a name."""
        super().__init_subclass__(**kwargs)
        # Not `hasattr`: a subclass of a policy would have its name.
        if "name" not in cls.__dict__:
            cls.name = cls.__name__

    @abstractmethod
    def decide(self, inputs: "ScalingInputs") -> Decision:
        """Return the number of partitions, at least 1, and the rule that settled it."""

    def backlog(self, stats: BatchedOperatorStats, queued: Mapping[int, int]) -> Backlog | None:  # noqa: ARG002 - for those that count queues
        """The backlog to decide from, or None to wait for the statistics of the next partition.

        Called for each partition of a round, in order; `queued` holds the number of waiting blocks of each partition
        so far. By default, the policy waits for the last partition, and decides from the backlog of all.
        """
        return stats.backlog if stats.partition == stats.partitions - 1 else None

    def begins_with(self, settings: "ScalingSettings") -> int:
        """The number of partitions before the first decision."""
        return settings.min_partitions

    def explain(self, inputs: "ScalingInputs", after: int) -> Sequence[str]:  # noqa: ARG002 - for those that compare
        """What the policy considered beside the backlog, in parts of a sentence."""
        return [available(inputs.capacity)]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScalingSettings(_Value):
    """How an operator follows its backlog."""

    policy: str = "drain"
    """The policy's name: `drain`, `apex`, one of the entry points `dagkit.policies`, or `package.module:Class`."""
    policy_settings: Mapping[str, Any] = {}
    """The policy's own settings; all of them are filled in."""
    min_partitions: PositiveInt = 1
    """The minimum number of partitions."""
    max_partitions: PositiveInt | None = None
    """The maximum number of partitions; None: the default of the policy: 16 of `apex`, one for each core of `drain`."""
    interval_millis: NonNegativeInt | None = None
    """The time between two decisions; None: the default of the policy: two minutes of `apex`, none of `drain`."""

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, given: Any) -> Any:
        """Validate the policy's own settings, and add its defaults."""
        if not isinstance(given, Mapping):
            return given
        name, own = given.get("policy", "drain"), given.get("policy_settings", {})
        if not isinstance(name, str) or not isinstance(own, Mapping):
            return given  # pydantic reports the wrong type
        return {**given, "policy_settings": policy_of(name, own).model_dump(mode="json")}

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        refuse_crossed("min_partitions", self.min_partitions, "max_partitions", self.max_partitions)
        return self

    @cached_property
    def chosen(self) -> ScalingPolicy:
        """The policy, with its own settings: made once, since each decision asks for it twice."""
        return policy_of(self.policy, self.policy_settings)

    def changed(self, values: Mapping[str, Any]) -> Self:
        """A copy with these settings, common ones or the policy's own; another policy begins with its defaults."""
        policy = policy_class(str(values.get("policy", self.policy)))
        shared = [name for name in type(self).model_fields if name != "policy_settings"]
        unknown = next((name for name in values if name not in (*shared, *policy.model_fields)), None)
        if unknown is not None:
            raise ValueError(f"{unknown!r} is not one of {', '.join([*shared, *policy.model_fields])}")
        own = {**self.policy_settings, **values}
        return type(self).model_validate(
            {
                **self.model_dump(),
                **{name: values[name] for name in shared if name in values},
                "policy_settings": {name: own[name] for name in policy.model_fields if name in own},
            }
        )

    @property
    def interval(self) -> int:
        """The milliseconds between two decisions."""
        return self.chosen.default_interval_millis if self.interval_millis is None else self.interval_millis


GROUP = "dagkit.policies"
"""The entry-point group in which a distribution names its policies: `name = "package.module:Class"`."""
BUILT_IN: Mapping[str, str] = {"drain": "dagkit.scaling.drain:Drain", "apex": "dagkit.scaling.apex:Apex"}


class PolicyUnknown(ValueError):
    """There is no policy of this name."""


def policy_names() -> list[str]:
    """Every name of a policy besides class paths: built-in policies first."""
    return list(dict.fromkeys([*BUILT_IN, *sorted(point.name for point in _entry_points())]))


def policy_class(name: str) -> type[ScalingPolicy]:
    """The policy class of this name or path. Raise PolicyUnknown if there is none."""
    place = BUILT_IN.get(name) or next((point.value for point in _entry_points() if point.name == name), None)
    if place is None and not {".", ":"} & set(name):
        help_ = did_you_mean(name, policy_names(), "name one by package.module:Class")
        raise PolicyUnknown(f"there is no policy {name!r}; {help_}")
    if place is None:
        _refuse_foreign(name)
    # nothing is called before it is known to be a policy: a file of settings must not name a function that runs
    found = _found_at(place or name)
    if not (inspect.isclass(found) and issubclass(found, ScalingPolicy)):
        raise PolicyUnknown(f"{place or name} is not a subclass of {ScalingPolicy.__name__}")
    if inspect.isabstract(found):
        raise PolicyUnknown(f"{place or name} is abstract: it has no decide(self, inputs)")
    return found


def _entry_points() -> importlib.metadata.EntryPoints:
    return importlib.metadata.entry_points(group=GROUP)


def _refuse_foreign(place: str) -> None:
    """Raise PolicyUnknown if settings may not name this module, because importing a module runs it."""
    module, _ = _parts(place)
    # A module that is loaded has already run.
    if module not in sys.modules and not may_be_named(module, None):
        problem = f"the module {module!r} is neither the application's nor a library's of operators"
        raise PolicyUnknown(f"{problem}; a distribution names its policies under the entry point {GROUP!r}")


def _parts(place: str) -> tuple[str, str]:
    """The module and the class in `package.module:Class` or `package.module.Class`."""
    module_name, colon, path = place.partition(":")
    if not colon:
        module_name, _, path = place.rpartition(".")
    if not all(part.isidentifier() for part in (*module_name.split("."), *path.split("."))):
        raise PolicyUnknown(f"{place!r} does not name a class; write package.module:Class")
    return module_name, path


def _found_at(place: str) -> Any:
    """The object at a path, without calling it."""
    module_name, path = _parts(place)
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as broken:
        problem = f"{place}: the module {module_name} cannot be imported: {type(broken).__name__}: {broken}"
        raise PolicyUnknown(problem) from broken
    for part in path.split("."):
        if not hasattr(found, part):
            raise PolicyUnknown(f"{place}: {getattr(found, '__qualname__', module_name)} has no {part!r}")
        found = getattr(found, part)
    return found


def policy_of(name: str, settings: Mapping[str, JsonValue]) -> ScalingPolicy:
    """The policy of this name with its own settings. Raise ValueError if it refuses one of them."""
    cls = policy_class(name)
    for setting in settings:
        if setting not in cls.model_fields:
            raise ValueError(
                f"the policy {cls.name} has no setting {setting!r}; {did_you_mean(setting, cls.model_fields)}"
            )
    try:
        return cls.model_validate(settings)
    except ValidationError as invalid:
        raise ValueError(in_a_line(invalid)) from invalid


def in_a_line(invalid: ValueError) -> str:
    """The faults of settings, in one line."""
    if not isinstance(invalid, ValidationError):
        return str(invalid)
    faults = invalid.errors(include_url=False)
    problems = [f"{'.'.join(map(str, e['loc']))}: {e['msg'].removeprefix('Value error, ')}" for e in faults]
    return "; ".join(one.removeprefix(": ") for one in problems)


def refuse_crossed(least_name: str, least: int, most_name: str, most: int | None) -> None:
    """Raise ValueError if the minimum is greater than the maximum."""
    if most is not None and least > most:
        raise ValueError(f"{least_name} {least} is greater than {most_name} {most}")


class ScalingInputs(_Value):
    """All inputs of a decision."""

    settings: ScalingSettings = Field(default_factory=ScalingSettings)
    before: PositiveInt
    """The current number of partitions."""
    at_millis: int
    """The time of the decision, in milliseconds since 1970."""
    backlog: Backlog = Backlog()
    capacity: Capacity = Capacity()
    looked_at_millis: int | None = None
    """The time of the last decision; None before the first."""
    memory: Mapping[str, JsonValue] = {}
    """The `Decision.memory` of the last decision; empty before the first."""

    @property
    def is_due(self) -> bool:
        """Whether the interval since the last decision is over."""
        looked = self.looked_at_millis
        return looked is None or self.at_millis >= looked + self.settings.interval


def decide(inputs: ScalingInputs) -> Decision:
    """The decision of the policy that is set. Raise ValueError if it decides for less than one partition."""
    policy = inputs.settings.chosen
    decision = policy.decide(inputs)
    if decision.after < 1:
        raise ValueError(f"the policy {policy.name} decided for {decision.after} partitions; at least 1 must remain")
    return decision


def sentence(inputs: ScalingInputs, after: int, rule: str) -> str:
    """The sentence that explains a decision."""
    considered = inputs.settings.chosen.explain(inputs, after)
    return "; ".join([waiting(inputs.backlog), *considered, became(inputs.before, after, rule)])


def became(before: int, after: int, rule: str) -> str:
    """The result of a decision, and its rule."""
    if after == before:
        return f"{before} {'stays' if before == 1 else 'stay'}: {rule}"
    return f"{before} {'becomes' if before == 1 else 'become'} {after}: {rule}"
