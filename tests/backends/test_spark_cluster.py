"""Workers in processes of their own, which lack the application, and dagkit itself; and workers that die."""

import json
import os
import re
import sys
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from tests.processes import run_program

pytestmark = [pytest.mark.spark, pytest.mark.trial]
HERE = Path(__file__).parent
NEEDED = ("cloudpickle", "numpy", "pyarrow", "pydantic")
"""What workers must have, with what these depend on, besides Spark."""
SLOTS = [[0, 0], [0, 1], [1, 0], [1, 1]]


def ran(master: str, mark: Path, *words: str, **environment: str) -> Any:
    """What two windows of the application beside this file came to."""
    program = [sys.executable, str(HERE / "elsewhere" / "main.py"), master, str(mark), *words]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    return json.loads(run_program(program, env=variables, seconds=120).stdout.splitlines()[-1])


def without_dagkit(folder: Path, needed: Iterable[str] = NEEDED) -> str:
    """A Python that finds what workers must have, and neither dagkit nor anything else that it depends on."""
    packages = folder / "packages"
    packages.mkdir()
    for name in _with_what_they_need(needed):
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            (packages / top).symlink_to(str(found.locate_file(top)))
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexport PYTHONPATH="{packages}:$PYTHONPATH"\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    looked = f"from importlib.util import find_spec; print([*map(find_spec, {['dagkit', 'pandas', 'isal']})])"
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    told = run_program([python, "-c", looked], cwd=folder, env=clean, seconds=600)
    assert told.stdout == "[None, None, None]\n"
    return str(python)


def _with_what_they_need(names: Iterable[str]) -> set[str]:
    """These distributions, and those that they depend on here."""
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        found.add(name := waiting.pop())
        needed = [each for each in distribution(name).requires or () if ";" not in each]
        waiting |= {re.split(r"[^\w.-]", each)[0] for each in needed} - found
    return found


def test_workers_elsewhere_are_sent_dagkit_and_the_application(tmp_path):
    bare = without_dagkit(tmp_path)
    environment = {"PYTHONPATH": str(HERE.parents[1]) + os.pathsep + str(HERE.parents[1] / "operators")}
    words = ["a", "b", "a", "unheard"]
    told = ran("local-cluster[2,1,1024]", tmp_path / "never", *words, PYSPARK_PYTHON=bare, **environment)
    assert told == {"counts": {"A!": 4, "B!": 2}, "slots": SLOTS, "zipped": True}


def test_a_task_whose_worker_dies_is_run_again_and_nothing_comes_twice(tmp_path):
    told = ran("local[2,3]", tmp_path / "died", "a", "b", "die", "a", "c")
    assert (tmp_path / "died").exists()
    assert told == {"counts": {"A!": 4, "B!": 2, "DIE!": 2, "C!": 2}, "slots": SLOTS, "zipped": False}
