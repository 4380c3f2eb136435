"""Temporary folders go when their process ends; the next process deletes those of killed ones."""

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from dagkit.backends.spark.session.own_folder import own_folder
from tests.patience import within
from tests.processes import limited, next_line

MAKE = (
    "from dagkit.backends.spark.session.own_folder import own_folder; "
    "print(own_folder('dagkit-x-'), flush=True); input()"
)


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Starts a process that makes a folder, and ends when it reads a line."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with ExitStack() as started:

        def start():
            process = subprocess.Popen([sys.executable, "-c", MAKE], env=environment, **pipes)  # noqa: S603 - our own
            started.enter_context(limited(process, 120))
            started.callback(process.kill)
            return process, Path(next_line(process).strip())

        yield start


@pytest.mark.slow
def test_the_folders_of_killed_processes_are_deleted_and_no_others(make, tmp_path):
    killed, left = make()
    running, held = make()
    exited, gone = make()
    (left / "bin").mkdir()
    (left / "bin" / "java").symlink_to(sys.executable)
    killed.kill()
    killed.wait(within(120))
    exited.communicate("\n", timeout=within(120))
    (strange := tmp_path / "dagkit-x-strange").mkdir()
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (elsewhere / ".held").touch()
    (tmp_path / "dagkit-x-link").symlink_to(elsewhere)
    assert (left.exists(), gone.exists()) == (True, False)

    own = own_folder("dagkit-x-")

    assert running.poll() is None
    there = {own.name, held.name, strange.name, "dagkit-x-link"}
    assert {path.name for path in tmp_path.glob("*dagkit-x-*")} == there
    assert (elsewhere / ".held").exists()
    assert Path(sys.executable).exists()


def test_a_process_keeps_its_own_folders(make):
    assert all(folder.is_dir() for folder in [own_folder("dagkit-x-"), own_folder("dagkit-x-")])
