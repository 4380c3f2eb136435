"""Planning grows with the graph, and not much faster; `bench check` measures how fast it is."""

import pytest

from bench.compile import STEEPEST, RandomGraph, measured, power
from dagkit.compiler import compile_application
from dagkit.plan import fingerprint

pytestmark = pytest.mark.slow


@pytest.mark.trial
def test_planning_three_times_the_operators_takes_little_more_than_three_times_as_long():
    sizes = ((measured(500, rounds=2), measured(1_500, rounds=2)) for _ in range(3))
    assert any(power(small, large) < STEEPEST + 0.25 for small, large in sizes)


def test_the_same_seed_draws_the_same_graph():
    plans = [compile_application(RandomGraph(operators=300, seed=seed)).plan for seed in (1, 1, 2)]
    first, again, other = map(fingerprint, plans)
    assert first == again != other
