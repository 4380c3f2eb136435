"""Applications for a user who has nothing to read yet: one that reads lines of text, and the examples."""

import ast
import os
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path

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
    """The first line of the docstring of each example."""
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


_APPLICATION = '''\
"""Reads text files, and writes the lines that are not blank."""

from dagkit import Config, Dag, StreamingApplication
from dagkit_operators import FileSplitterInput, Filter, LineReader, RecordWriter


def is_kept(line: str) -> bool:
    """Whether to write a line."""
    return bool(line.strip())


class {name}(StreamingApplication):
    """Its settings are in `properties.properties`; every property can be set there, or with -D."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        splitter = dag.add_operator("Splitter", FileSplitterInput())
        reader = dag.add_operator("Reader", LineReader())
        keep = dag.add_operator("Keep", Filter(is_kept))
        writer = dag.add_operator("Writer", RecordWriter())

        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("lines", reader.messages, keep.input)
        dag.add_stream("kept", keep.output, writer.input)
'''
_PROPERTIES = """\
# What to read, and where to write; relative to the folder in which the application is launched.
dt.operator.Splitter.prop.scanner.files = input
dt.operator.Writer.prop.filePath = output
"""
_TEST = '''\
"""The application, run in memory on a small file."""

from pathlib import Path

import pytest
from app import {name}
from dagkit.testing import run_app


def test_blank_lines_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lines.txt").write_text("to be\\n\\nor not\\n")
    conf = {{"dt.operator.Splitter.prop.scanner.files": "lines.txt", "dt.operator.Writer.prop.filePath": "output"}}
    outputs = run_app({name}(), conf=conf)
    assert [record.value for record in outputs["kept"]] == ["to be", "or not"]
'''
_INPUT = "a first line\n\na second line, after a blank one\n"


def write_lines(place: Path, name: str) -> None:
    """Write an application that reads some lines, with a test."""
    (place / "input").mkdir(parents=True)
    for file, text in (("app.py", _APPLICATION), ("test_app.py", _TEST)):
        (place / file).write_text(text.format(name=name), encoding="utf-8")
    (place / "properties.properties").write_text(_PROPERTIES, encoding="utf-8")
    write_input(place / "input" / "lines.txt", _INPUT)


def write_input(file: Path, text: str) -> None:
    """Write a first input, with the time of a minute ago: a launch waits for files that were changed just now."""
    file.write_text(text, encoding="utf-8")
    minute_ago = time.time() - 60
    os.utime(file, (minute_ago, minute_ago))
