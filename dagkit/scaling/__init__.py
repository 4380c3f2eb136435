"""Scaling: the number of partitions of an operator, by its backlog. Pure: equal inputs give equal decisions.

A `ScalingPolicy` decides. A `BacklogPartitioner` lets a splittable operator follow its policy; a `Follower` keeps the
state between two decisions.
"""

from dagkit.scaling.apex import Apex
from dagkit.scaling.drain import Drain
from dagkit.scaling.follower import BacklogPartitioner, Follower
from dagkit.scaling.policy import Decision, ScalingInputs, ScalingPolicy, ScalingSettings, decide

__all__ = [
    "Apex",
    "BacklogPartitioner",
    "Decision",
    "Drain",
    "Follower",
    "ScalingInputs",
    "ScalingPolicy",
    "ScalingSettings",
    "decide",
]
