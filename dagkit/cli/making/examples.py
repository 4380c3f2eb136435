"""The examples that a user may copy."""

import ast
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from dagkit.cli.making.first_lines import write_input
from dagkit.cli.terminal.output import WrongUsage
from dagkit.errors import did_you_mean

_WORDS = "to be or not to be\n.a line that begins with a dot\nthat is the question\n"

SAMPLES: Mapping[str, tuple[str, str]] = {
    "count": ("", ""),
    "file_copy": ("input/words.txt", _WORDS),
    "line_filter": ("input/words.txt", _WORDS),
    "log_levels": (
        "input/disks.log",
        "INFO storage 8 disks\nWARNING storage disk 7 is slow\nERROR storage disk 7 is full\n",
    ),
    "tail": (
        "logs/disks.log",
        "2024-05-01T12:00:00+00:00 ERROR disk 7 is full\n2024-05-01T12:00:01+00:00 INFO 8 disks\n",
    ),
    "word_count": ("input/words.txt", _WORDS),
}
"""The examples that can be launched at once, with a first input; the others read what takes a program to make."""


def examples() -> dict[str, Path]:
    """The folders of the examples by name: those of the wheel, or of the repository."""
    package = Path(sys.modules["dagkit"].__path__[0])
    homes = [home for home in (package / "examples", package.parent / "apps") if home.is_dir()]
    return {app.parent.name: app.parent for home in homes[:1] for app in sorted(home.glob("*/app.py"))}


def descriptions() -> dict[str, str]:
    """The first line of what each example says about itself."""
    return {name: _description(folder / "app.py") for name, folder in examples().items()}


def copy_example(name: str, place: Path) -> None:
    """Copy an example, with a first input if it has one."""
    known = examples()
    if name not in known:
        raise WrongUsage(f"there is no example {name!r}; {did_you_mean(name, known)}")
    shutil.copytree(known[name], place, ignore=shutil.ignore_patterns("__pycache__"))
    file, text = SAMPLES.get(name, ("", ""))
    if file:
        (place / file).parent.mkdir()
        write_input(place / file, text)


def _description(app: Path) -> str:
    text = ast.get_docstring(ast.parse(app.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]
