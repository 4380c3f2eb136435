"""A restarted application resumes after the named window, with the output of one that was never further."""

import fcntl
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dagkit.cli.operating.run_views import seen_at
from dagkit.engine.files import publish as compact
from dagkit.engine.record.run_events import Observer, Resumed, RunEvent
from dagkit.engine.run.launch_record import keep_aside
from dagkit.engine.run.restart_mark import WITHDRAWN, RestartMark, finish_restart, made_beside
from dagkit.errors import RunFailure
from dagkit.launching import Launched, Machine, launch
from dagkit.ledger import Ledger
from dagkit.observers.run_text import picture
from dagkit.runs.restarting import Restart
from dagkit_operators import Map, PartWriter
from tests.engine.cast import Desk, Hurried, chain, files_in, lines_through_filter, numbers_collected, some_lines
from tests.engine.delivery_cast import numbers_inserted
from tests.engine.files.test_publish import written
from tests.engine.files.test_receipts import NAMES, desk_at, filled, receipts
from tests.launching.cast import Numbers
from tests.old_files import aged
from tests.processes import await_end

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def two_files(home: Path) -> Desk:
    """Lines whose blocks take several windows each, so that most windows leave incomplete files."""
    for name in "ab":
        (home / "in").mkdir(exist_ok=True)
        (path := home / "in" / name).write_text(some_lines(7, seed=ord(name)))
        aged(path)
    return Desk(home, lines_through_filter(home, block_size=128), backend=Hurried)


def restarted(desk: Desk, window: int, minutes: int = 0) -> Path:
    return Path(Restart.planned(desk.place, window).perform(NOON + timedelta(minutes=minutes)))


@pytest.mark.slow
def test_the_output_is_the_same_from_whatever_window_it_begins_again(tmp_path):
    desk = two_files(tmp_path)
    last = desk.run().checkpoint.window
    whole = desk.outputs()
    assert last > 5
    window = 0
    while (window := window + 1) < last:
        before = desk.outputs()
        kept = restarted(desk, window, window)
        withdrawn = {path.name for path in (kept / WITHDRAWN).rglob("*") if path.is_file()}
        assert desk.outputs() == {name: content for name, content in before.items() if name not in withdrawn}
        assert desk.loop().checkpoint.window == window
        last = desk.run().checkpoint.window
        assert (desk.outputs(), desk.faults(), desk.leftovers()) == (whole, [], [])


def test_the_ledger_of_the_earlier_run_stays_as_it_was(tmp_path):
    desk = Desk(tmp_path, numbers_collected(((9,), (9,), (9,))))
    desk.run()
    whole = {path.relative_to(desk.place): path.read_bytes() for path in Path(desk.place, "ledger").rglob("*.json")}
    kept = restarted(desk, 1)
    assert whole == {path.relative_to(kept): path.read_bytes() for path in (kept / "ledger").rglob("*.json")}


def test_files_that_are_gone_are_named_and_written_again(tmp_path):
    desk = two_files(tmp_path)
    last = desk.run().checkpoint.window
    whole = desk.outputs()
    planned = Restart.planned(desk.place, 1)
    taken = Path(planned.withdrawn[0])
    taken.unlink()
    again = Restart.planned(desk.place, 1)
    assert (again.missing, again.last) == ((str(taken),), last)
    again.perform(NOON)
    desk.run()
    assert desk.outputs() == whole


@pytest.mark.parametrize("removed", [True, False], ids=["empty folders go", "folders that cannot be removed stay"])
def test_files_that_later_windows_wrote_go_with_the_folders_that_only_they_filled(tmp_path, monkeypatch, removed):
    monkeypatch.chdir(tmp_path)
    for window in "" if removed else "23":
        (tmp_path / "disk" / window).mkdir(parents=True)
        (tmp_path / "out").mkdir(exist_ok=True)
        (tmp_path / "out" / window).symlink_to(tmp_path / "disk" / window)
    writer = PartWriter(file_path="out", file_name="{window}/{partition}-{number}", rotation_windows=1)
    folders_of_windows = chain(Numbers=Numbers(last=3), Text=Map(str), W=writer)
    launched = launch(folders_of_windows, until="once", machine=Machine("reference"), path="app", durable=False)
    assert sorted(folder.name for folder in (tmp_path / "out").iterdir()) == ["1", "2", "3"]
    planned = Restart.planned(launched.application_path, 1)
    kept = planned.perform(NOON)
    assert [Path(f"{kept}/{WITHDRAWN}{file}").is_file() for file in planned.withdrawn] == [True, True]
    assert sorted(folder.name for folder in (tmp_path / "out").iterdir()) == (["1"] if removed else ["1", "2", "3"])


def test_a_restart_that_was_planned_before_a_launch_changes_nothing(tmp_path):
    desk = Desk(tmp_path, numbers_collected(((9,), (9,), (9,))))
    desk.run(windows=2)
    planned = Restart.planned(desk.place, 1)
    assert desk.run().checkpoint.window == 3
    with pytest.raises(RunFailure, match="changed meanwhile"):
        planned.perform(NOON)
    assert desk.loop().checkpoint.window == 3


def test_a_restart_that_was_killed_while_it_copied_is_repeated(tmp_path):
    desk = Desk(tmp_path, numbers_collected(((9,), (9,))))
    desk.run()
    Ledger.create(f"{desk.place}.restarting")
    restarted(desk, 1)
    assert desk.loop().checkpoint.window == 1


@pytest.mark.parametrize(("window", "problem"), [(2, "the last one"), (7, "its windows are 1 to 2")])
def test_a_window_without_later_ones_is_refused(tmp_path, window, problem):
    desk = Desk(tmp_path, numbers_collected(((9,), (9,))))
    assert desk.run().checkpoint.window == 2
    with pytest.raises(RunFailure, match=problem):
        Restart.planned(desk.place, window)


KILLED = """
import os, pathlib, shutil, signal, sys
from datetime import UTC, datetime
from dagkit.runs.restarting import Restart

left = int(sys.argv[2])

def counted(change):
    def counting(*given, **named):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return change(*given, **named)
    return counting

planned = Restart.planned(sys.argv[1], 1)
pathlib.Path.write_text, pathlib.Path.rename = counted(pathlib.Path.write_text), counted(pathlib.Path.rename)
pathlib.Path.unlink, shutil.move, os.sync = counted(pathlib.Path.unlink), counted(shutil.move), counted(os.sync)
planned.perform(datetime.now(UTC))
"""


def killed(place: str, step: int) -> int:
    """The exit code of a child that restarts the application, and is killed before this change."""
    child = os.fork()
    if not child:
        try:
            sys.argv = ["", place, str(step)]
            exec(KILLED, {})  # noqa: S102 - the text above
            os._exit(0)
        finally:
            os._exit(1)
    await_end(child)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.slow
def test_a_restart_that_is_killed_anywhere_is_finished_or_has_changed_nothing(tmp_path):
    desk = two_files(tmp_path)
    last = desk.run().checkpoint.window
    whole, before = desk.outputs(), tmp_path / "before"
    for folder in ("app", "out"):
        shutil.copytree(tmp_path / folder, before / folder)
    seen, code, step = set(), -signal.SIGKILL, 0
    while code:
        for path in set(tmp_path.glob("app*")) - {made_beside(desk.place)}:  # that of a killed one may be there
            shutil.rmtree(path)
        shutil.copytree(before, tmp_path, dirs_exist_ok=True)
        code = killed(desk.place, step)
        assert code in (0, -signal.SIGKILL)
        begins: list[int] = []
        launched_again(desk, lambda event, begins=begins: isinstance(event, Resumed) and begins.append(event.window_id))
        assert begins[0] in (1, last)
        seen.add(begins[0] == 1)
        assert (desk.outputs(), desk.faults()) == (whole, [])
        assert not Path(desk.place, "restart.json").exists()
        step += 1
    assert (seen, step > 6) == ({True, False}, True)


@contextmanager
def locked(folder: str) -> Iterator[None]:
    """Another process works in the folder."""
    opened = os.open(folder, os.O_RDONLY)
    fcntl.flock(opened, fcntl.LOCK_EX)
    yield
    os.close(opened)


def test_a_launch_waits_for_no_restart_and_moves_no_files_beside_it(tmp_path):
    desk = two_files(tmp_path)
    desk.run()
    planned = Restart.planned(desk.place, 1)
    kept = planned.perform(NOON)
    RestartMark(kept=kept, withdrawn=planned.withdrawn).write(Path(desk.place))  # its process still moves files
    with locked(kept):
        for begin in (lambda: Restart.planned(desk.place, 1), lambda: launched_again(desk)):
            with pytest.raises(RunFailure, match="another process restarts or launches the application now"):
                begin()
    assert launched_again(desk).window_id > 1
    assert not Path(desk.place, "restart.json").exists()


def launched_again(desk: Desk, *observers: Observer) -> Launched:
    options = {"machine": Machine("reference"), "path": desk.place, "durable": False, "observers": observers}
    return launch(desk.draw, until="once", **options)


def test_the_status_after_a_restart_names_the_window_that_the_next_launch_resumes_after(tmp_path):
    desk = two_files(tmp_path)
    desk.run()
    restarted(desk, 2)
    seen = seen_at(desk.place)
    assert (seen.state, seen.window, seen.runs) == ("restarted", 2, False)
    assert re.fullmatch(
        r"[\w.]+: restarted 2026-01-01 \d\d:00:00, and not launched since; the next launch resumes after window 2",
        picture(seen),
    )
    launched_again(desk)
    assert seen_at(desk.place).state == "stopped"


def test_a_damaged_mark_is_named(tmp_path):
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "restart.json").write_bytes(b'{"kept": "\xff')
    with pytest.raises(RunFailure, match=r"app/restart.json, which holds .*, is damaged"):
        finish_restart(str(tmp_path / "app"))


def test_folders_that_are_kept_at_the_same_moment_have_names_of_their_own(tmp_path):
    kept = set()
    for _ in range(4):
        (tmp_path / "app" / "ledger").mkdir(parents=True)
        kept.add(keep_aside(str(tmp_path / "app"), NOON))
    assert {str(path) for path in tmp_path.iterdir()} == kept
    assert len(kept) == 4


def test_a_folder_that_cannot_be_renamed_is_refused_and_nothing_is_changed(tmp_path):
    """The name of the kept folder is too long here; more often, the folder is where a filesystem is mounted."""
    desk = two_files(tmp_path)
    desk.run()
    place = tmp_path / ("x" * 240)
    Path(desk.place).rename(place)
    problem = "cannot be renamed to keep the earlier run: File name too long; nothing was changed"
    for rename in (lambda: keep_aside(str(place), NOON), lambda: Restart.planned(str(place), 1).perform(NOON)):
        with pytest.raises(RunFailure, match=problem) as refused:
            rename()
        assert refused.value.code == "folder-refused"
    assert finish_restart(str(place)) is None
    assert place.is_dir()


def test_two_restarts_at_once_do_not_disturb_each_other(tmp_path):
    desk = two_files(tmp_path)
    desk.run()
    first, second = Restart.planned(desk.place, 1), Restart.planned(desk.place, 1)
    busy = "another process restarts or launches the application now"
    with locked(desk.place), pytest.raises(RunFailure, match=busy):
        first.perform(NOON)
    first.perform(NOON)
    with pytest.raises(RunFailure, match="window 1 is the last one"):
        second.perform(NOON)
    assert desk.loop().checkpoint.window == 1


def test_an_application_that_was_launched_since_the_question_is_not_renamed(tmp_path):
    desk = Desk(tmp_path, numbers_collected(((9,), (9,), (9,))))
    launched_again(desk)
    planned, refused = Restart.planned(desk.place, 1), []

    def answer(event: RunEvent) -> None:
        if isinstance(event, Resumed):
            with pytest.raises(RunFailure, match=r"\[driver-runs\]"):
                planned.perform(NOON)
            refused.append(event)

    launched_again(desk, answer)
    assert len(refused) == 1
    assert [path.name for path in tmp_path.glob("app*")] == ["app"]


def test_pieces_of_a_file_that_were_joined_later_are_missed_before_anything_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(compact, "MOST_PIECES", 2)
    desk = written(tmp_path, 5)
    for windows in (4, None):
        desk.run(windows=windows)
        with pytest.raises(RunFailure, match="not complete after window 1"):
            Restart.planned(desk.place, 1)
    assert files_in(desk.out)


def test_pieces_of_a_file_that_is_complete_now_are_staged_again(tmp_path):
    desk = written(tmp_path, 5)
    last = desk.run().checkpoint.window
    whole = desk.outputs()
    for window in range(last - 1, 0, -1):
        restarted(desk, window, window)
        assert desk.outputs() == {}
        assert [part.window for part in desk.loop().checkpoint.files] == list(range(1, window + 1))
        desk.run()
        assert (desk.outputs(), desk.faults(), desk.leftovers()) == (whole, [], [])


def test_a_window_after_which_a_table_got_rows_is_refused(tmp_path):
    desk = Desk(tmp_path, numbers_inserted(tmp_path / "numbers.db"))
    assert desk.run().checkpoint.window > 1
    with pytest.raises(RunFailure, match="delivered entries of insert to an external system"):
        Restart.planned(desk.place, 1)


@pytest.mark.slow
@pytest.mark.parametrize("window", [1, 2, 3])
def test_each_file_has_one_receipt_from_whatever_window_it_begins_again(tmp_path, window):
    desk = desk_at(filled(tmp_path))
    assert desk.run().checkpoint.window > window
    windows = {name: receipt["window"] for name, receipt in receipts(tmp_path).items()}
    restarted(desk, window)
    there = {name for name in NAMES if windows[name] <= window}
    assert receipts(tmp_path).keys() == there, "a receipt of a later window names output that is not there"
    for path in (tmp_path / "receipts").glob("*"):  # a sender takes its receipts away
        path.unlink()
    desk.run()
    again = receipts(tmp_path)
    assert again.keys() == set(NAMES) - there, "a receipt of an earlier window is not written again"
    for name, receipt in again.items():
        written = [line for file in receipt["outputs"] for line in Path(file).read_text().splitlines()]
        assert set((tmp_path / "in" / name).read_text().splitlines()) <= set(written)
    assert desk.faults() == []


def test_receipts_that_a_sender_took_are_named(tmp_path):
    desk = desk_at(filled(tmp_path))
    desk.run()
    taken = next((tmp_path / "receipts").glob("d.txt.*"))
    taken.unlink()
    assert Restart.planned(desk.place, 1).missing == (str(taken),)
