"""A decision as a sentence: what waited, with what it could be worked off, and what came of it."""

from dagkit.scaling.drain import Forecast
from dagkit.scaling.policy_inputs import ScalingInputs


def sentence(inputs: ScalingInputs, after: int, rule: str) -> str:
    """Why there are so many partitions from here on."""
    return "; ".join(
        [_waiting(inputs), *_means(inputs), *_forecasts(inputs, after), became(inputs.before, after, rule)]
    )


def became(before: int, after: int, rule: str) -> str:
    """What a decision did, and the rule that settled it."""
    if after == before:
        return f"{before} {'stays' if before == 1 else 'stay'}: {rule}"
    return f"{before} {'becomes' if before == 1 else 'become'} {after}: {rule}"


def _waiting(inputs: ScalingInputs) -> str:
    backlog = inputs.backlog
    if not backlog.blocks:
        return "no block waits"
    blocks = "1 block waits" if backlog.blocks == 1 else f"{backlog.blocks} blocks wait"
    endless = f", {backlog.endless} of them without an end" if backlog.endless else ""
    return f"{blocks}{endless}, {amount(backlog.positions)} positions"


def _means(inputs: ScalingInputs) -> list[str]:
    """What a policy that looks at it has to work with."""
    if inputs.settings.policy == "apex":
        return []
    capacity = inputs.capacity
    more = f" of {capacity.most_cores} to be had" if capacity.most_cores > capacity.cores else ""
    cores = f"1 core{more}" if capacity.cores == 1 else f"{capacity.cores} cores{more}"
    rate = capacity.positions_per_second
    return [cores if rate is None else f"{cores}, each reads {amount(rate)} in a second"]


def _forecasts(inputs: ScalingInputs, after: int) -> list[str]:
    if inputs.settings.policy == "apex" or not inputs.capacity.positions_per_second or not inputs.backlog.positions:
        return []
    forecast = Forecast(inputs)
    counts = sorted({inputs.before, after})
    return [" and ".join(f"{forecast.millis(count) / 1000:.3g} s with {count}" for count in counts)]


def amount(number: float) -> str:
    """A number in three digits, with the letter of its thousands."""
    for letter in ("", "k", "M", "G", "T"):
        if abs(number) < 999.5:
            return f"{number:.3g}{letter}"
        number /= 1000
    return f"{number:.3g}P"
