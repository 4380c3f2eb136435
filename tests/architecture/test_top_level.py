"""The top level of the repository holds what its readers expect there, and nothing that a test or a trial left."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXPECTED = {
    *("dagkit", "operators", "apps", "tests", "docs", "bench", ".ci"),
    *("README.md", "CONTRIBUTING.md", "LICENSE", "NOTICE"),
    *("Makefile", "pyproject.toml", "hatch_build.py", ".gitignore"),
}


def test_the_top_level_holds_what_is_expected_there() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout: `git clone` makes one")
    command = ["git", "ls-files"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S603 - it lists names
    assert {path.partition("/")[0] for path in listed.splitlines()} == EXPECTED
