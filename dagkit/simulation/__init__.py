"""Simulation of windows and partitions on an imagined machine, with the engine's own scheduler and policies.

The scheduler allocates the work, the policies decide the number of partitions, and both receive what the engine would
have measured. Only the machine and the clock are imagined: nothing sleeps and nothing is read.
"""

from dagkit.engine.history.backlogs import Arrival
from dagkit.simulation.simulator import Chooser, fixed, following, simulated
from dagkit.simulation.trials import best_fixed, world_of
from dagkit.simulation.world import Change, Cost, Course, World

__all__ = [
    "Arrival",
    "Change",
    "Chooser",
    "Cost",
    "Course",
    "World",
    "best_fixed",
    "fixed",
    "following",
    "simulated",
    "world_of",
]
