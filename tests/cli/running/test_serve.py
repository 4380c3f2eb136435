"""`dagkit serve` and the launches that find its warm driver, as processes."""

import os
import select
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT
from tests.patience import PATIENT, within
from tests.processes import below, next_line

pytestmark = [pytest.mark.slow, pytest.mark.spark]

WITHIN = within(120)

APP = """
import os, sys
from dataclasses import replace
from dagkit import InputPort, OperatorContext, OutputPort, RowOperator, StatelessPartitioner
from dagkit_operators import FileSplitterInput, LineReader, Record, RecordWriter

class Show(RowOperator):
    kind = "test.show/1"
    input = InputPort[Record[str]]()
    output = OutputPort[Record[str]]()

    def process(self, item: Record[str]):
        seen = sys.__dict__.setdefault("seen", [])  # as long as the process of the worker runs
        seen.append(item)
        prepared = "dagkit_operators.sql.reader" in sys.modules, "DAGKIT_KEPT_JAVA" in os.environ
        yield replace(item, value=f"{item.value} SUFFIX {len(seen)} {prepared}")

def populate_dag(dag, conf) -> None:
    splitter = dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["in"]}))
    show = dag.add_operator("Show", Show())
    dag.set_operator_attribute(show, OperatorContext.PARTITIONER, StatelessPartitioner(SLOTS))
    splitter >> dag.add_operator("Reader", LineReader()) >> show >> dag.add_operator("W", RecordWriter(file_path="out"))
"""


@dataclass
class Folder:
    path: Path
    runtime: str
    started: list["subprocess.Popen[str]"] = field(default_factory=list)
    edits: int = 0

    def dagkit(self, *arguments):
        path = os.pathsep.join([str(ROOT), str(ROOT / "operators")])
        own = {"PATH": os.environ["PATH"], "HOME": str(Path.home()), "PYTHONPATH": path}
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(  # noqa: S603 - this very Python
            [sys.executable, "-m", "dagkit.cli", *arguments],
            cwd=self.path,
            env={**own, "XDG_RUNTIME_DIR": self.runtime, **PATIENT},
            **streams,
        )
        self.started.append(process)
        return process

    def launched(self, *options):
        """The exit code of a launch, and its messages."""
        process = self.dagkit("launch", "app.py", "--once", "-v", *options)
        _, err = process.communicate(timeout=WITHIN)
        return process.returncode, err

    def edited(self, suffix, new_file="", before="", slots="1"):
        """Let the application append another suffix, and do this before, for one more file."""
        code = APP.replace("SUFFIX", suffix).replace("seen.append", f"{before}seen.append").replace("SLOTS", slots)
        (self.path / "app.py").write_text(code)
        self.edits += 1
        # Python takes code of the same length and second as the compiled one for the same code
        os.utime(self.path / "app.py", (0, self.edits))
        if new_file:
            (self.path / "in" / f"{new_file}.txt").write_text("line\n")

    def held(self, suffix):
        """A launch that does not end by itself, and of which a worker waits for the file `gate`."""
        for name in ("reached", "gate"):
            if not (self.path / name).exists():
                os.mkfifo(self.path / name)
        self.edited(suffix, suffix, "print(file=open('reached', 'w')); open('gate').read(); ")
        launch = self.dagkit("launch", "app.py", "--cores", "2")
        reached = os.open(self.path / "reached", os.O_RDWR)
        assert select.select([reached], [], [], WITHIN)[0], "a worker has the line"
        os.close(reached)
        return launch

    def written(self):
        return sorted(line for file in (self.path / "out").rglob("*") for line in file.read_text().splitlines())


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "in").mkdir()
    with tempfile.TemporaryDirectory() as runtime:
        made = Folder(tmp_path, runtime)
        try:
            yield made
        finally:
            for process in made.started:
                process.kill()
                process.communicate(timeout=within(120))


def test_a_launch_runs_on_the_spark_of_the_warm_driver(folder, dagkit, monkeypatch):
    monkeypatch.chdir(folder.path)
    driver = folder.dagkit("serve", "--foreground", "--cores", "2")
    assert next_line(driver, 120).startswith(f"warm driver: process {driver.pid}, local[2], waiting")
    folder.edited("first", "first", slots="2")
    code, err = folder.launched("--cores", "2")
    assert (code, "the warm driver" in err) == (0, False), err
    assert ("using the Spark that a warm driver keeps at local[2]" in err, "starting Spark" in err) == (True, False), (
        err
    )
    status = dagkit("serve", "--status", XDG_RUNTIME_DIR=folder.runtime).out
    assert status == f"warm driver: process {driver.pid}, local[2], waiting, launches: 1\n"
    assert folder.written() == ["line first 1 (True, False)"]
    driver.send_signal(signal.SIGTERM)
    assert driver.wait(WITHIN) == 0


@pytest.mark.trial
def test_launches_share_spark_and_nothing_else(folder):
    driver = folder.dagkit("serve", "--foreground", "--cores", "2")
    assert next_line(driver, 120).startswith(f"warm driver: process {driver.pid}, local[2], waiting")
    written = []
    for suffix in ("1a", "1b", "2a", "2b"):  # edited code runs, and workers have no state of the last launch
        folder.edited(suffix, suffix, slots=suffix[0])  # with two slots there is an exchange, which Spark SQL runs
        code, err = folder.launched("--cores", "2")
        assert (code, "the warm driver" in err) == (0, False), err
        written.append(f"line {suffix} 1 (True, False)")
    assert folder.written() == written

    # an interrupt lets the window of the launch end, and the warm driver waits for the next one
    interrupted = folder.held("three")
    interrupted.send_signal(signal.SIGINT)
    (folder.path / "gate").write_text("")
    _, err = interrupted.communicate(timeout=WITHIN)
    assert interrupted.returncode == 0, err
    written.append("line three 1 (True, False)")
    assert folder.written() == sorted(written)
    status, _ = folder.dagkit("serve", "--status").communicate(timeout=WITHIN)
    assert status == f"warm driver: process {driver.pid}, local[2], waiting, launches: 5\n"

    # kill -9 of the warm driver in the middle of a launch: the launch ends, and so does every process of the driver
    stopped = folder.held("four")
    started = [os.pidfd_open(process) for process in below(driver.pid)]
    driver.send_signal(signal.SIGKILL)
    _, err = stopped.communicate(timeout=WITHIN)
    assert (stopped.returncode, "its Java process has ended [spark-ended]" in err) == (9, True), err
    for process in started:
        assert select.select([process], [], [], WITHIN)[0], "the process has ended"
        os.close(process)
    folder.edited("five")
    assert folder.launched("--reference")[0] == 0
    assert folder.written() == sorted(["line five 1 (False, False)", *written])
