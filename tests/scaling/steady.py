"""A policy as a third party writes it, and what is no policy."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import PositiveInt

from dagkit.scaling import Decision, ScalingInputs, ScalingPolicy

CALLED: list[str] = []


class Steady(ScalingPolicy):
    """Goes to its goal while anything waits, and counts its looks."""

    name = "steady"
    goal: PositiveInt = 2

    def decide(self, inputs: ScalingInputs) -> Decision:
        looks = inputs.memory.get("looks", 0)
        assert isinstance(looks, int)
        return Decision(self.goal if inputs.backlog.blocks else inputs.before, "the goal", {"looks": looks + 1})

    def explain(self, inputs: ScalingInputs, after: int) -> Sequence[str]:
        return [f"look {inputs.memory.get('looks', 0)}"]


class Unfinished(ScalingPolicy):
    """Decides nothing."""


class Nobody(Steady):
    """Decides for no partition at all."""

    def decide(self, inputs: ScalingInputs) -> Decision:
        return Decision(0, "none")


def called() -> None:
    """Notes that it was called, which no setting may cause."""
    CALLED.append("called")


class Other:
    """Notes that it was made, which no setting may cause."""

    def __init__(self, *_: object, **__: object) -> None:
        called()


def install(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a distribution that names the policy, and a function that is none."""
    described = site / "steady-1.0.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: steady\nVersion: 1.0\n")
    points = "[dagkit.policies]\nsteadily = tests.scaling.steady:Steady\nfunctional = tests.scaling.steady:called\n"
    (described / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(str(site))
