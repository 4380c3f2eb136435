"""What is done once in a worker's process."""

import gc
import os
import platform
import subprocess
import sys
import weakref
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dagkit_operators
from dagkit.backends.spark.shipping.level_files import read_rows, write_rows
from dagkit.backends.spark.shipping.rows import Kind, Row, batch_of, rows_in
from dagkit.backends.spark.shipping.shipping import shipped
from dagkit.backends.spark.window import worker
from dagkit.backends.spark.window.artifacts import archive_of
from dagkit.backends.spark.window.daemon import without_archives
from dagkit.backends.spark.window.placing import MANY_BYTES, Placing
from dagkit.backends.spark.window.task import LevelTask
from dagkit.engine.files.staging import Part
from dagkit.engine.program.lower import program_of
from dagkit.engine.worker.protocol import WindowTask
from dagkit.ground.native_libraries import PLATFORM_FILE, library_at, own_platform
from dagkit_operators.native.compiled import KAFKA_LIBRARY, LIBRARY
from hatch_build import MISSING, can_compile
from tests.backends.cast import Collect, Words, chain
from tests.patience import within
from tests.processes import run_program

FAULTS_AT_WORK = """
import resource
import numpy as np
from dagkit.backends.spark.window.worker import hold_memory

if {held}:
    hold_memory()
for _ in range(3):
    np.ones(1 << 20, np.uint8) == 1
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    np.ones(1 << 20, np.uint8) == 1
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""

FEW, MANY = 100, 10_000
"""Times that a page is given: none for most chunks, or one for each page of each chunk."""


def ran(program: str, **environment: str) -> CompletedProcess[str]:
    paths = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    return run_program([sys.executable, "-c", program], env=paths | environment, seconds=120)


def faults_at_work(*, held: bool, **environment: str) -> int:
    """How often a process that works on a hundred chunks is given a page by the system."""
    return int(ran(FAULTS_AT_WORK.format(held=held), **environment).stdout)


HEARD = """
import sys
from dagkit.backends.spark.window.worker import at_work

for task in 1, 2:
    with at_work():
        print("task", task, file=sys.stderr)
    print("the pipe is broken", file=sys.stderr)
"""


def test_a_worker_is_heard_while_it_works_and_not_while_it_waits():
    assert ran(HEARD).stderr.splitlines() == ["task 1", "task 2"]


@pytest.mark.trial
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="memory is held where the C library is glibc")
def test_what_one_chunk_freed_serves_the_next_one_and_what_a_user_set_for_the_c_library_stays():
    assert faults_at_work(held=True) < FEW
    assert faults_at_work(held=False) > MANY
    assert faults_at_work(held=True, MALLOC_TRIM_THRESHOLD_="131072") > MANY


@pytest.fixture
def unsettled(monkeypatch):
    monkeypatch.setattr(worker, "_settled_for", "")
    monkeypatch.setattr(worker, "_settled", 0)
    yield
    gc.unfreeze()


def is_looked_at(thing: Any) -> bool:
    return any(each is thing for each in gc.get_objects())


@pytest.mark.usefixtures("unsettled")
def test_a_collection_looks_no_more_at_what_was_loaded_for_a_program_and_at_all_that_came_after_it():
    loaded: list[int] = []
    assert is_looked_at(loaded)
    worker.settle("a program")
    assert not is_looked_at(loaded)
    later: list[int] = []
    worker.settle("a program")
    assert is_looked_at(later)
    worker.settle("another program")
    assert not is_looked_at(later)


def with_itself() -> Callable[[], Any]:
    """A function in a cycle, as those of a module that is pickled by value: they refer to its globals."""

    def function() -> Any:
        return function

    return function


@pytest.mark.usefixtures("unsettled")
def test_what_is_left_of_many_programs_is_freed_in_a_worker():
    gone: list[int] = []
    for number in range(3 * worker.MOST_LEFT):
        loaded = with_itself()
        weakref.finalize(loaded, gone.append, number)
        worker.settle(str(number))
        del loaded
        assert number - len(gone) < 2 * worker.MOST_LEFT
    assert len(gone) >= 2 * worker.MOST_LEFT


@pytest.mark.slow
@pytest.mark.usefixtures("unsettled")
def test_a_worker_settles_with_its_first_task():
    packed, _ = shipped(program_of(chain(words=Words(), collect=Collect())), [])
    loaded: list[int] = []
    slots = [pa.record_batch([pa.array([0])], names=["id"])]
    assert list(LevelTask(packed, 0, WindowTask(1), {})(slots))
    assert not is_looked_at(loaded)


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


OPERATORS = Path(dagkit_operators.__file__).parent
DAGKIT = OPERATORS.parents[1] / "dagkit"
ASK = (
    "import dagkit_operators as o; from dagkit_operators.native.compiled import *; "
    "assert '.zip' in o.__file__; print(o.about(), json_members() is not None, kafka_columns() is not None)"
)


def answered(archive: Path) -> str:
    done = run_program(
        [sys.executable, "-c", ASK], env={**os.environ, "PYTHONPATH": str(archive)}, cwd=archive.parent, seconds=120
    )
    return done.stdout.strip()


def changed(archive: Path, folder: Path, **content: bytes | None) -> Path:
    """The archive with other content of some members, named by their stems; None: without them."""
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(folder / "changed.zip", "w") as new:
        for name in old.namelist():
            value = content.get(Path(name).stem.replace("-", "_"), old.read(name))
            if value is not None:
                new.writestr(name, value)
    return folder / "changed.zip"


@pytest.fixture(scope="module")
def archive():
    return Path(archive_of((DAGKIT, OPERATORS)))


@pytest.mark.skipif(not can_compile(), reason=MISSING)
@pytest.mark.slow
def test_the_c_of_an_archive_is_used(archive):
    assert answered(archive) == f"{dagkit_operators.about()} True True"


@pytest.mark.skipif(not can_compile(), reason=MISSING)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"dagkit_platform": b"Linux sparc"}, f"the compiled C is for Linux sparc, and this is {own_platform()}"),
        ({"libbytewise": b"ELF"}, "this version has no compiled C"),
        ({"libbytewise": None}, "this version has no compiled C"),
    ],
    ids=["another platform", "a damaged library", "none"],
)
def test_numpy_is_used_where_the_c_does_not_fit(archive, tmp_path, content, reason):
    assert answered(changed(archive, tmp_path, **content)).startswith(f"byte scanning: numpy ({reason})")


@pytest.mark.skipif(not can_compile(), reason=MISSING)
def test_an_archive_names_its_platform_and_its_libraries_are_not_taken_for_each_other(archive):
    first, second = (library_at(archive / path.relative_to(OPERATORS.parent)) for path in (LIBRARY, KAFKA_LIBRARY))
    assert (hasattr(first, "dagkit_beginning"), hasattr(second, "dagkit_beginning")) == (True, False)
    with zipfile.ZipFile(archive) as opened:
        assert opened.read(PLATFORM_FILE).decode() == own_platform()


@pytest.mark.skipif(not can_compile(), reason=MISSING)
def test_libraries_that_are_loaded_at_the_same_time_are_not_taken_for_each_other(archive, monkeypatch):
    first, second = (archive / path.relative_to(OPERATORS.parent) for path in (LIBRARY, KAFKA_LIBRARY))
    fdopen = os.fdopen

    def interrupted(*args: Any, **options: Any) -> Any:
        monkeypatch.undo()
        library_at(second)
        return fdopen(*args, **options)

    monkeypatch.setattr(os, "fdopen", interrupted)
    assert hasattr(library_at(first), "dagkit_beginning")


def contents(batches: Any) -> list[tuple[int, int, Kind, bytes]]:
    return [(*row[:3], row.payload.to_pybytes()) for batch in batches for row in rows_in(batch)]


SLOTS = 3
ROWS = st.builds(Row, st.integers(-1, 2), st.integers(0, 8), st.sampled_from(Kind), st.binary(max_size=200))


@given(st.lists(st.lists(st.lists(ROWS, min_size=1, max_size=6), max_size=4), max_size=3))
def test_each_slot_reads_its_rows_in_their_order(tmp_path_factory, tasks):
    folder = tmp_path_factory.mktemp("rows")
    paths = [write_rows((batch_of(rows, SLOTS) for rows in batches), str(folder)) for batches in tasks]
    for slot in range(SLOTS):
        expected = [row for batches in tasks for rows in batches for row in rows if row.to % SLOTS == slot]
        assert contents(read_rows(paths, slot)) == [tuple(row) for row in expected]


def test_rows_outlive_their_file(tmp_path):
    path = write_rows([batch_of([Row(1, 0, Kind.ITEMS, b"row" * 100_000)], 1)], str(tmp_path))
    batches = list(read_rows([path], 0))
    Path(path).unlink()
    assert contents(batches) == [(1, 0, Kind.ITEMS, b"row" * 100_000)]


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
