"""On which backends a test runs: the gate runs some tests on Spark, one of each mechanism, and trials run all of them.

A fixture with the parameter `SPARK_IN_TRIALS` leaves Spark out of the gate, and so does the fixture `session` with
Spark Connect. A test of the gate names its own parameters instead: `parametrize("make", EVERYWHERE, indirect=True)`.
"""

from collections.abc import Collection, Iterable
from typing import Any

import pytest

from dagkit.engine.points import Point

SPARK = pytest.param("spark", marks=[pytest.mark.slow, pytest.mark.spark])
SPARK_IN_TRIALS = pytest.param("spark", marks=[pytest.mark.slow, pytest.mark.spark, pytest.mark.trial])

ON_CONNECT = pytest.param("connected", marks=[pytest.mark.slow, pytest.mark.spark])

EVERYWHERE = ["reference", "slots", SPARK]
ON_BOTH = pytest.mark.parametrize("session", ["classic", "connect"], indirect=True)
"""In a classic session and over Spark Connect, also in the gate."""


def on_backends(name: str, values: Iterable[Any], in_gate: Any = None) -> pytest.MarkDecorator:
    """Parameters: each value on the reference and on Spark, of which the gate runs one on Spark."""
    cases: list[Any] = []
    for value in values:
        cases.append(("reference", value))
        marks = [pytest.mark.spark] if value == in_gate else [pytest.mark.spark, pytest.mark.trial]
        cases.append(pytest.param("spark", value, marks=marks))
    return pytest.mark.parametrize(("backend", name), cases)


def crashes(points: Iterable[Point], in_gate: Collection[Point]) -> list[Any]:
    """Parameters: the points at which a driver on Spark crashes, of which the gate has some."""
    return [point if point in in_gate else pytest.param(point, marks=pytest.mark.trial) for point in points]
