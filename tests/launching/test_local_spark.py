"""A launch on a local Spark as a process: where it listens, and what happens when its Java ends."""

import json
import os
import re
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from tests.patience import within
from tests.processes import below, limited, run_program

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux shows its processes as files"),
]

APPLICATION = """
import os
from dagkit import *

class Ticks(InputOperator):
    output = OutputPort(int)
    sent = State(0)
    def emit_tuples(self):
        self.sent += 1
        self.output.emit(self.sent)

class Last(Operator):
    input = InputPort(int)
    seen = State[list[int]](list)
    def process(self, item):
        self.seen.append(item)
        if item == 3 and os.path.exists("working"):
            with open("working", "w") as working:
                working.write(".")
            open("waiting").close()

class Endless(StreamingApplication):
    def populate_dag(self, dag, conf):
        dag.add_operator("Ticks", Ticks()) >> dag.add_operator("Last", Last())
"""
"""Its third window creates the file `working`, then waits for ever."""

ENDS_MEANWHILE = """
from pyspark import SparkContext
from dagkit.backends.spark import local_session, stop_session

session = local_session(1)
stop = session.stop

def stop_without_java():
    SparkContext._gateway.proc.kill()
    SparkContext._gateway.proc.wait()
    stop()

session.stop = stop_without_java
stop_session(session)
"""
"""Java ends after it was asked whether it runs."""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "dagkit.cli", *arguments]


def started(environment: dict[str, str], *arguments: str) -> "Popen[str]":
    launch = command("launch", *arguments)
    return Popen(launch, stdout=PIPE, stderr=PIPE, text=True, env=environment)  # noqa: S603 - our own command


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """What a launch of the application needs; the working directory holds it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "endless.py").write_text(APPLICATION, encoding="utf-8")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def launched(tmp_path, environment):
    """A launch whose third window runs and does not end."""
    for name in ("working", "waiting"):
        os.mkfifo(tmp_path / name)
    with limited(started(environment, "endless.py", "--cores", "1"), 120) as process:
        working = os.open(tmp_path / "working", os.O_RDWR)  # opening it for reading alone waits for a writer
        assert select.select([working], [], [], within(120))[0], "the third window begins"
        os.close(working)
        yield process
        for one in (*below(process.pid), process.pid) if process.poll() is None else ():
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)


def sockets_of(process: int) -> Iterator[str]:
    """The inodes of the sockets that a process has open; one that has ended by now has none."""
    with suppress(FileNotFoundError):
        for file in Path(f"/proc/{process}/fd").iterdir():
            with suppress(FileNotFoundError):
                yield str(file.readlink()).removeprefix("socket:[").removesuffix("]")


def listening() -> dict[str, str]:
    """The address, in hexadecimal digits, of each socket that waits for connections, by its inode."""
    tables = (Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6"))
    rows = [row.split() for table in tables for row in table]
    return {row[9]: row[1].partition(":")[0] for row in rows if row[3] == "0A"}


@pytest.mark.trial
def test_a_local_spark_listens_to_this_machine_alone(launched):
    addresses = listening()
    open_sockets = {inode for each in (launched.pid, *below(launched.pid)) for inode in sockets_of(each)}
    found = {addresses[inode] for inode in open_sockets & addresses.keys()}
    assert found, "Java waits for its driver"
    assert found <= {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


@pytest.mark.trial
def test_when_java_ends_the_launch_says_so_in_a_sentence_and_the_next_one_resumes(launched, environment, tmp_path):
    (java,) = (one for one in below(launched.pid) if Path(f"/proc/{one}/comm").read_text() == "java\n")
    os.kill(java, signal.SIGKILL)
    _, told = launched.communicate(timeout=within(120))
    assert launched.returncode == 9
    assert "Traceback" not in told
    assert "\n".join(told.splitlines()[-2:]) == (
        "Spark failed in window 3: its Java process has ended [spark-ended]\n"
        "  help: the ledger is intact; launch again to resume after the last committed window. If Java ends again, "
        "give it more memory (spark.driver.memory)"
    )
    (tmp_path / "working").unlink()
    run_program(command("ledger", "verify", ".dagkit/Endless"), env=environment, seconds=120)
    words = ["launch", "endless.py", "--reference", "--windows", "2", "--json"]
    again = run_program(command(*words), env=environment, seconds=120)
    assert json.loads(again.stdout)["window_id"] == 4


@pytest.mark.trial
def test_java_may_end_while_its_session_is_stopped(environment):
    program = [sys.executable, "-c", ENDS_MEANWHILE]
    assert "Traceback" not in run_program(program, env=environment, seconds=120).stderr


def test_without_the_packages_of_spark_connect_a_launch_says_what_to_install(environment, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import sys; sys.modules['grpc'] = None; from dagkit.cli import main; main()")
    launch = [sys.executable, str(program), "launch", "endless.py", "--master", "sc://127.0.0.1", "-q"]
    done = run_program(launch, check=False, env=environment, seconds=120)
    assert done.returncode == 5
    first, second = done.stderr.splitlines()
    assert first.startswith("Spark Connect needs packages that are not installed: ")
    assert "grpcio" in first
    assert second == "  help: run: pip install 'pyspark[connect]'"


@pytest.mark.trial
def test_a_launch_that_cannot_be_compiled_leaves_no_java(environment, tmp_path):
    (tmp_path / "wrong.py").write_text(f"{APPLICATION}        dag.add_operator('Ticks', Ticks())\n", encoding="utf-8")
    with limited(started(environment, "wrong.py"), 120) as process:
        _, err = process.communicate(timeout=within(120))  # returns once Java has closed the pipe, too
    assert process.returncode == 3
    assert err.startswith("Endless cannot be compiled: 1 problem\n")
    assert not re.search("Java|Spark", err)
