"""The tables of `docs/coming-from-apex.md` are the catalogue of attributes and the list of counterparts."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import dagkit
import dagkit_operators
from dagkit.api.attributes import CONTEXTS, Attribute, Standing
from dagkit.ground.names_of_apex import COUNTERPARTS
from tests.lint.breach import ROOT, Breach, line_of

PAGE: Final = "docs/coming-from-apex.md"
HEADINGS: Final = {
    Standing.HONOURED: "### Honoured",
    Standing.HINT: "### Hints",
    Standing.ADVISORY: "### Accepted without effect",
}
BEARERS: Final = {"DagContext": "application", "OperatorContext": "operator", "PortContext": "port"}
WITHOUT_COUNTERPART: Final = {"OperatorRequest", "OperatorResponse", "LogicalPlan", "PhysicalPlan", "AssertTrue"}
"""Classes of Apex that the table names, and that no author would import here."""


def attributes_stand_in_their_table() -> Iterator[Breach]:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    for standing, heading in HEADINGS.items():
        section = text.partition(heading)[2].partition("\n#")[0]
        rows, expected = re.findall(r"^\| [A-Z_]+ \|.*\|$", section, re.MULTILINE), list(_rows(standing))
        if rows != expected:
            problem = f"the table of {standing.value} attributes is not the catalogue"
            yield Breach(PAGE, line_of(text, heading), problem, "write:\n" + "\n".join(expected))


def attributes_have_an_effect() -> Iterator[Breach]:
    """An attribute that nothing reads is advisory, so the compiler warns an author who sets it."""
    declaring = ROOT / "dagkit/api/attributes.py"
    # by its context: two contexts may have an attribute of one name
    read = set(re.findall(r"\b\w+Context\.[A-Z_]+\b", "".join(_text(path) for path in _sources() if path != declaring)))
    for context in CONTEXTS:
        for name, attribute in context.attributes().items():
            if attribute.standing is not Standing.ADVISORY and f"{context.__name__}.{name}" not in read:
                line = line_of(_text(declaring), f"    {name} = ")
                yield Breach("dagkit/api/attributes.py", line, f"nothing reads {name}", "declare it as _ADVISORY")


def _sources() -> Iterator[Path]:
    return (ROOT / "dagkit").rglob("*.py")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def names_of_apex_have_rows() -> Iterator[Breach]:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    line = line_of(text, "## Counterparts")
    section = text.partition("## Counterparts")[2].partition("\n#")[0]
    rows = [row.strip("| ").split(" | ", 1) for row in section.splitlines() if row.startswith("| ")][1:]
    for name, counterpart in COUNTERPARTS.items():
        names = {full.rpartition(".")[2] for full in counterpart.names}
        if not any(name in _words(apex) and names <= _words(here) for apex, here in rows):
            problem = f"no row has {name} of Apex with its counterpart"
            yield Breach(PAGE, line, problem, f"add {', '.join(sorted(names))}")
    classes = " ".join(re.findall(r"`([^`]*)`", " ".join(apex for apex, _ in rows)))
    known = {*dagkit.__all__, *dagkit_operators.__all__, *COUNTERPARTS, *WITHOUT_COUNTERPART}
    for name in sorted(set(re.findall(r"(?<!new )\b[A-Z]\w*[a-z][A-Z]\w*", classes)) - known):
        yield Breach(
            PAGE, line_of(text, name), f"{name} has no counterpart", "add one to dagkit/ground/names_of_apex.py"
        )


def _rows(standing: Standing) -> Iterator[str]:
    for context in CONTEXTS:
        for attribute in context.attributes().values():
            if attribute.standing is standing:
                yield _row(context, attribute)


def _row(context: type, attribute: Attribute[Any]) -> str:
    shown = "" if attribute.default is None else f"`{getattr(attribute.default, 'value', attribute.default)}`"
    return f"| {attribute.name} | {BEARERS[context.__name__]} | {shown} | {attribute.meaning} |"


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))
