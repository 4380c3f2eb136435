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
        for case in _others(name, cases, marker.args[0]):
            case.add_marker(pytest.mark.trial)
    return (yield)


def _others(name: str, cases: list[pytest.Item], count: int) -> list[pytest.Item]:
    """All cases but so many, which show as many values of the parameters as they can."""
    others = random.Random(name).sample(cases, len(cases))  # noqa: S311 - no secret
    shown: set[tuple[str, int]] = set()
    for _ in range(min(count, len(cases))):
        case = max(others, key=lambda case: len(_values(case) - shown))
        others.remove(case)
        shown |= _values(case)
    return others


def _values(case: pytest.Item) -> set[tuple[str, int]]:
    """The values of a case: the number of each in its parameter."""
    callspec = getattr(case, "callspec", None)
    return set(callspec.indices.items()) if callspec else set()
