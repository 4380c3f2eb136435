"""Whatever disturbs a run, the next one ends by itself with the output of an undisturbed run.

`--trials 60` tries each fault thirty times on each application; docs/reliability.md has the figures of a long run.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.applications import TRIED
from tests.faults.trials import FAULTS

ROOT = Path(__file__).parents[2]
PAIRS = [(application, fault) for application in TRIED for fault in FAULTS]
NEEDS_A_FOLDER = {("file_copy", "storage_fails")}
"""file_copy refuses an application's folder that is not mounted."""


@pytest.mark.slow
@pytest.mark.parametrize(("application", "fault"), [pair for pair in PAIRS if pair not in NEEDS_A_FOLDER])
def test_after_a_fault_the_next_run_ends_with_the_same_output(
    tmp_path: Path, application: str, fault: str, trials: int
) -> None:
    count = -(-trials // 2)
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", "tests.faults.trials", application, fault, "0", str(count)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) == count
    assert [result for result in results if result["problems"]] == [], done.stderr[-4000:]


def test_the_page_of_faults_names_tests_that_exist() -> None:
    named = re.findall(r"`(tests/[^`]+)`", (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8"))
    assert len(named) > len(FAULTS)
    assert [each for each in named if not (ROOT / each).exists()] == []
