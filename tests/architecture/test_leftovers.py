"""The repository holds what its readers expect at its top, and no leftovers of tests, trials and merges."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXPECTED = {
    *("dagkit", "operators", "apps", "tests", "docs", "bench", ".ci"),
    *("README.md", "CONTRIBUTING.md", "LICENSE", "NOTICE"),
    *("Makefile", "pyproject.toml", "hatch_build.py", "dagkit_pytest.py", ".gitignore"),
}


def tracked() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout: `git clone` makes one")
    command = ["git", "ls-files"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S603 - it lists names
    return listed.splitlines()


def test_the_top_level_holds_what_is_expected_there() -> None:
    assert {path.partition("/")[0] for path in tracked()} == EXPECTED


def test_no_document_holds_the_marks_of_a_conflict() -> None:
    pages = [path for path in tracked() if path.endswith(".md")]
    marked = [path for path in pages if "\n<<<<<<< " in (ROOT / path).read_text(encoding="utf-8")]
    assert pages
    assert marked == []
