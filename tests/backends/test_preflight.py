"""The preflight: what workers find out about themselves, and what the driver concludes from it."""

import json
import os
import platform
import re
import subprocess
import sys
import threading
from collections.abc import Iterable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from dagkit.backends.spark.window.preflight import Answers, check, check_more, fits, workers_unprepared
from dagkit.backends.spark.window.worker_facts import Facts, Visit
from dagkit.ground.native_libraries import own_platform
from dagkit_operators import about
from hatch_build import MISSING, can_compile
from tests.java import quick_java
from tests.patience import within
from tests.processes import run_program

ROOT = Path(__file__).parents[2]
VERSIONS = {"cloudpickle": "3.1.1", "numpy": "2.3.0", "pyarrow": "22.0.0", "pydantic": "2.12.4"}
FIT = Facts("worker-1", platform.python_version(), VERSIONS, clock=1000.0, free_bytes=10**12, libraries=("c: 1",))


def failures(*facts: Facts) -> list[Any]:
    return [finding for finding in check(facts) if not finding.ok]


def failed(*facts: Facts) -> dict[str, str]:
    return {finding.check: finding.found for finding in failures(*facts)}


def visited(place: Path | str, **options: Any) -> Facts:
    visit = Visit(application_path=str(place), folder=".preflight-1", file="driver", **options)
    return Facts(**json.loads(visit.facts()))


# ---- on a worker


def test_a_worker_reads_what_the_driver_wrote_and_writes_beside_it_and_asks_libraries_about_themselves(tmp_path):
    (folder := tmp_path / ".preflight-1").mkdir()
    (folder / "driver").touch()
    facts = visited(tmp_path, libraries=("dagkit_operators", "no_such_library"))
    assert (facts.storage, facts.python) == ("", platform.python_version())
    assert {each.name for each in folder.iterdir()} == {"driver", facts.file}
    assert [line.partition(":")[0] for line in facts.libraries] == ["byte scanning", "ModuleNotFoundError"]
    assert visited(tmp_path / "elsewhere").storage == "a file that the driver wrote is not there"


class Hanging(MemoryFileSystem):
    """A storage that answers only at the end of the test."""

    protocol = "hanging"
    cachable = False
    answering: ClassVar[threading.Event]

    def info(self, path: str, **kwargs: Any) -> Any:
        self.answering.wait(within(120))
        return super().info(path, **kwargs)


@pytest.fixture
def hanging():
    Hanging.answering = threading.Event()
    fsspec.register_implementation("hanging", Hanging, clobber=True)
    yield "hanging://folder"
    Hanging.answering.set()


def test_a_storage_that_does_not_answer_is_given_up(hanging):
    assert visited(hanging, within=0.05).storage.startswith("no answer within 0.05 s")


class Refusing(BaseHTTPRequestHandler):
    """An object store that knows none who asks."""

    def do_HEAD(self) -> None:
        self.send_response(403)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def refusing():
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.slow
def test_a_worker_without_credentials_says_so(refusing):
    """As an executor does whose environment lacks the driver's variables."""
    code = (
        "from dagkit.backends.spark.window.worker_facts import Visit; "
        "print(Visit('s3://bucket/app', '.preflight-1', 'driver').facts())"
    )
    without = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    own = {"AWS_ENDPOINT_URL": refusing, "AWS_EC2_METADATA_DISABLED": "true", "HOME": "/nonexistent"}
    done = run_program([sys.executable, "-c", code], env={**without, **own}, seconds=120)
    (storage,) = failures(Facts(**json.loads(done.stdout)))
    assert "ACCESS_DENIED" in storage.found
    assert "give executors its credentials, as by --spark spark.executorEnv.NAME=VALUE" in storage.help


def test_a_worker_whose_folder_was_deleted_answers(tmp_path, monkeypatch):
    (tmp_path / "began").mkdir()
    monkeypatch.chdir(tmp_path / "began")
    (tmp_path / "began").rmdir()
    assert json.loads(Visit(str(tmp_path), "nowhere", "driver").facts())["free_bytes"] > 0


# ---- on the driver


def test_nothing_fails_where_workers_are_like_the_driver():
    assert failed(FIT, replace(FIT, host="worker-2")) == {}
    python, *_ = check_more(Answers((FIT, replace(FIT, host="worker-2")), began=999.0, ended=1001.0))
    assert (python.ok, python.found) == (True, f"{platform.python_version()} (on worker-1, worker-2)")


@pytest.mark.parametrize(
    ("versions", "found"),
    [
        ({"pydantic": None}, "pydantic is missing (on b)"),
        ({"pydantic": "2.11.9"}, "pydantic is 2.11.9 (on b)"),
        ({"numpy": None, "pyarrow": "17.1"}, "numpy is missing (on b); pyarrow is 17.1 (on b)"),
    ],
    ids=str,
)
def test_packages_that_are_missing_or_of_other_versions_fail_and_are_named_with_those_that_fit(versions, found):
    packages = {name: version for name, version in {**VERSIONS, **versions}.items() if version is not None}
    (failure,) = failures(FIT, replace(FIT, host="b", packages=packages))
    assert (failure.check, failure.found) == ("workers' packages", found)
    assert re.match(r"pip install .(pydantic<3,>=2|numpy>=2)[^ ]*. .*for the Python of every worker", failure.help)


@pytest.mark.parametrize(
    ("version", "bounds", "fit"),
    [
        *(("2.12.0", ">=2.12,<3", True), ("2.9", ">=2.12,<3", False), ("3.0.1", "<3,>=2.12", False)),
        *(("2025.2", ">=2025.2", True), ("2025.2.0", ">=2025.2", True), ("?", ">=2.12", True), ("1.0", "", True)),
    ],
)
def test_versions_are_compared_as_numbers(version, bounds, fit):
    assert fits(version, bounds) is fit


def test_the_error_of_a_launch_lists_every_failed_check():
    others = {name: version for name, version in VERSIONS.items() if name != "numpy"}
    refused = [replace(FIT, storage="PermissionError: no"), replace(FIT, host="b", packages=others)]
    error = workers_unprepared(failures(*refused))
    problem = "Spark's workers cannot run dagkit: numpy is missing (on b); PermissionError: no (on worker-1)"
    assert (error.code, error.problem) == ("workers-unprepared", problem)
    assert "spark.executorEnv" in error.help


@pytest.mark.parametrize(
    ("change", "fails"), [({"clock": 990.0}, "clocks"), ({"clock": 1010.0}, "clocks"), ({"free_bytes": 5}, "space")]
)
def test_clocks_and_space_fail_only_for_the_doctor(change, fails):
    facts = replace(FIT, **change)
    assert failed(facts) == {}
    findings = check_more(Answers((facts,), began=999.0, ended=1001.0))
    assert [finding.check for finding in findings if not finding.ok] == [f"workers' {fails}"]


# ---- on a cluster


def on_cluster(python: str, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command at a cluster with one worker, which runs another Python."""
    quick = f"spark.executor.extraJavaOptions={quick_java()}"
    options = ["--master", "local-cluster[1,1,1024]", "--spark", quick]
    return run_program(
        [sys.executable, "-m", "dagkit.cli", *words, *options],
        env={**os.environ, "PYTHONPATH": "", "PYSPARK_PYTHON": python},
        cwd=folder,
        check=False,
        seconds=120,
    )


def launched_on_cluster(python: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "input").write_text("a line\n")
    definitions = ("File-splitter.prop.scanner.files=input", "Record-writer.prop.filePath=output")
    return on_cluster(
        python,
        *("launch", str(ROOT / "apps" / "line_filter"), "--once", "--path", f"{folder}/app"),
        *(word for each in definitions for word in ("-D", f"dt.operator.{each}")),
        folder=folder,
    )


@pytest.mark.trial
@pytest.mark.spark
def test_a_launch_ends_before_its_first_window_if_workers_lack_a_package(tmp_path):
    lacking = without_dagkit(tmp_path, [name for name in NEEDED if name != "pydantic"])
    launched = launched_on_cluster(lacking, tmp_path)
    assert launched.returncode == 5, launched.stderr
    assert "Spark's workers cannot run dagkit: pydantic is missing (on " in launched.stderr
    assert re.search(r"pip install 'pydantic[<>].*2\.12", launched.stderr)
    assert not (tmp_path / "app" / "chains").exists()
    assert not [*(tmp_path / "app").glob(".preflight-*")]


@pytest.mark.trial
@pytest.mark.spark
def test_the_doctor_examines_the_workers_of_a_master(tmp_path):
    examined = on_cluster(without_dagkit(tmp_path), "doctor", "--json", "--path", "app", folder=tmp_path)
    findings = {each["check"]: each for each in json.loads(examined.stdout)["findings"]}
    workers = [name for name in findings if name.startswith("workers' ")]
    assert workers == [f"workers' {what}" for what in ("packages", "storage", "Python", "clocks", "space", "libraries")]
    assert all(findings[name]["ok"] for name in workers if name != "workers' space"), findings
    assert findings["workers' libraries"]["found"].startswith(f"{about()} (on ")


@pytest.mark.trial
@pytest.mark.spark
@pytest.mark.skipif(not can_compile(), reason=MISSING)
def test_workers_of_another_platform_do_without_the_compiled_c_and_the_log_says_so_once(tmp_path):
    bare = Path(without_dagkit(tmp_path))
    (other := tmp_path / "other").write_text(f'#!/bin/sh\nexec setarch linux32 {bare} "$@"\n')
    other.chmod(0o755)
    launched = launched_on_cluster(str(other), tmp_path)
    assert launched.returncode == 0, launched.stderr
    this, i686 = own_platform(), own_platform().replace(platform.machine(), "i686")
    assert launched.stderr.count(f"byte scanning: numpy (the compiled C is for {this}, and this is {i686}) (on ") == 1
    assert [file.read_text() for file in (tmp_path / "output").rglob("*") if file.is_file()] == ["a line\n"]


HERE = Path(__file__).parent
NEEDED = ("cloudpickle", "numpy", "pyarrow", "pydantic")
"""What workers must have, with what these depend on, besides Spark."""
SLOTS = [[0, 0], [0, 1], [1, 0], [1, 1]]


def ran(master: str, mark: Path, *words: str, **environment: str) -> Any:
    """What two windows of the application beside this file came to."""
    program = [sys.executable, str(HERE / "elsewhere" / "main.py"), master, str(mark), *words]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    return json.loads(run_program(program, env=variables, seconds=120).stdout.splitlines()[-1])


def without_dagkit(folder: Path, needed: Iterable[str] = NEEDED) -> str:
    """A Python that finds what workers must have, and neither dagkit nor anything else that it depends on."""
    packages = folder / "packages"
    packages.mkdir()
    for name in _with_what_they_need(needed):
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            (packages / top).symlink_to(str(found.locate_file(top)))
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexport PYTHONPATH="{packages}:$PYTHONPATH"\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    looked = f"from importlib.util import find_spec; print([*map(find_spec, {['dagkit', 'pandas', 'isal']})])"
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    told = run_program([python, "-c", looked], cwd=folder, env=clean, seconds=600)
    assert told.stdout == "[None, None, None]\n"
    return str(python)


def _with_what_they_need(names: Iterable[str]) -> set[str]:
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        found.add(name := waiting.pop())
        needed = [each for each in distribution(name).requires or () if ";" not in each]
        waiting |= {re.split(r"[^\w.-]", each)[0] for each in needed} - found
    return found


@pytest.mark.trial
@pytest.mark.spark
def test_workers_elsewhere_are_sent_dagkit_and_the_application(tmp_path):
    bare = without_dagkit(tmp_path)
    environment = {"PYTHONPATH": str(HERE.parents[1]) + os.pathsep + str(HERE.parents[1] / "operators")}
    words = ["a", "b", "a", "unheard"]
    told = ran("local-cluster[2,1,1024]", tmp_path / "never", *words, PYSPARK_PYTHON=bare, **environment)
    assert told == {"counts": {"A!": 4, "B!": 2}, "slots": SLOTS, "zipped": True}


@pytest.mark.trial
@pytest.mark.spark
def test_a_task_whose_worker_dies_is_run_again_and_nothing_comes_twice(tmp_path):
    told = ran("local[2,3]", tmp_path / "died", "a", "b", "die", "a", "c")
    assert (tmp_path / "died").exists()
    assert told == {"counts": {"A!": 4, "B!": 2, "DIE!": 2, "C!": 2}, "slots": SLOTS, "zipped": False}
