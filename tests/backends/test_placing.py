"""Committed files on Spark: the same pieces, in the same order, to the same places as everywhere else."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dagkit.backends.spark.window.placing import MANY_BYTES, Placing
from dagkit.engine.files.staging import Part


def test_pieces_are_put_together_in_their_order(tmp_path):
    file = str(tmp_path / "out" / "f")
    for number in range(3):
        (tmp_path / f"{number}").write_text(f"{number} ")
    parts = [Part(operator="w", file=file, part=f"{number}", length=2, order=number) for number in (2, 0, 1)]
    Placing.of({file: parts}, str(tmp_path), durable=False).run_here()
    assert Path(file).read_text() == "0 1 2 "


@pytest.mark.parametrize("count", [1, 2])
def test_a_file_may_lie_in_another_store_than_the_application(tmp_path, count):
    import fsspec  # noqa: PLC0415 - only here

    memory, file = fsspec.filesystem("memory"), "memory://placing/out/f"
    for number in range(count):
        (tmp_path / f"{number}").write_text("piece ")
    parts = [Part(operator="w", file=file, part=f"{number}", length=6, order=number) for number in range(count)]
    Placing.of({file: parts}, str(tmp_path), durable=False).run_here()
    assert memory.cat_file("/placing/out/f") == b"piece " * count
    assert list(tmp_path.iterdir()) == []
    memory.store.clear()


@pytest.mark.parametrize(("speculates", "by_job"), [("true", 0), ("false", 1)])
def test_no_job_puts_files_together_where_spark_may_run_a_task_twice_at_once(speculates, by_job):
    session: Any = SimpleNamespace(conf={"spark.speculation": speculates})
    parts = [Part(operator="w", file="/out/f", part=f"{number}", length=MANY_BYTES) for number in (0, 1)]
    here, as_job = Placing.of({"/out/f": parts}, "/application", durable=False).divided(session)
    assert (len(here.files), len(as_job.files)) == (1 - by_job, by_job)
