"""pytest finds the fixtures by itself, and starts without what they need."""

import sys

import pytest

from dagkit.engine.program.points import Point
from tests.processes import run_program


@pytest.mark.slow
def test_the_fixture_comes_once_for_each_step(tmp_path):
    (tmp_path / "test_steps.py").write_text(
        "import pytest\n"
        "def test_step(crashes): print(crashes)\n"
        "@pytest.mark.parametrize('n', [1, 4])\n"
        "def test_beside(crashes, n): print(crashes, 'and', n)\n"
        "@pytest.mark.parametrize('n, crashes', [(1, 'mine')])\n"
        "def test_chosen(crashes, n): assert crashes == 'mine'\n"
        "def test_clock(fake_clock): print(fake_clock.now())\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", str(tmp_path)]
    answer = run_program(command, cwd=tmp_path)
    assert [f"Crashes({point})" in answer.stdout for point in Point] == [True] * len(Point)
    assert all(f"Crashes({point}) and {n}" in answer.stdout for point in Point for n in (1, 4))
    assert "2024-01-01 00:00:00+00:00" in answer.stdout
    assert f"{3 * len(Point) + 2} passed" in answer.stdout


def test_pytest_starts_without_the_package():
    program = "import sys, dagkit_pytest; print([name for name in sys.modules if name.partition('.')[0] == 'dagkit'])"
    answer = run_program([sys.executable, "-c", program])
    assert answer.stdout == "[]\n"
