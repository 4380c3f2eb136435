"""A decision as a sentence: the backlog, what else the policy considered, and the result."""

from dagkit.scaling.policy import ScalingInputs
from dagkit.scaling.wording import waiting


def sentence(inputs: ScalingInputs, after: int, rule: str) -> str:
    """The sentence that explains a decision."""
    considered = inputs.settings.chosen.explain(inputs, after)
    return "; ".join([waiting(inputs.backlog), *considered, became(inputs.before, after, rule)])


def became(before: int, after: int, rule: str) -> str:
    """The result of a decision, and its rule."""
    if after == before:
        return f"{before} {'stays' if before == 1 else 'stay'}: {rule}"
    return f"{before} {'becomes' if before == 1 else 'become'} {after}: {rule}"
