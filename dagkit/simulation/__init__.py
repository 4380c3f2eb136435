"""Simulation: how windows and partitions would go on a machine that is imagined, decided by the code that really runs.

The engine's scheduler gives out the work, the policies say how many partitions there are, and both are given what the
engine would have measured. Only the machine and the clock are imagined: nothing sleeps and nothing is read.
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
