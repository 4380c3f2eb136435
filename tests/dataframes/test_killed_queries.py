"""A streaming query is killed with the Spark that runs it, at random, and each line is in its sink once.

Half of `--trials` is how often: a start takes some seconds.
"""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import within
from tests.processes import limited

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.trial]

PLACES = ("checkpoint/offsets", "out/_spark_metadata", "checkpoint/commits")
"""What Spark writes in a micro-batch, in this order: it is planned, its files are named, and it has ended."""


def batches(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.glob("[0-9]*") if path.name.isdigit()]


def killed_after(home: Path, place: str, batch: int, *options: str) -> bool:
    """Run the query until it has noted a micro-batch in a place, and kill it; return False if it ended before."""
    command = [sys.executable, "-m", "tests.dataframes.streaming_query", str(home), *options]
    with limited(subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL), 600) as query:  # noqa: S603 - our own
        while True:
            try:
                assert query.wait(0.01) == 0
            except subprocess.TimeoutExpired:
                if not any(number >= batch for number in batches(home / place)):
                    continue
                os.killpg(query.pid, signal.SIGKILL)
                query.wait(within(600))
                return True
            return False


def test_each_line_is_in_the_sink_once(spark, tmp_path, trials):
    drawn = random.Random(7)
    (tmp_path / "in").mkdir()
    lines: list[str] = []

    def file_arrives() -> None:
        name = f"{len(lines)}.txt"
        added = [f"{name}, line {line} {'x' * drawn.randrange(40)}" for line in range(40)]
        (tmp_path / "in" / name).write_text("".join(f"{line}\n" for line in added))
        lines.extend(added)

    for _ in range(-(-trials // 2)):
        file_arrives()
        ended = max(batches(tmp_path / "checkpoint/commits"), default=-1)
        assert killed_after(tmp_path, drawn.choice(PLACES), ended + 1, "1000")
    file_arrives()
    assert not killed_after(tmp_path, PLACES[0], sys.maxsize)
    assert sorted(row.value for row in spark.read.parquet(str(tmp_path / "out")).collect()) == sorted(lines)
