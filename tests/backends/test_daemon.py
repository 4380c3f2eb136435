"""The process that forks Spark's workers on this machine imports PySpark from its package."""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from dagkit.backends.spark.window.daemon import without_archives
from tests.patience import within


def installed(folder: Path) -> list[str]:
    """The import path of a worker whose PySpark is installed in this folder."""
    libraries = folder / "pyspark" / "python" / "lib"
    libraries.mkdir(parents=True)
    (folder / "pyspark" / "__init__.py").touch()
    return [str(libraries / "pyspark.zip"), str(libraries / "py4j-0.10-src.zip"), "/usr/lib/python3", str(folder)]


@pytest.mark.parametrize(
    "others", [[], ["/opt/spark/python/lib/pyspark.zip"], ["pyspark.zip"], ["/home/me/lib/mine.zip"]], ids=str
)
def test_the_archives_of_an_installed_pyspark_leave_the_import_path_and_those_of_others_stay(others, tmp_path):
    assert without_archives([*others, *installed(tmp_path)]) == [*others, "/usr/lib/python3", str(tmp_path)]


def test_an_archive_stays_if_its_package_is_not_on_the_import_path(tmp_path):
    path = installed(tmp_path)[:-1]
    assert without_archives(path) == path


@pytest.mark.slow
def test_a_file_of_the_working_folder_hides_no_module_of_python_from_pyspark(tmp_path):
    (tmp_path / "copy.py").write_text("raise ImportError('the wrong copy')")
    daemon = [sys.executable, "-m", "dagkit.backends.spark.window.daemon", "pyspark.worker"]
    ended = subprocess.run(  # noqa: S603 - without a request, it ends
        daemon, cwd=tmp_path, check=False, stdin=subprocess.DEVNULL, capture_output=True, timeout=within(30)
    )
    assert (ended.stderr, len(ended.stdout)) == (b"", 4)  # it reports its port as an integer


def sources(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import sys  # noqa: PLC0415 - in the worker

    import pyspark  # noqa: PLC0415 - in the worker

    for _ in batches:
        yield pa.record_batch(
            [[pyspark.__file__], ["dagkit.backends.spark.window.task" in sys.modules]], names=["a", "b"]
        )


def test_workers_are_forked_with_dagkit_loaded(spark):
    found = spark.range(0, 1, 1, 1).mapInArrow(sources, "a string, b boolean").collect()
    assert [(".zip" in row.a, row.b) for row in found] == [(False, True)]
