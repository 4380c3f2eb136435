"""The repository holds what its readers expect at its top, and no leftovers of tests, trials and merges."""

from pathlib import Path

import pytest

from tests.processes import run_program

ROOT = Path(__file__).parents[2]
EXPECTED = {
    *("dagkit", "operators", "apps", "tests", "docs", "bench", ".ci"),
    *("README.md", "CONTRIBUTING.md", "LICENSE", "NOTICE"),
    *("Makefile", "pyproject.toml", "constraints.txt", ".gitignore"),
    *("hatch_build.py", "dagkit_pytest.py", "conftest.py"),
}


def tracked():
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout: `git clone` makes one")
    return run_program(["git", "ls-files"], cwd=ROOT).stdout.splitlines()


def test_the_top_level_holds_what_is_expected_there():
    assert {path.partition("/")[0] for path in tracked()} == EXPECTED


def test_no_document_holds_the_marks_of_a_conflict():
    pages = [path for path in tracked() if path.endswith(".md")]
    marked = [path for path in pages if "\n<<<<<<< " in (ROOT / path).read_text(encoding="utf-8")]
    assert pages
    assert marked == []
