"""The test run: failures, flaky services, hangs and missing services are reported, and each costs one test only."""

import sys
from pathlib import Path

import pytest

from tests.processes import run_program

ROOT = Path(__file__).parents[2]
SETTINGS = """
[pytest]
addopts = --import-mode=importlib -q -p no:cacheprovider
markers =
    service(name)
    trial
    slow
    gate(count)
"""
PLUGINS = """
from tests.run import limits

pytest_plugins = ["tests.run.sampling", "tests.run.groups", "tests.run.limits", "tests.run.reports"]
limits.UNIT_SECONDS = limits.SERVICE_SECONDS = 1
"""

pytestmark = pytest.mark.slow


def run_tests(folder, tests, *options, code=0, **environment):
    """Run tests in two processes with the plugins of this run; return what it prints."""
    (folder / "pytest.ini").write_text(SETTINGS)
    (folder / "conftest.py").write_text(PLUGINS)
    (folder / "test_them.py").write_text(f"import os, time\nfrom pathlib import Path\nimport pytest\n{tests}")
    own = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{ROOT / 'operators'}", "DAGKIT_PATIENCE": "1", **environment}
    command = [sys.executable, "-m", "pytest", "-n", "2", *options]
    done = run_program(command, cwd=folder, env=own, seconds=60, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


HANGING = """
def test_before(): pass
def test_hangs(): time.sleep(600)
def test_cannot_be_interrupted():
    while True:
        try:
            time.sleep(600)
        except BaseException:
            pass
def test_after(): pass
"""


def test_a_test_that_hangs_fails_alone_and_shows_all_threads(tmp_path):
    printed = run_tests(tmp_path, HANGING, code=1)
    assert "test_hangs did not end within 1 s; all threads:" in printed
    assert "crashed while running 'test_them.py::test_cannot_be_interrupted'" in printed
    assert "2 failed, 2 passed" in printed


ENDING = """
@pytest.mark.service("kafka")
def test_ends_the_process():
    time.sleep(1)  # meanwhile, the other process runs its tests and ends
    os._exit(1)
@pytest.mark.service("kafka")
def test_after(): pass
@pytest.mark.service("browser")
def test_of_the_other_process(): pass
@pytest.mark.service("postgres")
def test_next(): pass
@pytest.mark.service("s3")
def test_last_of_the_other_process(): pass
"""


def test_single_tests_of_two_groups_that_a_process_leaves_run_in_another_one(tmp_path):
    printed = run_tests(tmp_path, ENDING, code=1)
    assert "crashed while running 'test_them.py::test_ends_the_process'" in printed
    assert "1 failed, 4 passed" in printed


FLAKY = """
@pytest.mark.service("kafka")
@pytest.mark.parametrize("number", range({count}))
def test_once(number):
    place = Path(str(number))
    if not place.exists():
        place.touch()
        raise OSError("the broker is away")
"""


def test_a_test_with_a_service_is_tried_again_and_reported_and_three_are_red(tmp_path):
    printed = run_tests(tmp_path, FLAKY.format(count=2))
    assert ("2 flaky, of at most 2" in printed, "the broker is away" in printed) == (True, True)
    for place in ("0", "1"):
        (tmp_path / place).unlink()
    assert "3 flaky, of at most 2" in run_tests(tmp_path, FLAKY.format(count=3), code=1)


def test_a_unit_has_one_try(tmp_path):
    unit = FLAKY.replace('@pytest.mark.service("kafka")', "").format(count=1)
    assert "1 failed" in run_tests(tmp_path, unit, code=1)


SKIPPING = 'def test_broker(): pytest.skip("there is no broker")\n'


def test_where_nothing_may_be_missing_a_skip_fails(tmp_path):
    assert "1 skipped" in run_tests(tmp_path, SKIPPING)
    assert "nothing may be missing here" in run_tests(tmp_path, SKIPPING, code=1, DAGKIT_REQUIRE_ALL="1")


IN_PROCESSES = """
def note(kind): open(kind, "a").write(f"{os.getpid()}\\n")
@pytest.mark.parametrize("number", range(4))
def test_unit(number): note("unit")
@pytest.mark.parametrize("number", range(4))
@pytest.mark.service("kafka")
def test_topic(number): note("topic")
"""


def test_a_service_stays_in_one_process(tmp_path):
    run_tests(tmp_path, IN_PROCESSES)
    processes = (tmp_path / "topic").read_text().split()
    assert (len(processes), len(set(processes))) == (4, 1)


def test_a_gate_runs_some_cases_and_trials_the_others(tmp_path):
    cases = """
@pytest.mark.gate(3)
@pytest.mark.parametrize("number", range(10))
def test_case(number): pass
"""
    assert "3 passed" in run_tests(tmp_path, cases, "-m", "not trial")
    assert "7 passed" in run_tests(tmp_path, cases, "-m", "trial")


INHERITING = """
import logging
from pyspark.logger import PySparkLogger

def test_environment(): assert not {'PYTEST_ADDOPTS', 'PYTEST_XDIST_WORKER'} & set(os.environ)

def test_query_fails():
    PySparkLogger.getLogger("SQLQueryContextLogger").propagate = False

def test_records_are_plain(caplog):
    logging.getLogger("any").error("hello")
    assert "hello" in caplog.text and not caplog.text.startswith("{")
"""


def test_a_pytest_within_a_test_inherits_nothing_and_a_logger_of_pyspark_does_not_change_captured_records(tmp_path):
    assert "3 passed" in run_tests(tmp_path, INHERITING)
