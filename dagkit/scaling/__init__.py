"""Scaling: how many partitions an operator has, by what waits for it. Pure: the same inputs give the same answer.

`decide` says how many there are to be; `Follower` is what a listener asks, one commit after the other. Both stand here
so that any operator with a queue can follow it.
"""

from dagkit.scaling.follower import Follower
from dagkit.scaling.policies import decide
from dagkit.scaling.policy_inputs import Decision, Past, Policy, ScalingInputs, ScalingSettings, refuse_crossed

__all__ = ["Decision", "Follower", "Past", "Policy", "ScalingInputs", "ScalingSettings", "decide", "refuse_crossed"]
