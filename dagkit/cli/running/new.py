"""`dagkit new`: a folder with an application, its property file and a test that passes."""

import ast
import contextlib
import os
import re
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import rich_click as click

from dagkit.cli.application.options import spoken
from dagkit.cli.terminal.output import Output, WrongUsage, shown_from
from dagkit.errors import RunFailure, did_you_mean, printable

APPLICATION = '''\
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
PROPERTIES = """\
# What to read, and where to write; relative to the folder in which the application is launched.
dt.operator.Splitter.prop.scanner.files = input
dt.operator.Writer.prop.filePath = output
"""
TEST = '''\
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
INPUT = "a first line\n\na second line, after a blank one\n"
WORDS = "to be or not to be\n.a line that begins with a dot\nthat is the question\n"
SAMPLES: Mapping[str, tuple[str, str]] = {
    "count": ("", ""),
    "file_copy": ("input/words.txt", WORDS),
    "line_filter": ("input/words.txt", WORDS),
    "log_levels": (
        "input/disks.log",
        "INFO storage 8 disks\nWARNING storage disk 7 is slow\nERROR storage disk 7 is full\n",
    ),
    "tail": (
        "logs/disks.log",
        "2024-05-01T12:00:00+00:00 ERROR disk 7 is full\n2024-05-01T12:00:01+00:00 INFO 8 disks\n",
    ),
    "word_count": ("input/words.txt", WORDS),
}
"""The examples that can be launched at once, with a first input; the others read what takes a program to make."""


_NO_NAME = ""
"""The value of --example without a name."""


@click.command()
@click.argument("folder", metavar="FOLDER", required=False)
@click.option(
    "--example",
    metavar="NAME",
    is_flag=False,
    flag_value=_NO_NAME,
    help="Copy this example of dagkit, such as word_count; without NAME, list the examples.",
)
@click.option("--launch", "launches", is_flag=True, help="Also launch it once, in plain Python.")
@spoken
def new(*, folder: str | None, example: str | None, launches: bool, output: Output) -> None:
    """Make a folder with an application, its property file and a test that passes.

    FOLDER must not exist; the application is named after it.
    """
    if example == _NO_NAME:
        _list_examples(output)
        return
    if folder is None:
        raise click.UsageError("Missing argument 'FOLDER'.")
    place = Path(folder)
    if launches and output.as_json:
        raise click.UsageError("--launch does not go with --json")
    if launches and example in examples() and example not in SAMPLES:
        raise click.UsageError(f"--launch does not go with {example}, which brings no input; see its app.py")
    if place.exists():
        raise WrongUsage(f"{printable(folder)!r} exists already; name a folder that does not exist")
    try:
        if example is None:
            _write(place)
        else:
            shutil.copytree(_example(example), place, ignore=shutil.ignore_patterns("__pycache__"))
            _write_sample(place, example)
    except OSError as refused:
        problem = f"{printable(folder)} cannot be made: {refused.strerror or refused}"
        raise RunFailure(
            problem, "give a folder in a place where this user may write", code="result-unwritable"
        ) from refused
    files = sorted(file.relative_to(place).as_posix() for file in place.rglob("*") if file.is_file())
    if output.as_json:
        output.document("dagkit.new/1", {"folder": folder, "files": files})
        return
    output.result(f"{printable(folder)}: {', '.join(files)}")
    if launches:
        output.message(f"in {printable(folder)}: dagkit launch app.py --once --reference")
        _launch(place, ("-q",) if output.quiet else ())
    output.message(_next(folder, example))


def _launch(place: Path, options: Sequence[str]) -> None:
    """Launch the new application in its folder, on what its input holds."""
    from dagkit.cli.running.launch import launch  # noqa: PLC0415 - most calls do not launch

    with shown_from(Path.cwd()), contextlib.chdir(place):
        launch.main(
            ["app.py", "--once", "--reference", *options], parent=click.get_current_context(), standalone_mode=False
        )


def _write(place: Path) -> None:
    """Write the files of a new application."""
    words = re.findall(r"[A-Za-z0-9]+", place.name)
    name = "".join(word[:1].upper() + word[1:] for word in words)
    if not name or name[0].isdigit():
        raise WrongUsage(f"{place.name!r} makes no name of a class: begin it with a letter of A to Z")
    (place / "input").mkdir(parents=True)
    for file, text in (("app.py", APPLICATION), ("test_app.py", TEST)):
        (place / file).write_text(text.format(name=name), encoding="utf-8")
    (place / "properties.properties").write_text(PROPERTIES, encoding="utf-8")
    _write_input(place / "input" / "lines.txt", INPUT)


def _write_sample(place: Path, example: str) -> None:
    """Write a first input of an example, if it has one."""
    file, text = SAMPLES.get(example, ("", ""))
    if file:
        (place / file).parent.mkdir()
        _write_input(place / file, text)


def _write_input(file: Path, text: str) -> None:
    """Write a first input, with the time of a minute ago: a launch waits for files that were changed just now."""
    file.write_text(text, encoding="utf-8")
    minute_ago = time.time() - 60
    os.utime(file, (minute_ago, minute_ago))


def examples() -> dict[str, Path]:
    """The folders of the examples by name: those of the wheel, or of the repository."""
    package = Path(sys.modules["dagkit"].__path__[0])
    homes = [home for home in (package / "examples", package.parent / "apps") if home.is_dir()]
    return {app.parent.name: app.parent for home in homes[:1] for app in sorted(home.glob("*/app.py"))}


def _list_examples(output: Output) -> None:
    """Print the names of the examples, with the first line of what each says about itself."""
    described = {name: _description(folder / "app.py") for name, folder in examples().items()}
    if output.as_json:
        output.document("dagkit.examples/1", {"examples": described})
        return
    width = max(map(len, described), default=0)
    output.result("\n".join(f"{name:{width}}  {text}" for name, text in described.items()))


def _description(app: Path) -> str:
    text = ast.get_docstring(ast.parse(app.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]


def _example(name: str) -> Path:
    known = examples()
    if name not in known:
        raise WrongUsage(f"there is no example {name!r}; {did_you_mean(name, known)}")
    return known[name]


def _next(folder: str, example: str | None) -> str:
    """The commands to type next."""
    steps = [f"cd {printable(folder)}"]
    if example is None:
        if find_spec("pytest") is None:
            steps.append("python -m pip install pytest")
        steps += ["python -m pytest", "dagkit launch app.py --once --reference", "cat output/*"]
    elif example in SAMPLES:
        steps += ["dagkit graph app.py", "dagkit launch app.py --once --reference", "ls -R output"]
    else:
        steps += ["dagkit graph app.py", "dagkit config app.py"]
    return "next:\n" + "\n".join(f"  {step}" for step in steps)
