"""The page of results: each benchmark with `--write-docs` replaces its own part and its own charts."""

import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench._chart import Chart

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
IMAGES = ROOT / "docs" / "images"
_MARK = "<!-- measured by bench {name} -->\n"
_ANY_MARK = re.compile(_MARK.format(name=r"(\w+)"))


def with_part(page: str, name: str, text: str) -> str:
    """The page with this benchmark's part: it replaces the old one, or comes at the end."""
    before, *marked = _ANY_MARK.split(page)
    assert not before.strip(), "every part of the page belongs to a benchmark"
    parts = dict(zip(marked[::2], marked[1::2], strict=True))
    parts[name] = text
    return "\n".join(_MARK.format(name=each) + part.strip("\n") + "\n" for each, part in parts.items())


def write_part(name: str, text: str, *charts: Chart) -> None:
    """Write this benchmark's part of the page, with the charts at its end; the other parts stay."""
    for chart in charts:
        (IMAGES / f"{chart.file}.svg").write_text(chart.svg(), encoding="utf-8")
    text = "\n\n".join([text.rstrip("\n"), *(f"![{each.title}](images/{each.file}.svg)" for each in charts)])
    PAGE.write_text(with_part(PAGE.read_text(encoding="utf-8"), name, text), encoding="utf-8")


def machine_in_words() -> str:
    """The machine on which the figures were measured."""
    memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    cores = len(os.sched_getaffinity(0))
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"{cores} cores and {memory} GiB of memory, {system}"


def spread(figures: Sequence[float], digits: int = 0) -> str:
    """The median, with the least and the largest figure."""
    return f"{median(figures):.{digits}f} ({min(figures):.{digits}f} to {max(figures):.{digits}f})"
