"""Builds the distributions of this very tree, and installs them in clean environments."""

import os
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from tests.processes import run_program

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Built:
    """A wheel and a source distribution, of the same tree."""

    wheel: Path
    sdist: Path

    @property
    def in_wheel(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            return {name for name in wheel.namelist() if not name.endswith("/")}

    def read(self, name):
        """The text of a file of the wheel's own description."""
        (path,) = (path for path in self.in_wheel if path.endswith(f".dist-info/{name}"))
        with zipfile.ZipFile(self.wheel) as wheel:
            return wheel.read(path).decode()

    @property
    def in_sdist(self):
        """The files of the source distribution, without the folder that they all are in."""
        with tarfile.open(self.sdist) as sdist:
            return {name.partition("/")[2] for name in sdist.getnames()}


@dataclass(frozen=True, slots=True)
class Place:
    """A clean environment with the wheel in it, and an application, both away from the checkout."""

    python: Path
    folder: Path

    def run(self, *command):
        """What a command of this environment prints."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DAGKIT"))}
        program = self.python.parent / command[0]
        answer = run_program([program, *command[1:]], cwd=self.folder, env=clean, check=False, seconds=600)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout


def build(source, target, **environment):
    """What is built of a tree, and what was said about it."""
    told = run([sys.executable, "-m", "hatchling", "build", "-d", str(target)], source, **environment)
    (wheel,), (sdist,) = target.glob("*.whl"), target.glob("*.tar.gz")
    return Built(wheel, sdist), told


def run(command, folder, **environment):
    told = {**os.environ, **environment}
    answer = run_program(command, cwd=folder, env=told, check=False, seconds=600)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout + answer.stderr


def unpacked(sdist, folder):
    with tarfile.open(sdist) as sources:
        sources.extractall(folder, filter="data")
    (tree,) = folder.iterdir()
    return tree


def lend(environment):
    """Let an environment have what the one of the tests has, behind what it has itself."""
    (packages,) = (environment / "lib").glob("python*/site-packages")
    lent = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "lent.pth").write_text("\n".join(lent), encoding="utf-8")
