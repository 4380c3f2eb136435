"""On which backends a test runs: the gate runs some tests on Spark, one of each mechanism, and trials run all of them.

The fixtures `make` and `machine` leave Spark out of the gate, and `session` leaves out Spark Connect. A test of the
gate names its own parameters instead, as `@everywhere` does.
"""

from collections.abc import Collection, Iterable
from typing import Any

import pytest

from dagkit.engine.program.points import Point

SPARK = pytest.param("spark", marks=[pytest.mark.spark])
SPARK_IN_TRIALS = pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.trial])
ON_CONNECT = pytest.param("connected", marks=[pytest.mark.spark])
CONNECT_IN_TRIALS = pytest.param("connected", marks=[pytest.mark.spark, pytest.mark.trial])

EVERYWHERE = ["reference", "slots", SPARK]
everywhere = pytest.mark.parametrize("make", EVERYWHERE, indirect=True)
ON_BOTH = pytest.mark.parametrize("session", ["classic", "connect"], indirect=True)
"""In a classic session and over Spark Connect, also in the gate."""


def crashes(points: Iterable[Point], in_gate: Collection[Point]) -> list[Any]:
    """Parameters: the points at which a driver on Spark crashes, of which the gate has some."""
    return [point if point in in_gate else pytest.param(point, marks=pytest.mark.trial) for point in points]
