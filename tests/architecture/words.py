"""Count the texts that use words which this project writes in plainer English.

    python -m tests.architecture.words [PATH …]

Texts are docstrings, comments, messages and the paragraphs of documents. With paths, the texts are listed that use
such a word; without, only their share is.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = ("dagkit", "operators", "apps", "bench", "hatch_build.py")
TESTS = ("tests",)
DOCUMENTS = ("docs", "README.md", "CONTRIBUTING.md")
PRIVATE = re.compile(r"\b(whoever|nobody|somebody|anew|slips?|mend(?:s|ed|ing)?|tells?|telling|told)\b", re.IGNORECASE)
"""Words that readers stumble over: name the actor, and say report, fix, again, mistake."""


@dataclass(frozen=True, slots=True)
class Text:
    """One docstring, comment, message or paragraph, and where it begins."""

    path: str
    line: int
    kind: str
    text: str

    @property
    def words(self) -> list[str]:
        return PRIVATE.findall(self.text)


def texts(root: Path = ROOT, homes: Sequence[str] = (*CODE, *TESTS, *DOCUMENTS)) -> Iterator[Text]:
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
    """The docstrings, comments and messages of a module."""
    seen: set[int] = set()
    for node in ast.walk(tree := ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            seen.add(id(node.value))
            yield Text(path, node.lineno, "docstring", node.value.value)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in seen
            and " " in node.value
        ):
            yield Text(path, node.lineno, "message", node.value)
    yield from comments(path, source)


def comments(path: str, source: str) -> Iterator[Text]:
    """The comments of a module; lines of comment that follow each other are one."""
    begun, last, held = 0, -1, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if held and token.start[0] != last + 1:
            yield Text(path, begun, "comment", " ".join(held))
            held = []
        begun, last = (begun if held else token.start[0]), token.start[0]
        held.append(token.string.lstrip("# "))
    if held:
        yield Text(path, begun, "comment", " ".join(held))


def paragraphs(path: str, document: str) -> Iterator[Text]:
    """The paragraphs, rows of tables and entries of lists of a document, without its fenced blocks."""
    fenced, held, begun = False, list[str](), 0
    for number, line in enumerate([*document.splitlines(), ""], 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        is_new = not line.strip() or line.lstrip().startswith(("```", "|", "* ", "- ", "#"))
        if held and (is_new or fenced):
            yield Text(path, begun, "paragraph", " ".join(held))
            held = []
        if line.strip() and not fenced and not line.lstrip().startswith("```"):
            begun = begun if held else number
            held.append(line.strip())


def share(found: Sequence[Text]) -> float:
    """How many of the texts use such a word, of 1."""
    return sum(bool(text.words) for text in found) / len(found) if found else 0.0


def main(homes: Sequence[str]) -> None:
    found = list(texts(homes=homes)) if homes else list(texts())
    lines = [f"{text.path}:{text.line}: {text.kind}: {', '.join(text.words)}" for text in found if text.words]
    for kind in ("docstring", "comment", "message", "paragraph"):
        of_kind = [text for text in found if text.kind == kind]
        lines.append(f"{share(of_kind):7.2%} of {len(of_kind)} {kind}s")
    print("\n".join(lines if homes else lines[-4:]))  # noqa: T201 - a command prints its result


if __name__ == "__main__":
    main(sys.argv[1:])
