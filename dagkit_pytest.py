"""The pytest plugin of dagkit: the fixtures `crashes` and `fake_clock`.

It is a module of its own, because pytest imports it at each start, and importing the package takes a while.

def test_no_word_is_lost(crashes):
    assert run_app(WordCount(), {"Lines": ["to be"]}, crashes=crashes)["counts"] == [("to", 1), ("be", 1)]
"""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from dagkit.testing import Crashes, FakeClock


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes `crashes` once for each step of a window."""
    if "crashes" in metafunc.fixturenames and not metafunc.definition.get_closest_marker("parametrize"):
        from dagkit.engine.points import Point  # noqa: PLC0415 - pytest starts without it

        metafunc.parametrize("crashes", list(Point), ids=str, indirect=True)


@pytest.fixture
def crashes(request: pytest.FixtureRequest) -> "Crashes":
    """Ends a run after one step of each of its windows and launches it again; the test runs once for each step."""
    from dagkit.testing import Crashes  # noqa: PLC0415 - as above

    return Crashes(request.param)


@pytest.fixture
def fake_clock() -> "FakeClock":
    """A clock that the test sets."""
    from dagkit.testing import FakeClock  # noqa: PLC0415 - as above

    return FakeClock()
