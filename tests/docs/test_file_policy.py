"""The table of docs/file-policy.md names tests that exist."""

import re

from tests.docs.fences import ROOT


def test_each_row_of_the_file_policy_names_tests_that_exist() -> None:
    tests = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    table = (ROOT / "docs" / "file-policy.md").read_text("utf-8").partition("\n## ")[0]
    rows = [row for row in table.splitlines() if row.startswith("| ")]
    named = [re.findall(r"`(test_\w+)`", row) for row in rows[1:]]
    assert len(named) > 10
    assert all(named)
    assert [name for name in re.findall(r"`(test_\w+)`", table) if f"\ndef {name}(" not in tests] == []
