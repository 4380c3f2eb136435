"""Launches for the tests of their reports."""

from datetime import UTC, datetime
from typing import Any

from dagkit.engine.record.snapshot import RunSnapshot
from dagkit.engine.record.status_file import this_process

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class SetClock:
    instant: datetime = NOON

    def now(self) -> datetime:
        return self.instant


def first_snapshot(**driver: Any) -> RunSnapshot:
    """The first snapshot of a launch by this process, except for these fields of its identity."""
    return RunSnapshot(
        application="App",
        application_path="app",
        version="1",
        driver=this_process().model_copy(update=driver),
        master="reference",
        until="once",
        since=NOON,
        at=NOON,
    )
