"""Applications on clusters whose processes are killed: the output is that of an undisturbed run of the reference."""

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from dagkit.cli import main
from dagkit.engine.files.folders import folder_at
from dagkit.ground.urls import below
from dagkit.launching import Machine
from dagkit_operators.filesystem.access import opened
from dagkit_operators.filesystem.listing import files_below
from tests.cluster.driver import run
from tests.cluster.standalone import EXECUTOR, Spoken, Standalone
from tests.patience import within
from tests.processes import running

has_processes = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux shows processes as files")
pytestmark = [pytest.mark.spark, pytest.mark.trial, has_processes]
DRIVER = str(Path(__file__).with_name("driver.py"))
DISTURBED = 2
"""The window that has started when processes are killed."""
WRITERS = {"line_filter": "Record-writer", "word_count": "Writer"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Standalone(tmp_path_factory.mktemp("standalone")) as started:
        yield started


@dataclass(frozen=True)
class Run:
    """A launch of an application in a folder of its own, in which windows have two blocks."""

    application: str
    text: Path
    folder: Path

    def definitions(self) -> list[str]:
        properties = {
            "File-splitter.prop.scanner.files": self.text,
            "File-splitter.prop.blockSize": 1500,
            "File-splitter.prop.blocksThreshold": 2,
            "Block-reader.prop.minReaders": 2,
            "Block-reader.prop.maxReaders": 2,
            f"{WRITERS[self.application]}.prop.filePath": self.folder / "output",
        }
        return [f"dt.operator.{key}={value}" for key, value in properties.items()]

    def by_reference(self) -> dict[str, bytes]:
        """The output of the reference backend."""
        run(self.application, Machine(backend="reference"), self.folder / "ledger", 0, self.definitions())
        return self.output()

    def words(self, master: str, pause: int = DISTURBED) -> list[str]:
        """The command that launches it at a master, and waits before a window."""
        return [DRIVER, self.application, master, str(self.folder / "ledger"), str(pause), *self.definitions()]

    def launched(self, master: str, environment: Mapping[str, str] | None = None) -> Spoken:
        """A launch at a master, as a process; it waits before the disturbed window."""
        variables = {"PYTHONPATH": os.pathsep.join(sys.path), **(environment or {})}
        return Spoken([sys.executable, *self.words(master)], variables)

    def output(self) -> dict[str, bytes]:
        """The content of each file, by its path below the output folder."""
        place = self.folder / "output"
        return {str(file.relative_to(place)): file.read_bytes() for file in place.rglob("*") if file.is_file()}

    def check(self) -> None:
        """Verify the ledger, and compare the output with that of the reference."""
        answer = CliRunner().invoke(main, ["ledger", "verify", "--complete", str(self.folder / "ledger")])
        assert answer.exit_code == 0, answer.output
        assert self.output() == Run(self.application, self.text, self.folder / "reference").by_reference()


def disturbed(
    run: Run, master: str, disturb: Callable[[Spoken], object], environment: Mapping[str, str] | None = None
) -> None:
    """Launch, disturb one window, and compare with the reference. Print when the window after it was committed."""
    driver = run.launched(master, environment)
    try:
        driver.until(f"^started {DISTURBED}$")
        began = time.monotonic()
        disturb(driver)
        driver.send("continue")
        driver.until(f"^committed {DISTURBED + 1}$")
        sys.stdout.write(f"{run.application} at {master}: recovered in {time.monotonic() - began:.1f} s\n")
        assert driver.process.wait(within(600)) == 0, "".join(driver.lines[-40:])
    finally:
        driver.kill()
    run.check()


def kill_one(executors: list[int]) -> None:
    assert len(executors) == 2, "each of one core"
    os.kill(executors[0], signal.SIGKILL)


def test_an_executor_is_killed_and_replaced(cluster, text, tmp_path):
    disturbed(Run("line_filter", text, tmp_path), cluster.url, lambda _: kill_one(cluster.executors()))
    cluster.master.until(r"Launching executor app-[\d-]+/2 ")


def test_a_master_that_starts_again_replaces_what_a_killed_worker_ran(cluster, text, tmp_path):
    def restart(_: Spoken) -> None:
        cluster.restart_master()
        cluster.restart_worker(0)
        cluster.master.until(r"Launching executor app-[\d-]+/2 ")

    disturbed(Run("word_count", text, tmp_path), cluster.url, restart)


def settings(folder: Path, **values: str) -> dict[str, str]:
    """The variable that lets a launch read Spark's settings from a file."""
    lines = (f"spark.{name} {value}\n" for name, value in values.items())
    (folder / "conf").mkdir()
    (folder / "conf" / "spark-defaults.conf").write_text("".join(lines))
    return {"SPARK_CONF_DIR": str(folder / "conf")}


def test_executors_leave_without_a_backlog_and_return_with_it(cluster, text, tmp_path):
    elastic = {
        "dynamicAllocation.enabled": "true",
        "dynamicAllocation.shuffleTracking.enabled": "true",
        "dynamicAllocation.executorIdleTimeout": "1s",
        "dynamicAllocation.schedulerBacklogTimeout": "1s",
    }

    run = Run("line_filter", text, tmp_path)  # its executors hold nothing that a later window needs
    environment = settings(tmp_path, **elastic)
    disturbed(run, cluster.url, lambda _: cluster.master.until("requests to kill executors"), environment)
    cluster.master.until(r"Launching executor app-[\d-]+/2 ")


def test_a_launch_goes_on_when_a_worker_announces_its_end(cluster, text, tmp_path):
    run, environment = Run("word_count", text, tmp_path), settings(tmp_path, **{"decommission.enabled": "true"})
    disturbed(run, cluster.url, lambda _: cluster.decommission_worker(0), environment)
    cluster.restart_worker(0)


def test_an_executor_of_a_local_cluster_is_killed(text, tmp_path):
    run = Run("word_count", text, tmp_path)
    disturbed(run, "local-cluster[2,1,1024]", lambda driver: kill_one([*running(EXECUTOR, driver.process.pid)]))


def test_executors_reach_azure_by_variables_in_sparks_settings(cluster, azurite, container, text, tmp_path):
    """The cluster was started without these variables, which a fixture sets for this test alone."""
    place = below(container, tmp_path.name)
    with folder_at(below(place, "in")).create("lines.txt") as file:
        file.write(text.read_bytes())
    properties = {
        "File-splitter.prop.scanner.files": below(place, "in"),
        "Block-reader.prop.minReaders": 2,
        "Record-writer.prop.filePath": below(place, "out"),
    }
    definitions = [f"dt.operator.{name}={value}" for name, value in properties.items()]
    variables = settings(tmp_path, **{f"executorEnv.{name}": value for name, value in azurite.environment.items()})
    words = [DRIVER, "line_filter", cluster.url, below(place, "app"), "0", *definitions]
    driver = Spoken([sys.executable, *words], {"PYTHONPATH": os.pathsep.join(sys.path), **variables})
    try:
        driver.until("^committed 1$")
        assert driver.process.wait(within(600)) == 0, "".join(driver.lines[-40:])
    finally:
        driver.kill()
    written = b""
    for found in files_below(below(place, "out"), recursive=True):
        with opened(found.path) as piece:
            written += piece.read()
    assert written.decode().splitlines() == [line for line in text.read_text().splitlines() if line[0] != "."]
