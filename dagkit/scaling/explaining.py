"""A decision as a sentence: what waited, what the policy considered besides, and what came of it."""

from dagkit.scaling.policy import ScalingInputs
from dagkit.scaling.wording import waiting


def sentence(inputs: ScalingInputs, after: int, rule: str) -> str:
    """Why there are so many partitions from here on."""
    considered = inputs.settings.chosen.explain(inputs, after)
    return "; ".join([waiting(inputs.backlog), *considered, became(inputs.before, after, rule)])


def became(before: int, after: int, rule: str) -> str:
    """What a decision did, and the rule that settled it."""
    if after == before:
        return f"{before} {'stays' if before == 1 else 'stay'}: {rule}"
    return f"{before} {'becomes' if before == 1 else 'become'} {after}: {rule}"
