"""A fan-out, a fan-in and two outputs: all errors are written, and each component's counts are correct."""

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.applications import launched, on_each_backend, written
from tests.old_files import aged

HERE = str(Path(__file__).parent)
COMPONENTS = ("storage", "network", "queue", "zähler")


@pytest.fixture
def lines(tmp_path, monkeypatch):
    """The lines of three files in `input`, in no particular order."""
    monkeypatch.chdir(tmp_path)
    chance = random.Random(7)  # noqa: S311 - no secret
    words = [(chance.choice(("INFO", "WARN", "ERROR")), chance.choice(COMPONENTS)) for _ in range(900)]
    lines = [f"{level} {component} number {number}" for number, (level, component) in enumerate(words)]
    Path("input").mkdir()
    for number in range(3):
        (path := Path(f"input/{number}.log")).write_text("\n".join(lines[number::3]) + "\n", encoding="utf-8")
        aged(path)
    return lines


def launch(backend="--reference"):
    launched(HERE, backend, Splitter__blockSize=2000, Reader__minReaders=2)


@on_each_backend
def test_both_outputs_hold_what_the_logs_say(lines, backend):
    launch(backend)
    levels = Counter((line.split()[0], line.split()[1]) for line in lines)
    troubles = [f"{c} {levels['WARN', c]} {levels['ERROR', c]}" for c in sorted(COMPONENTS)]
    assert sorted(written("output/errors")) == sorted(line for line in lines if line.startswith("ERROR"))
    assert written("output/troubles") == troubles


def test_a_second_launch_counts_on_from_the_first(lines):
    launch()
    Path("input/3.log").write_text("ERROR queue once more\n", encoding="utf-8")
    aged(Path("input/3.log"))
    launch()
    errors = sum(line.startswith("ERROR queue") for line in lines) + 1
    assert written("output/errors").count("ERROR queue once more") == 1
    assert written("output/troubles")[-3].split()[2] == str(errors)
