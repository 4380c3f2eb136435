"""Servers that do not answer, as the readers of a process see them."""

from functools import cache

from dagkit import Outage


@cache
def outage_of(server: str) -> Outage:
    """The outage of a server as the readers of this process see it: it lasts longer than a window."""
    return Outage(server)
