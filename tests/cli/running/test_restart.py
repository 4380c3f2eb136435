"""`dagkit restart`: says what it will do, asks, and refuses while the application runs."""

from pathlib import Path

import pytest

from dagkit.engine.reports.run_events import Committed, Observer
from dagkit.launching import Machine, launch
from tests.engine.cast import numbers_collected

pytestmark = pytest.mark.slow


def run_numbers(looks: tuple[tuple[int, ...], ...], *observers: Observer) -> None:
    launch(
        numbers_collected(looks),
        {"dt.attr.APPLICATION_NAME": "Numbers"},
        until="once",
        machine=Machine("reference"),
        path="app",
        durable=False,
        observers=observers,
    )


@pytest.fixture
def place(tmp_path: Path) -> str:
    """The folder of an application that committed three windows."""
    run_numbers(((9,), (9,), (9,)))
    return str(tmp_path / "app")


def test_it_says_what_it_will_do_and_does_it(dagkit, place: str) -> None:
    answer = dagkit("restart", place, "--from", "1", "--yes")
    assert answer.err.splitlines() == [
        "Numbers will resume after window 1: what windows 2 to 3 processed is processed again",
        "  its folder is renamed to app.TIME and kept",
    ]
    assert answer.out.startswith("Numbers resumes after window 1; the earlier run is in ")
    again = dagkit("restart", place, "--from", "1", "--yes")
    assert (again.code, again.err.partition("\n")[0]) == (3, "window 1 is the last one [restart-refused]")


def test_without_a_terminal_and_without_yes_it_changes_nothing(dagkit, place: str) -> None:
    answer = dagkit("restart", place, "--from", "1")
    assert (answer.code, answer.err.splitlines()[-1]) == (2, "nothing was changed: --yes restarts without asking")
    assert [path.name for path in Path(place).parent.glob("app*")] == ["app"]


def test_the_document_names_both_folders(dagkit, place: str) -> None:
    document = dagkit("restart", place, "--from", "2", "--yes", "--json").document
    assert Path(document.pop("kept")).is_dir()
    assert document == {
        "schema": "dagkit.restart/1",
        "application": "Numbers",
        "place": place,
        "window": 2,
        "last": 3,
        "withdrawn": [],
        "missing": [],
    }


def test_a_running_application_is_not_restarted(dagkit, tmp_path: Path) -> None:
    codes = []

    def restart_it(event: object) -> None:
        if isinstance(event, Committed):
            codes.append(dagkit("restart", str(tmp_path / "app"), "--from", "1", "--yes").code)

    run_numbers(((9,),), restart_it)
    assert codes == [11]
