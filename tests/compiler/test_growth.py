"""Planning grows with the graph, and not much faster: the lines of Python that run are counted."""

import sys

import pytest

from bench.compile import RandomGraph
from dagkit.compiler import compile_application
from dagkit.plan import fingerprint

pytestmark = pytest.mark.slow


def _lines_run(operators):
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        compile_application(RandomGraph(operators=operators))
    finally:
        sys.settrace(before)
    return count


@pytest.mark.trial
def test_planning_four_times_the_operators_takes_four_times_the_steps():
    """Two loops over all operators, one inside the other, would make it 4.2 times."""
    _lines_run(1)
    assert _lines_run(400) < 4.1 * _lines_run(100)


def test_the_same_seed_draws_the_same_graph():
    plans = [compile_application(RandomGraph(operators=300, seed=seed)).plan for seed in (1, 1, 2)]
    first, again, other = map(fingerprint, plans)
    assert first == again != other
