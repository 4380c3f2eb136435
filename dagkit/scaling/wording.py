"""Amounts and capacities in words, for the sentences that explain decisions."""

from dagkit.api.stats import Backlog, Capacity


def waiting(backlog: Backlog) -> str:
    if not backlog.blocks:
        return "no block waits"
    blocks = "1 block waits" if backlog.blocks == 1 else f"{backlog.blocks} blocks wait"
    endless = f", {backlog.endless} of them without an end" if backlog.endless else ""
    return f"{blocks}{endless}, {amount(backlog.positions)} positions"


def available(capacity: Capacity) -> str:
    """The cores, and the speed of one."""
    more = f" of up to {capacity.most_cores}" if capacity.most_cores > capacity.cores else ""
    cores = f"1 core{more}" if capacity.cores == 1 else f"{capacity.cores} cores{more}"
    rate = capacity.positions_per_second
    return cores if rate is None else f"{cores}, each reads {amount(rate)} per second"


def amount(number: float) -> str:
    """A number with three digits and a unit prefix."""
    for letter in ("", "k", "M", "G", "T"):
        if abs(number) < 999.5:
            return f"{number:.3g}{letter}"
        number /= 1000
    return f"{number:.3g}P"
