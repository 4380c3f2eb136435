"""Observers of other distributions, by the names of their entry points in the group `dagkit.observers`.

[project.entry-points."dagkit.observers"]
acme = "acme.dagkit:Observer"
"""

from importlib.metadata import entry_points

from dagkit.engine.record.run_events import Observer
from dagkit.errors import did_you_mean

GROUP = "dagkit.observers"
"""The entry-point group in which a distribution names functions or classes that make an observer."""


class ObserverUnknown(ValueError):
    """No installed distribution has an observer of this name, or it makes none."""


def observer_named(name: str) -> Observer:
    """A new observer of this name. Raise ObserverUnknown if there is none."""
    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        help_ = did_you_mean(name, points, f"install a distribution with an entry point in the group {GROUP}")
        raise ObserverUnknown(f"there is no observer {name!r}; {help_}")
    observer = points[name].load()()
    if not callable(observer):
        raise ObserverUnknown(f"{points[name].value} makes {observer!r}, which takes no events: it cannot be called")
    made: Observer = observer
    return made
