"""The page of results: each benchmark with `--write-docs` replaces its own part."""

import os
import platform
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
_MARK = "<!-- measured by bench {name} -->\n"
_ANY_MARK = re.compile(_MARK.format(name=r"(\w+)"))


def with_part(page: str, name: str, text: str) -> str:
    """The page with this benchmark's part: it replaces the old one, or comes at the end."""
    before, *marked = _ANY_MARK.split(page)
    assert not before.strip(), "every part of the page belongs to a benchmark"
    parts = dict(zip(marked[::2], marked[1::2], strict=True))
    parts[name] = text
    return "\n".join(_MARK.format(name=each) + part.strip("\n") + "\n" for each, part in parts.items())


def write_part(name: str, text: str) -> None:
    """Write this benchmark's part of the page; the other parts stay."""
    PAGE.write_text(with_part(PAGE.read_text(encoding="utf-8"), name, text), encoding="utf-8")


def machine_in_words() -> str:
    """The machine on which the figures were measured."""
    memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    cores = len(os.sched_getaffinity(0))
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"{cores} cores and {memory} GiB of memory, {system}"
