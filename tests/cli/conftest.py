"""Commands as people call them, in a folder of their own with applications to call them on."""

import json
import os
import pty
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from dagkit.cli import main
from tests.cli.samples import DISCONNECTED, WORD_COUNT
from tests.old_files import aged
from tests.patience import PATIENT, within
from tests.processes import run_program

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def document(self):
        return json.loads(self.out)

    def fails(self, code, *parts):
        """Check that the command ended with this code, without a result, and that its messages have these parts."""
        assert (self.code, self.out) == (code, ""), self.err
        assert [part for part in parts if part not in self.err] == [], self.err


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder in which the command is called; the caller's own settings stay outside."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in list(os.environ):
        if (name.startswith("DAGKIT") and name not in PATIENT) or name in {"NO_COLOR", "FORCE_COLOR"}:
            monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def write(folder):
    def write(name, text):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return aged(path)

    return write


@pytest.fixture
def word_count(write):
    return write("word_count.py", WORD_COUNT).name


@pytest.fixture
def disconnected(write):
    return write("disconnected.py", DISCONNECTED).name


@pytest.fixture
def dagkit():
    """Call a command in this process. An exception that click does not know is raised here, and fails the test."""

    def call(*arguments, **environment):
        result = CliRunner().invoke(main, arguments, env=environment, prog_name="dagkit", catch_exceptions=False)
        return Answer(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture
def process(folder):
    """Call a command as a process of its own, as a shell does."""

    def call(*arguments, python=(), **environment):
        path = os.pathsep.join([str(ROOT), str(ROOT / "operators")])
        done = run_program(
            [sys.executable, *(python or ("-W", "error", "-m", "dagkit.cli")), *arguments],
            check=False,
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": path, **PATIENT, **environment},
            seconds=50,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def launch(dagkit):
    """Launch the application `app.py` until its input ends."""

    def launch(*options):
        answer = dagkit("launch", "app.py", "--once", "--reference", "--no-sync", *options)
        assert answer.code == 0, answer.err

    return launch


def on_terminal(command, folder, environment, *, stdout=None):
    """What a program shows on a terminal, which also gets its results unless `stdout` is another file. It succeeds."""
    ours, theirs = pty.openpty()
    program = subprocess.Popen(  # noqa: S603 - a command of a test
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=theirs if stdout is None else stdout,
        stderr=theirs,
        env=environment,
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:  # Linux reports so that the other end is closed
        pass
    os.close(ours)
    assert program.wait(within(50)) == 0
    return shown
