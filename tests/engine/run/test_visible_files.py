"""In a launch that runs until it is stopped, files become visible by time, though no item comes any more."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dagkit.api.running import Until
from dagkit.cli.running.launch_progress import Progress
from dagkit.cli.terminal.output import Output
from dagkit.engine.program.points import Point
from dagkit.engine.record.run_events import Committed, RunEvent
from dagkit.testing import FakeClock
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import PartWriter
from tests.engine.cast import Desk, Script, chain

BEGAN = datetime(2024, 1, 1, tzinfo=UTC)


def continuous(home: Path, *looks: tuple[int, ...], kind: type[PartWriter] = PartWriter, **properties: Any) -> Desk:
    writer = kind(file_path=str(home / "out"), file_name="{partition}.{number}", format=str, **properties)
    return Desk(home, chain(script=Script(looks=looks), writer=writer), Until.STOPPED, clock=FakeClock())


def test_by_default_a_file_is_visible_after_a_minute(tmp_path):
    desk = continuous(tmp_path, (1, 2))
    desk.run(windows=1)
    assert desk.outputs() == {}
    desk.run(windows=1)
    assert desk.outputs() == {"0.0": b"1\n2\n"}
    assert desk.clock.now() == BEGAN + timedelta(seconds=60)


def test_the_time_is_published_with_each_window_and_each_file_has_its_own(tmp_path):
    desk, events = continuous(tmp_path, (1,), (2,), (), (), (), (3,), visible_millis=2500), list[RunEvent]()
    desk.run(windows=5, observers=[events.append])
    seconds = [
        None if event.visible is None else (event.visible - BEGAN).total_seconds()
        for event in events
        if isinstance(event, Committed)
    ]
    assert seconds == [2.5, 2.5, None, 5.5, None]
    assert desk.outputs() == {"0.0": b"1\n2\n", "0.1": b"3\n"}


@pytest.mark.parametrize("properties", [{"rotation_windows": 8}, {"max_idle_windows": 8}], ids=["age", "idleness"])
def test_windows_that_do_not_run_count_by_their_time(tmp_path, properties):
    desk = continuous(tmp_path, (1,), **properties)
    desk.run(windows=2)
    assert desk.outputs() == {"0.0": b"1\n"}
    assert desk.clock.now() == BEGAN + timedelta(seconds=4)


@pytest.mark.parametrize("point", [Point.PLANNED, Point.STAGED, Point.APPENDED, Point.FINISHED])
def test_a_crash_delays_no_file(tmp_path, point):
    desk = continuous(tmp_path, (1, 2))
    desk.crash(CrashAfter(point, 2))
    desk.run(windows=2 - desk.loop().checkpoint.window)
    assert (desk.outputs(), desk.troubles()) == ({"0.0": b"1\n2\n"}, [])


class Wishful(PartWriter):
    """Asks for windows, and finishes nothing in them."""

    def _roll(self, name: str, part: Any) -> Any:
        return part


def test_a_window_answers_all_earlier_requests(tmp_path):
    desk = continuous(tmp_path, (1,), *[()] * 9, (2,), kind=Wishful, visible_millis=1500)
    (state,) = desk.run(windows=3).state["writer"]
    assert state["parts"][""]["count"] == 2, "no window runs for a request that an earlier one has answered"


def test_the_command_prints_when_the_next_file_becomes_visible(capsys):
    progress, soon = Progress(Output(), {}, {}), datetime.now(UTC) + timedelta(hours=1)

    def committed(visible: datetime | None) -> str:
        progress(Committed(1, 1.0, 1, 0, 1, visible=visible))
        return capsys.readouterr().err

    assert committed(soon) == f"the next file becomes visible at {soon.astimezone():%H:%M:%S}\n"
    assert committed(soon + timedelta(seconds=9)) == "", "the first time has not passed yet"
    assert committed(None) == ""
    assert "becomes visible" in committed(soon + timedelta(seconds=9))
    passed = datetime.now(UTC) - timedelta(seconds=1)
    assert committed(None) == ""
    assert committed(passed) == "the next file becomes visible with the next window\n"
    assert "becomes visible" in committed(soon)
