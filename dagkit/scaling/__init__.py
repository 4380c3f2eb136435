"""Scaling: how many partitions an operator has, by what waits for it. Pure: the same inputs give the same answer.

A `ScalingPolicy` decides. A `BacklogPartitioner` lets a splittable operator follow its policy; `Follower` keeps what is
needed between two looks. `registry.py` says how a policy is found by its name.
"""

from dagkit.scaling.apex import Apex
from dagkit.scaling.backlog_partitioner import BacklogPartitioner
from dagkit.scaling.drain import Drain
from dagkit.scaling.follower import Follower
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
