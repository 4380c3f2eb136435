"""What `docs/architecture.md` says of steps, modules and words is so, and the repository holds no leftovers."""

import re
from pathlib import Path

import pytest

from dagkit.compiler import STEPS
from tests.processes import run_program

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")


def test_the_steps_are_those_of_the_compiler_in_their_order():
    block = TEXT.partition("```text steps\n")[2].partition("```")[0]
    assert tuple(line.split()[0] for line in block.splitlines()) == STEPS


def test_every_file_and_folder_that_it_names_is_there():
    homes = (ROOT, ROOT / "dagkit", ROOT / "dagkit/compiler", ROOT / "docs")
    named = re.findall(r"`([a-z_]+/(?:[a-z_]+/?)*(?:\.py)?|[a-z_]+\.(?:py|md))`", TEXT)
    assert named
    assert [path for path in named if not any((home / path).exists() for home in homes)] == []


def test_every_word_stands_once_in_the_glossary():
    table = TEXT.partition("## Words")[2].partition("\n## ")[0]
    words = [word for row in re.findall(r"^\| ([a-z, ]+) \|", table, re.MULTILINE) for word in row.split(", ")]
    assert len(words) == len(set(words))
    assert {"operator", "port", "stream", "payload", "block", "window", "stage", "slot", "plan", "cut", "run"} <= set(
        words
    )


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
