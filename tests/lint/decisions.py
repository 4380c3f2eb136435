"""The records in `docs/decisions`: a number, and context, choice and cost."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.lint.breach import ROOT, Breach

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
