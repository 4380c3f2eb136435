"""The pages: fences, links and `make` targets are right, named tests exist, codes have headings, records have parts."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Final

from dagkit.errors import CODES, RUN_CODES
from tests.docs.fences import Fence, documents, fences_in, headings_in
from tests.lint.breach import ROOT, Breach, line_of


def fences_and_links_are_right() -> Iterator[Breach]:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for document in documents():
        fences = fences_in(document)
        for fence in fences:
            yield from _of_fence(fence, targets)
        if document.name != "errors.md":
            yield from _without_effect(fences)
        yield from _lost_links(document)


def _of_fence(fence: Fence, targets: set[str]) -> Iterator[Breach]:
    if not fence.is_known:
        yield Breach(fence.document, fence.line, f"an unknown fence, {fence.info!r}", "see tests/docs/fences.py")
    if fence.excerpt_of and fence.text not in (ROOT / fence.excerpt_of).read_text(encoding="utf-8"):
        yield Breach(fence.document, fence.line, f"{fence.excerpt_of} does not hold this text", "copy it again")
    named = re.findall(r"^make ([a-z-]+)", fence.text, re.MULTILINE) if fence.info == "sh" else []
    for target in sorted(set(named) - targets):
        yield Breach(fence.document, fence.line, f"make has no target {target}", "name one of the Makefile")


def _without_effect(fences: tuple[Fence, ...]) -> Iterator[Breach]:
    """Programs that neither assert nor print, and define nothing that a later one uses."""
    later = "\n".join(fence.text for fence in fences if fence.language in ("python", "console"))
    for fence in fences:
        if fence.language != "python" or fence.excerpt_of or re.search(r"\b(assert|print)\b", fence.text):
            continue
        later = later.partition(fence.text)[2]
        names = {n.name for n in ast.parse(fence.text).body if isinstance(n, ast.ClassDef | ast.FunctionDef)}
        names |= {(fence.file_name or "").removesuffix(".py")} - {""}
        if not any(re.search(rf"\b{name}\b", later) for name in names):
            yield Breach(fence.document, fence.line, "this program shows nothing", "let it print or assert something")


def _lost_links(document: Path) -> Iterator[Breach]:
    text, path = document.read_text(encoding="utf-8"), document.relative_to(ROOT).as_posix()
    prose = re.sub(r"^```.*?^```$|`[^`\n]+`", "", text, flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", prose):
        if not (document.parent / target).exists():
            yield Breach(path, line_of(text, f"]({target}"), f"there is no {target}", "link to a page that exists")


PAGE: Final = "docs/errors.md"


def codes_and_headings_agree() -> Iterator[Breach]:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    headings, codes = headings_in(ROOT / PAGE, 2), [*CODES, *RUN_CODES]
    for heading, code in zip_longest(headings, codes):
        if heading != code:
            help_ = "dagkit.errors lists the codes, in the order of the page"
            yield Breach(PAGE, line_of(text, f"\n## {heading}") + 1, f"{heading} stands in the place of {code}", help_)
            break
    fences = fences_in(ROOT / PAGE)
    for code in codes:
        shown = [fence for fence in fences if fence.heading == code]
        for part, is_part in (("fault", is_cause), ("repair", is_cure)):
            if not any(map(is_part, shown)):
                problem, line = f"{code} shows no {part}", line_of(text, f"\n## {code}\n") + 1
                yield Breach(PAGE, line, problem, f"add a fence whose role is {part}, as `python {part}`")


def is_cause(fence: Fence) -> bool:
    """Whether running the fence gives the code of its heading."""
    return fence.role == "fault" or fence.info.startswith("console exits")


def is_cure(fence: Fence) -> bool:
    """Whether running the fence succeeds, in the same folder."""
    return fence.role == "repair" or fence.info == "console"


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


PARTS: Final = ["Context", "Choice", "Cost"]


def records_have_their_parts() -> Iterator[Breach]:
    numbers: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "docs/decisions").glob("*.md")):
        numbers[path.stem[:4]].append(path.name)
        yield from breaches_of(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
    for number, names in numbers.items():
        if len(names) > 1:
            yield Breach(f"docs/decisions/{names[-1]}", 1, f"{names[0]} has number {number}, too", "take a new number")


def breaches_of(path: Path, text: str) -> Iterator[Breach]:
    title = f"# {path.stem[:4]}: "
    if not text.startswith(title):
        yield Breach(str(path), 1, "the title is not that of this file", f"begin with {title!r}")
    parts = re.findall(r"^\*\*(\w+)\.\*\*", text, re.MULTILINE)
    if parts != PARTS:
        yield Breach(str(path), 1, f"its parts are {parts}", "write **Context.**, **Choice.** and **Cost.**, in order")
