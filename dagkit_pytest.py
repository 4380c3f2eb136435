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
    """Run a test that takes `crashes` once for each step of a window, unless it chooses the steps itself."""
    if "crashes" in metafunc.fixturenames and not any(
        map(_names_crashes, metafunc.definition.iter_markers("parametrize"))
    ):
        from dagkit.engine.program.points import Point  # noqa: PLC0415 - pytest starts without it

        metafunc.parametrize("crashes", list(Point), ids=str, indirect=True)


def _names_crashes(parametrize: pytest.Mark) -> bool:
    """Whether this `@pytest.mark.parametrize` has values for `crashes`."""
    names = parametrize.args[0] if parametrize.args else parametrize.kwargs["argnames"]
    return "crashes" in ([name.strip() for name in names.split(",")] if isinstance(names, str) else names)


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
