"""What `docs/installing.md` lists is what the project has, and what it shows of a command is what that prints."""

import re
import tomllib

from click.testing import CliRunner

from dagkit.cli import main
from tests.backends.test_preflight import NEEDED
from tests.docs.fences import ROOT, fences_in

DOCUMENT = ROOT / "docs/installing.md"
PAGE = DOCUMENT.read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def column_of(table):
    """What stands in backquotes in the first cell of each row, where the first column is called so."""
    rows = PAGE.partition(f"| {table} |")[2].splitlines()[2:]
    ended = next(number for number, row in enumerate(rows) if not row.strip().startswith("|"))
    return [re.findall(r"`([^`]+)`", row.split("|")[1]) for row in rows[:ended]]


def test_every_extra_the_least_python_and_what_workers_must_have_is_listed():
    assert sorted(name for names in column_of("Extra") for name in names) == sorted(PROJECT["optional-dependencies"])
    assert f"| Python {PROJECT['requires-python'].removeprefix('>=')} or later |" in PAGE
    always, *others = column_of("Package")
    assert sorted(always) == sorted(NEEDED)
    depends_on = {requirement.partition(">")[0] for requirement in PROJECT["dependencies"]}
    assert {name for names in (always, *others) for name in names} <= depends_on


def test_what_the_version_prints_is_shown():
    (shown,) = (fence.text for fence in fences_in(DOCUMENT) if fence.info == "text")
    assert _without_numbers(CliRunner().invoke(main, ["--version"]).stdout) == _without_numbers(shown)


def _without_numbers(text):
    """Line by line, without what differs between machines."""
    return [re.sub(r"\d+(\.\w+)*| (in C|by numpy).*", "…", line) for line in text.splitlines()]
