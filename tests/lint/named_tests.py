"""The tests that pages name as proofs exist."""

import re
from collections.abc import Iterator
from typing import Final

from tests.lint.breach import ROOT, Breach, line_of

TABLES: Final = {"docs/file-policy.md": "", "docs/coming-from-apex.md": "## Defects that are not here"}
"""Pages with a table whose rows name tests, and the heading above it; without one, it is at the top."""


def pages_name_tests_that_exist() -> Iterator[Breach]:
    modules = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    tests = {name for module in modules for name in re.findall(r"^def (test_\w+)\(", module, re.MULTILINE)}
    for page, heading in TABLES.items():
        text = (ROOT / page).read_text(encoding="utf-8")
        section = (text.partition(heading)[2] if heading else text).partition("\n## ")[0]
        for row in [row for row in section.splitlines() if row.startswith("| ")][1:]:
            names = re.findall(r"`(test_\w+)`", row)
            for name in names:
                if name not in tests:
                    yield Breach(page, line_of(text, row), f"there is no {name}", "name the test that proves this row")
            if not names:
                yield Breach(page, line_of(text, row), "this row names no test", "name the test that proves it")
