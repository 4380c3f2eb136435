"""The policy of Apex Malhar's block reader, to the number: one partition for each block that waits, in powers of two.

It knows neither how long blocks are nor how many cores there are, and it goes up and down at once.
"""

from dagkit.scaling.policy_inputs import APEX_MAX_READERS, Decision, ScalingInputs

AS_MANY = "as many blocks as partitions"
MOST = "more blocks than max_readers"
LEAST = "fewer blocks than min_readers"
POWER = "the power of two up to the blocks"


def decide_apex(inputs: ScalingInputs) -> Decision:
    """What Malhar's `processStats` answers."""
    least = inputs.settings.min_readers
    most = inputs.settings.max_readers or max(least, APEX_MAX_READERS)
    blocks, before = inputs.backlog.blocks, inputs.before
    if blocks == before:
        after, rule = before, AS_MANY
    elif blocks > most:
        after, rule = most, MOST
    elif blocks < least:
        after, rule = least, LEAST
    else:
        power = 1 << (blocks.bit_length() - 1)
        after, rule = power if inputs.settings.apex_compat else max(least, power), POWER
    changed = inputs.at_millis if after != before else inputs.past.changed_at_millis
    past = inputs.past.model_copy(update={"looked_at_millis": inputs.at_millis, "changed_at_millis": changed})
    return Decision(after, rule, past)
