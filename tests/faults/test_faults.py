"""Whatever disturbs a run, the next one ends by itself with the output of an undisturbed run.

`--trials 60` tries each fault thirty times on each application, and thirty pairs of both on Spark; docs/bad-records.md
has the figures of long runs.
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.applications import TRIED
from tests.faults.trials import FAULTS
from tests.processes import run_program

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux shows processes as files")


def results_of(folder: Path, *words: object) -> list[dict[str, Any]]:
    """What a program of trials printed."""
    done = run_program(
        [sys.executable, "-m", *map(str, words)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
        seconds=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    results = [json.loads(line) for line in done.stdout.splitlines()]
    sys.stdout.write("".join(f"{result}\n" for result in results))
    assert [result for result in results if result["problems"]] == [], done.stderr[-4000:]
    return results


@pytest.mark.trial
@pytest.mark.parametrize("application", TRIED)
def test_after_a_fault_the_next_run_ends_with_the_same_output(tmp_path, application, trials):
    count = len(FAULTS) * -(-trials // 2)
    assert len(results_of(tmp_path, "tests.faults.trials", application, 0, count)) == count


@pytest.mark.trial
@pytest.mark.spark
def test_after_a_fault_on_spark_the_next_run_ends_with_the_same_output(tmp_path, trials):
    results = results_of(tmp_path, "tests.faults.spark_trials", 0, -(-trials // 2))
    assert len(results) == -(-trials // 2)
    assert results[0]["fault"] == "python_worker_killed"
    assert results[0]["disturbed"]


def test_the_page_of_faults_names_tests_that_exist():
    named = re.findall(r"`(tests/[^`]+)`", (ROOT / "docs" / "bad-records.md").read_text(encoding="utf-8"))
    assert len(named) > len(FAULTS)
    assert [each for each in named if not (ROOT / each).exists()] == []
