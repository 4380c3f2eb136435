"""Words that readers stumble over, each with the plainer one, in docstrings, comments, messages and paragraphs."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.lint.breach import ROOT, Breach


@dataclass(frozen=True, slots=True)
class Text:
    """One docstring, comment, message or paragraph, and where it begins."""

    path: str
    line: int
    kind: str
    text: str


def texts(homes: Sequence[str], root: Path = ROOT) -> Iterator[Text]:
    """All texts below these files and folders."""
    for home in homes:
        place = root / home
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            name = path.relative_to(root).as_posix()
            if path.suffix == ".py":
                yield from texts_of_code(name, path.read_text(encoding="utf-8"))
            elif path.suffix == ".md":
                yield from paragraphs(name, path.read_text(encoding="utf-8"))


def texts_of_code(path: str, source: str) -> Iterator[Text]:
    """The docstrings, comments and messages of a module, and the names of its tests."""
    docstrings: set[int] = set()
    for node in ast.walk(tree := ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docstrings.add(id(node.value))
            yield Text(path, node.lineno, "docstring", node.value.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            if " " in node.value:
                yield Text(path, node.lineno, "message", node.value)
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield Text(path, node.lineno, "name", node.name.replace("_", " "))
    yield from comments(path, source)


def comments(path: str, source: str) -> Iterator[Text]:
    """The comments of a module, line by line."""
    if "#" in source:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield Text(path, token.start[0], "comment", token.string.lstrip("# "))


def paragraphs(path: str, document: str) -> Iterator[Text]:
    """The paragraphs, rows of tables and entries of lists of a document, without its fenced blocks."""
    fenced, lines, begun = False, list[str](), 0
    for number, line in enumerate([*document.splitlines(), ""], 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        is_new = not line.strip() or line.lstrip().startswith(("```", "|", "* ", "- ", "#"))
        if lines and (is_new or fenced):
            yield Text(path, begun, "paragraph", " ".join(lines))
            lines = []
        if line.strip() and not fenced and not line.lstrip().startswith("```"):
            begun = begun if lines else number
            lines.append(line.strip())


CODE: Final = ("dagkit", "operators", "apps", "bench", "hatch_build.py", "docs", "README.md", "CONTRIBUTING.md")
TESTS: Final = ("tests", "conftest.py")
REPLACEMENTS: Final = {
    r"whoever|somebody": "name the actor: the reader, the driver, an operator",
    r"nobody": "name the actor: no operator, no process",
    r"anew": "write: again",
    r"slips?": "write: mistake",
    r"mend(?:s|ed|ing)?": "write: fix, repair",
    r"tells?|telling|told": "write: report, return, print, say what",
}
_PLAINER: Final = {re.compile(rf"\b({word})\b", re.IGNORECASE): help_ for word, help_ in REPLACEMENTS.items()}
_ANY: Final = re.compile("|".join(REPLACEMENTS), re.IGNORECASE)


def words_have_plain_replacements() -> Iterator[Breach]:
    """Everything that users and maintainers read; the strings of tests are data."""
    for text in texts(CODE):
        yield from breaches_in(text)
    for text in texts(TESTS):
        if text.kind != "message":
            yield from breaches_in(text)


def breaches_in(text: Text) -> Iterator[Breach]:
    if not _ANY.search(text.text):
        return
    for word, help_ in _PLAINER.items():
        for match in word.finditer(text.text):
            line = text.line + text.text.count("\n", 0, match.start())
            yield Breach(text.path, line, f"{match[1]!r} in a {text.kind}", help_)
