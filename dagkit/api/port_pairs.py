"""Choose the ports that `source >> sink` connects, if an operator is given instead of a port."""

from typing import Any

from dagkit.api.component import Component
from dagkit.api.ports import Inlet, MissingPort, Outlet, input_ports, output_ports
from dagkit.schema import assignable

Pair = tuple[Outlet[Any], Inlet[Any]]


def pair_meant(source: Any, sink: Any) -> tuple[Outlet[Any] | MissingPort, Inlet[Any] | MissingPort] | str:
    """The outlet and inlet to connect, or the reason why none can be chosen."""
    if isinstance(source, MissingPort) or isinstance(sink, MissingPort):
        return _pair_around(source, sink)
    return _fitting_pair(source, sink)


def _fitting_pair(source: Any, sink: Any) -> tuple[Outlet[Any], Inlet[Any]] | str:
    """The only matching pair of ports, or the reason why there is none or more than one."""
    outlets = (
        [source] if isinstance(source, Outlet) else [Outlet(source, p) for p in output_ports(type(source)).values()]
    )
    inlets = (
        [sink]
        if isinstance(sink, Inlet)
        else [Inlet(sink, p) for p in input_ports(type(sink)).values()]
        if isinstance(sink, Component)
        else []
    )
    pairs = [(o, i) for o in outlets for i in inlets if assignable(o.port.payload, i.port.payload)]
    if len(outlets) == len(inlets) == 1:
        return outlets[0], inlets[0]
    for choose in (list, _main_pairs, _required_pairs):
        chosen = choose(pairs)
        if len(chosen) == 1:
            return chosen[0]
    if not pairs:
        return "no output of the left operator matches an input of the right one"
    return "several ports match: " + ", ".join(f"{o.port.name} to {i.port.name}" for o, i in pairs)


def _pair_around(source: Any, sink: Any) -> tuple[Outlet[Any] | MissingPort, Inlet[Any] | MissingPort]:
    """The ends of a connection with a missing port. An operator at the other end counts as a missing port, too."""
    return (
        source if isinstance(source, Outlet | MissingPort) else MissingPort(source, ""),
        sink if isinstance(sink, Inlet | MissingPort) else MissingPort(sink, ""),
    )


def _main_pairs(pairs: list[Pair]) -> list[Pair]:
    """The pairs of main ports. If no output (or input) is marked as main, any output (or input) qualifies."""
    # `>=` of booleans: if any is marked, only marked ones; if none is, all.
    outputs_marked = any(o.port.main for o, _ in pairs)
    inputs_marked = any(i.port.main for _, i in pairs)
    return [(o, i) for o, i in pairs if o.port.main >= outputs_marked and i.port.main >= inputs_marked]


def _required_pairs(pairs: list[Pair]) -> list[Pair]:
    return [(o, i) for o, i in _main_pairs(pairs) if i.port.required]
