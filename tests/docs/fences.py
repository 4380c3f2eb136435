"""The fenced blocks of a document, and what each of them is for.

    python            runs; what it prints is compared with the `text output` fence that follows it
    python NAME.py    is a file beside the others that run, as is `xml NAME.xml` and any other fence with a file's name
    python apps/…     is a part of that file of the repository, word by word; so is `xml apps/…`
    console           is typed into a shell, line by line after `$ `; what follows a line is what it prints
    console exits 3   the same, for a command that ends so
    python shared     runs before every program of its document
    ... fault         causes the code that its heading names
    ... repair        takes the place of the faults of its language, and causes nothing
    sh                is for the reader; its `make` targets exist

Any other info string is a mistake, unless `PROSE` holds it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROLES = ("", "shared", "fault", "repair", "output")
PROGRAMS = ("python", "xml", "properties", "toml", "json", "yaml", "dockerfile")
PROSE = ("text", "text steps", "layers", "rooms", "mermaid", "java")
"""Fences that nothing runs; what a test reads in them is said beside the test."""

_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_FILE_NAME = re.compile(r"[\w.-]+\.[a-z]+")


@dataclass(frozen=True, slots=True)
class Fence:
    """One fenced block: its info string, its text, and where it stands."""

    document: str
    line: int
    """The line of the document that the text begins on."""
    heading: str
    info: str
    text: str

    @property
    def language(self) -> str:
        return self.info.partition(" ")[0]

    @property
    def role(self) -> str:
        return self.info.partition(" ")[2]

    @property
    def file_name(self) -> str | None:
        """The file that this fence is, where it is one."""
        return self.role if self.language in PROGRAMS and _FILE_NAME.fullmatch(self.role) else None

    @property
    def excerpt_of(self) -> str | None:
        """The file of the repository that this fence quotes, where it quotes one."""
        return self.role if self.language in PROGRAMS and "/" in self.role else None

    @property
    def is_known(self) -> bool:
        if self.language in PROGRAMS:
            return self.role in ROLES or bool(self.file_name or self.excerpt_of)
        return self.info in (*PROSE, "sh", "console", "text output") or bool(
            re.fullmatch(r"console exits \d+", self.info)
        )

    def holds(self, line: int | None) -> bool:
        """Whether this line of the document is one of the fence's."""
        return line is not None and self.line <= line < self.line + self.text.count("\n")

    @property
    def in_place(self) -> str:
        """The text on the lines where the document has it, so that reports name the document's lines."""
        return "\n" * (self.line - 1) + self.text


def documents() -> list[Path]:
    """Every page with fences that is ours to keep true."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@cache
def fences_in(document: Path) -> tuple[Fence, ...]:
    """The fences of a document, in order."""
    return tuple(_fences(document.read_text(encoding="utf-8"), document.relative_to(ROOT).as_posix()))


def _fences(text: str, document: str) -> Iterator[Fence]:
    """Read a document once, from fence to fence: a `#` inside a fence is a comment and no heading."""
    heading, line, position = "", 1, 0
    for block in _FENCE.finditer(text):
        above = _HEADING.findall(text, position, block.start())
        heading = above[-1] if above else heading
        line, position = line + text.count("\n", position, block.end()), block.end()
        yield Fence(document, line - block[2].count("\n"), heading, block[1].strip(), block[2])


def headings_in(document: Path, level: int) -> list[str]:
    """The headings of one level, in order."""
    text = _FENCE.sub("", document.read_text(encoding="utf-8"))
    return [heading[1] for heading in re.finditer(rf"^{'#' * level} (.*)$", text, re.MULTILINE)]
