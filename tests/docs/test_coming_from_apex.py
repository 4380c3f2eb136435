"""The tables of attributes in `docs/coming-from-apex.md` are the catalogue."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

import dagkit
import dagkit_operators
from dagkit.api.attributes import CONTEXTS, Attribute, Standing
from dagkit.names_of_apex import COUNTERPARTS
from tests.docs.fences import ROOT

PAGE = (ROOT / "docs/coming-from-apex.md").read_text(encoding="utf-8")
HEADINGS = {
    Standing.HONOURED: "### Honoured",
    Standing.HINT: "### Hints",
    Standing.ADVISORY: "### Accepted without effect",
}
WITHOUT_COUNTERPART = {"OperatorRequest", "OperatorResponse", "LogicalPlan", "PhysicalPlan", "AssertTrue"}
"""Classes of Apex that the table names, and that nobody would import here."""
BEARERS = {"DagContext": "application", "OperatorContext": "operator", "PortContext": "port"}


def _row(context: type, attribute: Attribute[Any]) -> str:
    shown = "" if attribute.default is None else f"`{getattr(attribute.default, 'value', attribute.default)}`"
    return f"| {attribute.name} | {BEARERS[context.__name__]} | {shown} | {attribute.meaning} |"


def _rows(standing: Standing) -> Iterator[str]:
    for context in CONTEXTS:
        for attribute in context.attributes().values():
            if attribute.standing is standing:
                yield _row(context, attribute)


@pytest.mark.parametrize("standing", Standing)
def test_the_table_of_a_standing_lists_its_attributes(standing: Standing) -> None:
    section = PAGE.partition(HEADINGS[standing])[2].partition("\n#")[0]
    written = re.findall(r"^\| [A-Z_]+ \|.*\|$", section, re.MULTILINE)
    expected = list(_rows(standing))
    assert written == expected, "the table shall be:\n" + "\n".join(expected)


def test_the_three_standings_are_all_there_are() -> None:
    assert set(HEADINGS) == set(Standing)


def test_each_defect_that_is_not_here_names_tests_that_exist() -> None:
    tests = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    section = PAGE.partition("## Defects that are not here")[2].partition("\n#")[0]
    rows = [row for row in section.splitlines() if row.startswith("| ")]
    named = [re.findall(r"`(test_\w+)`", row) for row in rows[1:]]
    assert len(named) == 10
    assert all(named)
    assert [name for name in re.findall(r"`(test_\w+)`", section) if f"\ndef {name}(" not in tests] == []


def _counterparts() -> list[tuple[str, str]]:
    """The rows of the first table: what Apex has, and what dagkit has."""
    section = PAGE.partition("## Counterparts")[2].partition("\n#")[0]
    rows = [row.strip("| ").split(" | ", 1) for row in section.splitlines() if row.startswith("| ")]
    return [(apex, here) for apex, here in rows[1:]]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


@pytest.mark.parametrize("name", COUNTERPARTS)
def test_each_name_of_apex_has_a_row_with_its_counterparts(name: str) -> None:
    rows = [_words(here) for apex, here in _counterparts() if name in _words(apex)]
    assert any({full.rpartition(".")[2] for full in COUNTERPARTS[name].names} <= words for words in rows)


def test_each_class_in_the_rows_has_its_name_here_or_a_counterpart() -> None:
    here = {*dagkit.__all__, *dagkit_operators.__all__, *COUNTERPARTS, *WITHOUT_COUNTERPART}
    left = " ".join(re.findall(r"`([^`]*)`", " ".join(apex for apex, _ in _counterparts())))
    named = set(re.findall(r"(?<!new )\b[A-Z]\w*[a-z][A-Z]\w*", left))
    assert len(named) > 50
    assert named - here == set()
