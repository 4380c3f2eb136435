"""`make run` installs what running takes, and no more."""

import shutil

import pytest

from tests.packaging.building import ROOT
from tests.processes import run_program

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


def recipe_of(target, environment):
    """The commands that make would run for a target in an empty environment."""
    command = ["make", "--no-print-directory", "-n", target, f"VENV={environment}"]
    return run_program(command, cwd=ROOT, seconds=600).stdout


def test_running_installs_no_tools_for_tests(tmp_path):
    assert "pip install" in recipe_of("run", tmp_path / "venv")
    assert "[dev]" not in recipe_of("run", tmp_path / "venv")
    assert "[dev]" in recipe_of("units", tmp_path / "venv")


def test_an_environment_for_tests_runs_applications_as_it_is(tmp_path):
    (tmp_path / "venv").mkdir()
    for stamp in ("installed", "ready"):
        (tmp_path / "venv" / stamp).touch()
    assert "pip install" not in recipe_of("run", tmp_path / "venv")
    assert "pip install" not in recipe_of("units", tmp_path / "venv")
