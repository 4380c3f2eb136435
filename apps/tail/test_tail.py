"""What is appended to logs is read once, on every backend alike, whatever is launched, stopped and launched again."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from dagkit.cli import main
from dagkit.plan import read_plan

HERE = str(Path(__file__).parent)
NOON = "2024-05-01T12:00:00+00:00"

backends = pytest.mark.parametrize(
    "options", [["--reference"], pytest.param(["--cores", "2"], marks=[pytest.mark.slow, pytest.mark.spark])]
)


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.log").write_text(f"{NOON} INFO one\nno entry\n{NOON} WARN tw")
    (folder / "b.log").write_text(f"{NOON} INFO begun\n")
    return folder


def launched(*options: str) -> None:
    answer = CliRunner().invoke(main, ["launch", HERE, "--once", "--json", *options])
    assert answer.exit_code == 0, answer.output


def written(folder: str) -> list[str]:
    place = Path("output", folder)
    files = sorted(place.iterdir()) if place.exists() else []
    return sorted(line for file in files for line in file.read_text(encoding="utf-8").splitlines())


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


@backends
def test_each_launch_reads_what_came_since_the_last_one(options: list[str], logs: Path) -> None:
    launched(*options)
    assert written("entries") == ["INFO begun", "INFO one"]
    assert written("rejected") == [f"{logs}/a.log at 35: not enough values to unpack (expected 3, got 2)"]
    append(logs / "a.log", "o\n")
    (logs / "c.log").write_text(f"{NOON} ERROR new\n")
    launched(*options)
    assert written("entries") == ["ERROR new", "INFO begun", "INFO one", "WARN two"]
    launched(*options)
    assert written("entries") == ["ERROR new", "INFO begun", "INFO one", "WARN two"]
    assert len(written("rejected")) == 1
    assert written("lost") == []


def test_a_log_that_is_rotated_is_read_to_its_end_and_so_is_the_next(logs: Path) -> None:
    launched("--reference")
    append(logs / "b.log", f"{NOON} INFO late\n")
    (logs / "b.log").rename(logs / "b.log.1")
    (logs / "b.log").write_text(f"{NOON} INFO another\n")
    launched("--reference")
    assert written("entries") == ["INFO another", "INFO begun", "INFO late", "INFO one"]
    assert written("lost") == []


def test_a_log_that_was_written_anew_is_read_and_what_may_be_lost_is_told(logs: Path) -> None:
    launched("--reference")
    (logs / "b.log").write_text(f"{NOON} INFO anew\n")
    launched("--reference")
    assert written("entries") == ["INFO anew", "INFO begun", "INFO one"]
    assert written("lost") == [f"{logs}/b.log at 1: is gone, or was written anew, or another file has its name"]


def test_files_are_found_by_one_and_read_by_two() -> None:
    plan = read_plan(CliRunner().invoke(main, ["plan", HERE, "--json"]).stdout)
    assert [stage.operators for stage in plan.stages][:2] == [("Patterns",), ("Match",)]
    assert ("Tail", "Entries") in [stage.operators for stage in plan.stages] or plan.by_name["Entries"].count == 2
    assert {name: plan.by_name[name].count for name in ("Match", "Tail", "Entries")} == {
        "Match": 1,
        "Tail": 2,
        "Entries": 2,
    }
