"""A fan-out, a fan-in and two outputs: all errors are written, and each component's counts are correct."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from dagkit.cli import main

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
        Path(f"input/{number}.log").write_text("\n".join(lines[number::3]) + "\n", encoding="utf-8")
    return lines


def launched(*options):
    settings = {"Splitter.prop.blockSize": 2000, "Reader.prop.minReaders": 2}
    definitions = [word for key, value in settings.items() for word in ("-D", f"dt.operator.{key}={value}")]
    answer = CliRunner().invoke(main, ["launch", HERE, "--once", "--json", *definitions, *options])
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout)["application"] == "LogLevels"


def written(folder):
    files = sorted(Path("output", folder).iterdir())
    return [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    "options",
    [["--reference"], pytest.param(["--cores", "2"], marks=[pytest.mark.slow, pytest.mark.spark, pytest.mark.trial])],
)
def test_both_outputs_hold_what_the_logs_say(lines, options):
    launched(*options)
    levels = Counter((line.split()[0], line.split()[1]) for line in lines)
    troubles = [f"{c} {levels['WARN', c]} {levels['ERROR', c]}" for c in sorted(COMPONENTS)]
    assert sorted(written("errors")) == sorted(line for line in lines if line.startswith("ERROR"))
    assert written("troubles") == troubles


def test_a_second_launch_counts_on_from_the_first(lines):
    launched("--reference")
    Path("input/3.log").write_text("ERROR queue once more\n", encoding="utf-8")
    launched("--reference")
    errors = sum(line.startswith("ERROR queue") for line in lines) + 1
    assert written("errors").count("ERROR queue once more") == 1
    assert written("troubles")[-3].split()[2] == str(errors)
