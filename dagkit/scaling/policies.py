"""Every policy by its name, and the one question that is put to them."""

from collections.abc import Callable, Mapping

from dagkit.scaling.apex import decide_apex
from dagkit.scaling.drain import decide_drain
from dagkit.scaling.policy_inputs import Decision, Policy, ScalingInputs

POLICIES: Mapping[Policy, Callable[[ScalingInputs], Decision]] = {"drain": decide_drain, "apex": decide_apex}
NOT_YET = "the interval is not over"


def decide(inputs: ScalingInputs) -> Decision:
    """How many partitions there are to be: what the policy says, and no word of it before the interval is over."""
    looked = inputs.past.looked_at_millis
    if looked is not None and inputs.at_millis < looked + inputs.settings.interval:
        return Decision(inputs.before, NOT_YET, inputs.past)
    return POLICIES[inputs.settings.policy](inputs)
