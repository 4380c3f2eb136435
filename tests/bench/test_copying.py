"""Copies are measured, compared with the original, and judged by their share of the speed of `cp`."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from bench import copying
from tests.processes import run_program

SECONDS = {"cp": [1.0, 3.0, 2.0], "dagkit": [4.0], "dagkit, synced": [5.0], "cp, synced": [4.0]}


@pytest.mark.trial
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cp") is None, reason="it measures beside cp")
def test_each_contestant_copies_and_the_bound_decides_the_exit_code(tmp_path):
    program, disk = [sys.executable, "-m", "bench", "copying", "--json"], ["--disk", str(tmp_path)]
    command = [*program, *disk, "--gib", "0.004", "--rounds", "1"]
    done = run_program(command, check=False, seconds=600)
    seconds = json.loads(done.stdout)
    assert {name: len(took) for name, took in seconds.items()} == dict.fromkeys(
        ["cp", "dagkit", "dagkit, with checksums", "cp, synced", "dagkit, synced", "dagkit, synced, with checksums"], 1
    )
    holds = all(copying.ratio(seconds, *each) >= copying.LEAST for each in copying.BOUND.items())
    assert done.returncode == (0 if holds else 1)
    assert list(tmp_path.iterdir()) == []


def test_a_copy_that_differs_is_no_figure(tmp_path):
    source = tmp_path / "original"
    source.write_bytes(b"abc")
    with pytest.raises(AssertionError, match="the copy is identical"):
        copying.timed(wrong_copy, source, tmp_path / "round")
    assert not (tmp_path / "round").exists()


def wrong_copy(_: Path, place: Path) -> None:
    (place / "target/original").write_bytes(b"abd")


def test_the_page_has_the_medians_and_the_share_of_cp():
    page = copying.page(SECONDS, 1.0, 3)
    assert "| cp | 537 | 358 to 1074 | 1.00 |" in page
    assert "| dagkit | 268 | 268 to 268 | 0.50 |" in page
    assert "| dagkit, synced | 215 | 215 to 215 | 0.80 |" in page
