"""Applications on YARN, whose executors have no dagkit: the output is that of an undisturbed run of the reference."""

import json
import os
import signal
import sys
import tarfile
from pathlib import Path

import pytest

from dagkit.backends.spark.session.java import ensure_java
from dagkit.backends.spark.session.session_settings import spark_home
from tests.backends.test_preflight import without_dagkit
from tests.cluster.standalone import EXECUTOR, Spoken
from tests.cluster.test_clusters import Run, disturbed, has_processes
from tests.services.yarn import Yarn

pytestmark = [pytest.mark.spark, pytest.mark.trial, has_processes]


@pytest.fixture(scope="module")
def yarn(tmp_path_factory):
    with Yarn(tmp_path_factory.mktemp("yarn")) as started:
        yield started


def packed(folder: Path) -> Path:
    """An archive with a Python that has no dagkit, as an environment is packed."""
    without_dagkit(folder)
    (python := folder / "python").write_text(
        '#!/bin/sh\nhere=$(cd "$(dirname "$0")/.." && pwd)\n'
        f'export PYTHONPATH="$here/packages:$PYTHONPATH"\nexec {sys.executable} -S "$@"\n'
    )
    with tarfile.open(folder / "environment.tar.gz", "w:gz") as archive:
        archive.add(python, "bin/python")
        archive.add(folder / "packages", "packages")
    return folder / "environment.tar.gz"


def test_a_container_is_killed_and_replaced(yarn, text, tmp_path):
    def kill_one(_: Spoken) -> None:
        for process in yarn.processes(EXECUTOR)[:2]:  # the shell of a container, and its Java
            os.kill(process, signal.SIGKILL)

    environment = {**yarn.environment(executors=2), "PYSPARK_PYTHON": without_dagkit(tmp_path)}
    disturbed(Run("line_filter", text, tmp_path), "yarn", kill_one, environment)


def test_a_driver_in_a_container_takes_its_master_from_spark_submit(yarn, text, tmp_path):
    """Its executors run the Python of an archive."""
    run = Run("line_filter", text, tmp_path)
    submit = [str(spark_home() / "bin" / "spark-submit"), "--master", "yarn", "--deploy-mode", "cluster"]
    archive = ["--archives", f"{packed(tmp_path)}#environment"]
    pythons = {"PYSPARK_PYTHON": "./environment/bin/python", "PYSPARK_DRIVER_PYTHON": sys.executable}
    submitted = Spoken(
        [*submit, *archive, *run.words("-", pause=0)],
        {**yarn.environment(executors=1), "JAVA_HOME": str(ensure_java()), **pythons},
    )
    try:
        status = submitted.until(r"final status: (SUCCEEDED|FAILED)")[1]
    finally:
        submitted.kill()
    assert status == "SUCCEEDED", yarn.logs()
    assert json.loads((tmp_path / "ledger" / "status.json").read_text())["master"] == "yarn"
    run.check()
