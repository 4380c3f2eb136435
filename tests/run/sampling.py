"""Which cases of a test run in the gate: `@pytest.mark.gate(3)` leaves three of many, and makes the others trials."""

import random
from collections import defaultdict
from collections.abc import Iterator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark the other cases as trials. The choice is the same in each run, and varies from test to test."""
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("gate") and not item.get_closest_marker("trial"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for name, cases in tests.items():
        marker = cases[0].get_closest_marker("gate")
        assert marker is not None
        kept = set(random.Random(name).sample(cases, min(marker.args[0], len(cases))))  # noqa: S311 - no secret
        for case in cases:
            if case not in kept:
                case.add_marker(pytest.mark.trial)
    return (yield)
