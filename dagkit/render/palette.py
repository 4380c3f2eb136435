"""The colours, with a background of their own, so that they suit dark and light notebooks."""

from collections.abc import Mapping
from dataclasses import dataclass

from dagkit.render.picture import GroupKind, Role, WireKind

FONT = "Helvetica,Arial,sans-serif"
GROUND = "#ffffff"
INK = "#1f2a37"
MUTED = "#5d6b7a"
FAINT = "#a3adb8"
AMISS = "#c2413b"


@dataclass(frozen=True, slots=True)
class Tint:
    """A fill colour and a line colour."""

    fill: str
    line: str


ROLES: Mapping[Role, Tint] = {
    Role.INPUT: Tint("#e3f4ea", "#4f9d76"),
    Role.OPERATOR: Tint("#e8f0fb", "#5b86bf"),
    Role.DELAY: Tint("#fdf0dc", "#c7923e"),
    Role.MODULE: Tint("#efe8f8", "#8a6fb8"),
    Role.UNIFIER: Tint("#eef0f3", "#8592a1"),
}

GROUPS: Mapping[GroupKind, Tint] = {
    GroupKind.MODULE: Tint("#f8f5fc", "#b7a6d3"),
    GroupKind.DRIVER: Tint("#fbf8f1", "#cdbf9f"),
    GroupKind.WORKERS: Tint("#f5f7fa", "#b4c0ce"),
}


@dataclass(frozen=True, slots=True)
class Stroke:
    """The style of a wire, and its name in the legend."""

    color: str
    width: float
    style: str = "solid"
    double: bool = False
    legend: str = ""


WIRES: Mapping[WireKind, Stroke] = {
    WireKind.PLAIN: Stroke("#6b7a8c", 1.2),
    WireKind.PARALLEL: Stroke("#3f78b5", 1.3, double=True, legend="partition-parallel"),
    WireKind.FUSED: Stroke("#3f78b5", 1.2, legend="fused"),
    WireKind.EXCHANGE: Stroke("#c8693a", 1.5, legend="exchange"),
    WireKind.DRIVER: Stroke("#4f9d76", 1.3, legend="from the driver"),
    WireKind.DELAYED: Stroke("#c7923e", 1.4, style="dashed", legend="next window"),
}
