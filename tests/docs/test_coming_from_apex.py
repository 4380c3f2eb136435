"""The tables of attributes in `docs/coming-from-apex.md` are the catalogue."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from dagkit.api.attributes import CONTEXTS, Attribute, Standing
from tests.docs.fences import ROOT

PAGE = (ROOT / "docs/coming-from-apex.md").read_text(encoding="utf-8")
HEADINGS = {
    Standing.HONOURED: "### Honoured",
    Standing.HINT: "### Hints",
    Standing.ADVISORY: "### Accepted without effect",
}
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
