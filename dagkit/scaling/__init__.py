"""Scaling: how many partitions an operator has, by what waits for it. Pure: the same inputs give the same answer.

A `ScalingPolicy` decides; `Follower` is what a listener asks, one commit after the other. Both stand here so that any
operator with a queue can follow it. `registry.py` says how a policy is found by its name.
"""

from dagkit.scaling.apex import Apex
from dagkit.scaling.drain import Drain
from dagkit.scaling.follower import Follower
from dagkit.scaling.policy import Decision, ScalingInputs, ScalingPolicy, ScalingSettings, decide

__all__ = ["Apex", "Decision", "Drain", "Follower", "ScalingInputs", "ScalingPolicy", "ScalingSettings", "decide"]
