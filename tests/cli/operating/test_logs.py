"""The log that drivers keep in the application's folder, and the command that prints it."""

import json
import logging
from pathlib import Path

import pytest

from dagkit.engine.failures import OperatorFailed
from dagkit.launching import Machine, launch
from dagkit.observers import run_log
from tests.engine.changes.test_requests import multiplied

TIMES = {"dt.attr.APPLICATION_NAME": "Times"}


def launched(conf=TIMES, **options):
    launch(multiplied(), conf, until="once", machine=Machine("reference"), path="app", **options)


def events(text):
    return [json.loads(line)["event"] for line in text.splitlines()]


def test_the_log_has_the_events_of_all_launches(dagkit, folder):
    launched()
    launched()
    shown = events(dagkit("logs", "app", "--json").out)
    assert (shown[0], shown[-1], shown.count("resumed"), "measured" in shown) == ("resumed", "ended", 2, False)
    assert events(dagkit("logs", "app", "-n", "1", "--json").out) == ["ended"]


def test_a_line_is_shown_as_text_and_what_no_driver_wrote_as_it_is(dagkit, folder):
    launched()
    (line,) = dagkit("logs", "app", "-n", "1").out.splitlines()
    assert (line.split()[1:3], line.split()[3][:7]) == (["info", "ended"], "window=")
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
    assert " warning logged it is late logger=" not in text
    assert " warning logged it is late" in text
    assert " error stopped OperatorFailed: times failed in window 1" in text


def test_the_log_is_divided_into_files_and_read_as_one(dagkit, folder, monkeypatch):
    monkeypatch.setattr(run_log, "LONGEST_BYTES", 400)
    launched()
    assert len(list((folder / "app" / "logs").iterdir())) > 1
    assert events(dagkit("logs", "app", "--json").out)[-1] == "ended"


def test_warnings_still_reach_stderr_where_no_logging_is_set_up(process, folder):
    (folder / "warns.py").write_text(
        """
import logging
from dagkit.launching import Machine, launch
from tests.engine.changes.test_requests import multiplied

launch(multiplied(), until="once", machine=Machine("reference"), path="app",
       observers=[lambda event: logging.getLogger("mine").warning("late")])
"""
    )
    answer = process(python=("warns.py",))
    assert set(answer.err.splitlines()) == {"late"}
