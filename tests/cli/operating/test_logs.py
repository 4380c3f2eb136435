"""The log that drivers keep in the application's folder, and the command that prints it."""

import json
import logging
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dagkit.engine.program.failures import OperatorFailed
from dagkit.launching import Machine, launch
from dagkit.observers import run_log
from dagkit.observers.log_lines import as_text, new_lines, opened
from tests.engine.parts.test_requests import multiplied

TIMES = {"dt.attr.APPLICATION_NAME": "Times"}


def launched(conf=TIMES, **options):
    launch(multiplied(), conf, until="once", machine=Machine("reference"), path="app", **options)


def events(text):
    return [json.loads(line)["event"] for line in text.splitlines()]


def test_the_log_has_the_events_of_all_launches_in_several_files_and_progress_on_request(dagkit, folder, monkeypatch):
    with monkeypatch.context() as short:
        short.setattr(run_log, "LONGEST_BYTES", 400)
        launched()
        launched()
    assert len(list((folder / "app" / "logs").iterdir())) > 1
    shown = events(dagkit("logs", "app", "--json").out)
    assert (shown[-1], "measured" in shown) == ("ended", False)
    assert events(dagkit("logs", "app", "-n", "1", "--json").out) == ["ended"]
    working = {"window_id": 1, "operator": "Read", "slot": 0, "source": "a", "since": "", "fraction": 0.25}
    with (folder / "app" / "logs" / "driver.log").open("a") as log:
        log.write(json.dumps({"ts": "", "level": "info", "event": "working", "work": [working]}) + "\n")
    assert ["at work: Read a 25%" in dagkit("logs", "app", *option).out for option in ((), ("-v",))] == [False, True]


def test_following_continues_in_the_next_file_of_the_log(tmp_path):
    newest = tmp_path / "driver.log"
    newest.write_text("one\n")

    def renamed():
        with newest.open("a") as log:
            log.write("three\n")
        newest.rename(tmp_path / "driver.log.1")

    def append(text):
        with newest.open("a") as log:
            log.write(text)

    steps = iter([lambda: append("two\n"), renamed, lambda: append("four\n"), lambda: append("five\n")])

    def wait():
        step = next(steps, None)
        if step is not None:
            step()
        return step is not None

    with opened(newest) as file:
        assert list(new_lines(newest, file, wait)) == ["one\n", "two\n", "three\n", "four\n", "five\n"]


def test_a_line_is_shown_as_text_and_what_no_driver_wrote_as_it_is(dagkit, folder):
    launched()
    (line,) = dagkit("logs", "app", "-n", "1").out.splitlines()
    assert line[24:] == "info    window 4: ended"
    assert events(dagkit("logs", "app", "-f", "-n", "1", "--json").out) == ["ended"], "following ends, too"
    lines = [b'{"ts": 1, "level": "info", "event": "ended"}', b"[]", b'{"event": "en', b"\xff\x1b[2J", b"[" * 9999]
    with (folder / "app" / "logs" / "driver.log").open("ab") as log:
        log.write(b"\n".join([*lines, b'{"ts": "20']))
    shown = dagkit("logs", "app", "-n", "6")
    expected = [line.decode(errors="backslashreplace").replace("\x1b", r"\u001b") for line in lines]
    assert (shown.code, shown.out.splitlines()) == (0, [*expected, '{"ts": "20'])
    for file in (folder / "app" / "logs").iterdir():
        file.unlink()
    dagkit("logs", "app").fails(6, "app holds no log [application-missing]")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full: use Linux")
def test_a_full_disk_costs_the_log_and_not_the_launch(folder, caplog, capfd):
    (folder / "app" / "logs").mkdir(parents=True)
    (folder / "app" / "logs" / "driver.log").symlink_to("/dev/full")
    launched()
    warnings = [record.getMessage() for record in caplog.records if "log of this launch" in record.getMessage()]
    assert warnings == ["the log of this launch is incomplete: [Errno 28] No space left on device"]
    assert "Traceback" not in capfd.readouterr().err


def test_a_failure_and_the_warnings_before_it_are_kept(dagkit, folder, caplog):
    def warn(_: object) -> None:
        logging.getLogger("dagkit.test").warning("%s is late", "it")

    with pytest.raises(OperatorFailed):
        launched({**TIMES, "dt.operator.times.prop.factor": "-1"}, observers=[warn])
    text = dagkit("logs", "app").out
    assert " warning it is late\n" in text
    assert " error   OperatorFailed: times failed in window 1" in text
    assert " warning window 1, times: " not in text, "the error that ends the run reports the failure"
    assert " warning window 1, times: ValueError" in dagkit("logs", "app", "-v").out
    last = json.loads(dagkit("logs", "app", "--json").out.splitlines()[-1])
    assert (last["event"], last["window"], last["operator"]) == ("stopped", 1, "times")
    error = json.loads(dagkit("status", "app", "--json").out)["error"]
    assert error["raised_at"].startswith(f"{Path(__file__).parents[2]}/engine/parts/test_requests.py:")


def test_warnings_still_reach_stderr_where_no_logging_is_set_up(process, folder):
    (folder / "warns.py").write_text(
        """
import logging
from dagkit.launching import Machine, launch
from tests.engine.parts.test_requests import multiplied

launch(multiplied(), until="once", machine=Machine("reference"), path="app",
       observers=[lambda event: logging.getLogger("mine").warning("late")])
"""
    )
    assert set(process(python=("warns.py",)).err.splitlines()) == {"late"}


SENTENCES = {
    "starting": ({"step": "starting Spark"}, "starting Spark"),
    "resumed": ({"window": 3, "waiting": 2}, "resuming after window 3; 2 elements pending"),
    "found": ({"operator": "In", "blocks": 1, "items": 0, "amounts": {"byte": 1500}}, "In: found 1 element, 1.5 kB"),
    "started": ({"window": 4, "blocks": 1}, "window 4: begins with 1 element"),
    "failed": (
        {"window": 4, "operator": "Parse", "message": "ValueError: x", "again": True},
        "window 4, Parse: ValueError: x; the window runs again",
    ),
    "committed": (
        {"window": 4, "millis": 1250.0, "files": 2, "written": 20, "waiting": 1, "read": {"offset": 7}},
        "window 4: 7 offsets read, 20 B written, 2 files completed in 1.2 s; 1 element pending",
    ),
    "reshaped": (
        {"window": 4, "operator": "Read", "fact": "scaled", "after": 2, "before": 1, "rule": "much waits"},
        "window 4, Read: 2 partitions (before: 1): much waits",
    ),
    "logged": ({"message": "late", "exception": "Traceback\n  line"}, "late\n  Traceback\n    line"),
    "printed": ({"window": 4, "operator": "Parse", "message": "a b"}, "window 4, Parse: a b"),
    "of a later version": ({"window": 4, "some": "more words"}, 'window 4: of a later version some="more words"'),
    "committed by another version": ({"window": 4}, "window 4: committed by another version"),
}


@pytest.mark.parametrize(("event", "fields", "text"), [(name, *row) for name, row in SENTENCES.items()])
def test_a_line_is_a_time_a_level_and_a_sentence(event, fields, text):
    at = datetime(2026, 1, 1, 12, 0, 0, 250_000, UTC)
    line = as_text({"ts": "2026-01-01T12:00:00.250Z", "level": "info", "event": event, **fields})
    assert line == f"{at.astimezone():%Y-%m-%d %H:%M:%S}.250 info    {text}"
