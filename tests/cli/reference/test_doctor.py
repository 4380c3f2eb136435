"""`dagkit doctor`: each check, as it is found and as it fails."""

import json
import sys
from datetime import UTC, datetime, timedelta

from dagkit.backends.spark.session.java import JavaNotFound
from dagkit.cli.reference import doctor
from dagkit.ledger.stores import LocalStore
from tests.processes import run_program

CHECKS = ["versions", "versions", "compiled C", "Java", "storage", "clock"]
CHECKS += ["space for applications", "space for temporary files", "workers' Python"]


def findings(answer):
    listed = answer.document["findings"]
    return {each["check"]: (each["ok"], each["found"], each["help"]) for each in listed}


def test_every_check_is_reported_and_nothing_is_left_behind(dagkit, folder):
    answer = dagkit("doctor", "--json")
    assert [each["check"] for each in answer.document["findings"]] == CHECKS
    assert findings(answer)["storage"][0]
    assert list(folder.iterdir()) == []


def test_the_folders_on_the_way_to_a_place_that_does_not_exist_are_not_left_behind(dagkit, folder):
    (folder / "there").mkdir()
    found = findings(dagkit("doctor", "--path", "there/not/yet", "--json"))["storage"]
    assert (found[0], found[1].partition(":")[0]) == (True, "there/not/yet (not there yet)")
    assert [path.name for path in folder.rglob("*")] == ["there"]


def test_the_folder_of_an_application_is_checked(dagkit, word_count, folder):
    answer = dagkit("doctor", word_count, "-D", f"dt.attr.APPLICATION_PATH={folder}/elsewhere", "--json")
    assert findings(answer)["storage"][1].startswith(f"{folder}/elsewhere (not there yet): creates exclusively")
    dagkit("doctor", "--spark", "spark.executor.memory=1g").fails(2, "--spark needs --master")


def test_a_master_that_does_not_answer_is_a_finding():
    """In a process of its own: that of the tests may have a session."""
    command = [sys.executable, "-m", "dagkit.cli", "doctor", "--json", "--master", "spark://master.invalid:7077"]
    answer = run_program(command, check=False)
    assert answer.returncode == 5
    ((ok, found, help_),) = [
        (each["ok"], each["found"], each["help"])
        for each in json.loads(answer.stdout)["findings"]
        if each["check"] == "Spark"
    ]
    assert (ok, found) == (False, "no Spark at spark://master.invalid:7077: there is no host 'master.invalid'")
    assert help_.startswith("check the host and the port")


def test_a_failed_check_says_what_to_do_and_has_an_exit_code(dagkit, monkeypatch):
    def missing():
        raise JavaNotFound("Spark needs Java, and none was found", "install Java 17")

    monkeypatch.setattr(doctor, "ensure_java", missing)
    answer = dagkit("doctor")
    shown = [part in answer.out for part in ("FAIL  Spark needs Java, and none was found\n", "help: install Java 17\n")]
    assert (answer.code, shown) == (5, [True, True])


def test_another_python_of_workers_fails(folder, write, monkeypatch):
    other = write("python", "#!/bin/sh\necho 2.7\n")
    other.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(other))
    found = doctor.workers_python()
    problem = f"Spark's workers run {other}, which is Python 2.7"
    assert (found.ok, found.found.partition(", but")[0]) == (False, problem)
    monkeypatch.setenv("PYSPARK_PYTHON", str(folder / "none"))
    assert not doctor.workers_python().ok


def test_a_store_whose_creation_is_not_exclusive_fails(folder, monkeypatch):
    monkeypatch.setattr(LocalStore, "create", LocalStore.replace)
    (exclusive, _) = doctor.storage("app")
    assert (exclusive.ok, exclusive.found) == (False, "app (not there yet): two writers can both create a file")


def test_a_folder_that_cannot_be_made_another_clock_and_little_space_fail(folder, write, monkeypatch):
    write("file", "a file")
    (refused,) = doctor.storage("file/app")
    assert (refused.ok, bool(refused.help)) == (False, True)
    monkeypatch.setattr(LocalStore, "modified", lambda *_: datetime.now(UTC) + timedelta(seconds=90))
    _, clock = doctor.storage("app")
    assert (clock.ok, clock.found.startswith(("89.", "90."))) == (False, True)
    monkeypatch.setattr(doctor, "LEAST_SPACE", 1 << 62)
    assert not doctor.space("applications", folder / "not" / "made").ok
