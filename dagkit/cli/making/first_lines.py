"""An application that reads lines of text, for one who has nothing to read yet."""

import os
import time
from pathlib import Path

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
