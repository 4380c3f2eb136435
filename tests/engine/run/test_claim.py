"""Of several launches at the same moment, one runs; the others see it and are refused."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dagkit.engine.record.snapshot import RunSnapshot, bytes_of
from dagkit.engine.record.status_file import STATUS, this_process
from dagkit.engine.run.launch_record import claimed
from dagkit.errors import RunFailure
from tests.patience import within

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LONG_ENOUGH = 0.05
"""Seconds in which a launch that does not wait would begin; one that waits passes however slow the machine is."""


def running(place: Path) -> None:
    """Write the status of a driver that runs: this process."""
    status = RunSnapshot(
        application="Sums",
        application_path=str(place),
        version="1",
        driver=this_process(),
        master="reference",
        until="once",
        since=NOON,
        at=NOON,
    )
    (place / STATUS).write_bytes(bytes_of(status))


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("other_fresh", [True, False])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_launch_waits_until_the_one_before_has_written_its_status(tmp_path, fresh, other_fresh, is_there):
    place = tmp_path / "app"
    if is_there:
        (place / "ledger").mkdir(parents=True)
    with ThreadPoolExecutor() as pool:
        with claimed(str(place), take_over=False, fresh=fresh) as kept:
            assert (kept is not None) == (fresh and is_there)
            other = pool.submit(claim, place, other_fresh)
            assert not waited(other, LONG_ENOUGH), "the other launch began beside this one"
            running(place)
        with pytest.raises(RunFailure, match="Sums is already running"):
            other.result(within(30))
    assert (place / STATUS).exists()


def claim(place: Path, fresh: bool) -> None:
    with claimed(str(place), take_over=False, fresh=fresh):
        running(place)


def waited(future: "Future[None]", seconds: float) -> bool:
    """Whether it ended within this time."""
    ended = threading.Event()
    future.add_done_callback(lambda _: ended.set())
    return ended.wait(seconds)


def test_of_many_fresh_launches_at_once_one_runs(tmp_path):
    (tmp_path / "app" / "ledger").mkdir(parents=True)
    with ThreadPoolExecutor(16) as pool:
        begun = [pool.submit(claim, tmp_path / "app", True) for _ in range(16)]
    refused = [one for one in begun if getattr(one.exception(), "code", None) == "driver-runs"]
    assert len(refused) == 15
    assert len(list(tmp_path.iterdir())) == 2, "the folder, and the one of the earlier run"


def test_a_place_that_is_no_folder_is_left_to_the_ledger(tmp_path):
    (tmp_path / "app").touch()
    with claimed(str(tmp_path / "app"), take_over=False, fresh=False) as kept:
        assert kept is None
