"""Applications on Spark: in a session of a test, in processes of their own, and at a Connect server."""

import os
import sys
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen

import pytest

from dagkit.engine.record.backlogs import decisions
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.scaling import ScalingInputs, decide
from tests.backends.cast import lines_in
from tests.backends.places import ON_BOTH
from tests.engine.cast import some_lines
from tests.engine.parts.test_listeners import lines
from tests.old_files import aged
from tests.operators.keyed.test_partitions import JOINED, WAYS, result
from tests.processes import limited, run_program

pytestmark = pytest.mark.spark

APPS = Path(__file__).parents[2] / "apps"
FILES = 24
"""A window has one file: a driver has many windows left when the test kills it."""


@pytest.fixture
def home(tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(FILES):
        path = tmp_path / "in" / f"{number:02}.txt"
        path.write_text(f"first {number}\n.dropped {number}\nlast {number}\n")
        aged(path)
    return tmp_path


def line_filter(home: Path, *options: str) -> list[str]:
    properties = {
        "File-splitter.prop.scanner.files": home / "in",
        "File-splitter.prop.blocksThreshold": 1,
        "Record-writer.prop.filePath": home / "out",
    }
    definitions = [word for key, value in properties.items() for word in ("-D", f"dt.operator.{key}={value}")]
    command = [sys.executable, "-m", "dagkit.cli", "launch", str(APPS / "line_filter"), "--once", "--no-sync"]
    return [*command, "--path", str(home / "app"), *definitions, *options]


ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def assert_filtered(home: Path) -> None:
    assert lines_in(home / "out") == sorted(f"{word} {number}" for word in ("first", "last") for number in range(FILES))
    assert verify(Ledger.open(str(home / "app"))).is_complete


def test_a_driver_that_is_killed_is_launched_again_and_each_line_is_written_once(home):
    command = line_filter(home, "--cores", "2", "--log", "json")
    driver = Popen(command, env=ENVIRONMENT, stdout=PIPE, stderr=STDOUT, text=True)  # noqa: S603 - our own command
    with limited(driver, 120):
        assert any('"event": "committed", "window": 2,' in line for line in driver.stdout)
        driver.kill()
    assert 0 < len(list((home / "out").iterdir())) < FILES, "the driver was killed in the middle"
    run_program(command, env=ENVIRONMENT, seconds=120)
    assert_filtered(home)


def test_a_launch_uses_a_connect_server(home, connect_url):
    command = line_filter(home, "--master", connect_url, "-D", "dt.operator.File-splitter.prop.blocksThreshold=20")
    run_program(command, env=ENVIRONMENT, seconds=120)
    assert_filtered(home)


@pytest.mark.trial
@pytest.mark.parametrize("way", ["keyed partitions", "mirrored partitions"])
def test_keys_that_depend_on_properties_give_the_result_of_the_reference(way, spark, tmp_path, monkeypatch):
    joined, once = result(tmp_path / "spark", WAYS[way], monkeypatch, Machine(spark=spark))
    assert joined == repr(JOINED)
    assert once == result(tmp_path / "reference", WAYS[way], monkeypatch, Machine("reference"))[1]


@ON_BOTH
def test_one_file_is_read_on_all_cores_from_the_first_window_on(session, tmp_path):
    (tmp_path / "in").mkdir()
    text = some_lines(3000)
    (tmp_path / "in" / "one.txt").write_text(text)
    aged(tmp_path / "in" / "one.txt")
    launch(lines(tmp_path), spark=session, until="once", path=tmp_path / "app")
    ledger = Ledger.open(tmp_path / "app")
    first, *others = decisions(ledger)
    assert (first.window, first.fact.before, first.fact.after) == (1, 1, 2)
    assert [each.fact.after for each in others if each.fact.before != each.fact.after] == []
    for each in (first, *others):
        assert decide(ScalingInputs.model_validate(each.fact.inputs)).after == each.fact.after
    assert lines_in(tmp_path / "out") == sorted(text.splitlines())
    assert verify(ledger).is_valid
