"""While much work waits, windows record its sum, and checkpoints what changed in it: nothing is lost in any crash."""

from itertools import product

import pytest

from dagkit.api.running import Until
from dagkit.engine.program.points import Point
from dagkit.engine.record import stored, work_records
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.history import history
from dagkit.engine.work import queue, waiting
from dagkit.engine.work.waiting import WorkSum
from dagkit.testing.crashes import CrashAfter
from tests.engine.cast import Desk, Digits, Hurried, InPairs, Ranges, arrived, chain, numbers_collected

LOOKS = tuple(tuple(1 + (look + block) % 7 for block in range(30)) for look in range(4))
TOTAL = sum(map(sum, LOOKS))


@pytest.fixture(autouse=True)
def much_is_little(monkeypatch):
    monkeypatch.setattr(work_records, "LISTED", 5)
    monkeypatch.setattr(waiting, "PACKED", 4)
    monkeypatch.setattr(queue, "MOST_AT_FRONT", 6)
    monkeypatch.setattr(stored, "SHORT", 0)


def checkpoints(desk: Desk) -> list[Checkpoint]:
    return [entry.checkpoint for entry in history(desk.ledger())]


def is_a_sum(checkpoint: Checkpoint) -> bool:
    """Whether the record of a window has the sum of what waits; it must be that of the queue, as must a list."""
    for work in checkpoint.work.inputs or ():
        waits = WorkSum.of(checkpoint.queue)
        listed = sum((span.end or 0) - span.start for span in work.pending)
        assert waits == (WorkSum(listed) if work.waits is None else WorkSum(**work.waits.model_dump()))
        if work.waits is not None:
            return True
    return False


@pytest.mark.trial
@pytest.mark.slow
@pytest.mark.parametrize("until", [Until.ONCE, Until.DRAINED])
def test_no_number_is_lost_or_doubled_in_a_run_that_is_killed_in_any_window(until, tmp_path):
    desk = Desk(tmp_path, numbers_collected(LOOKS), backend=Hurried)
    points = [Point.PLANNED, Point.STAGED, Point.APPENDED]
    assert desk.crash(*(CrashAfter(point, window) for window, point in product(range(1, 5), points))) == 12
    desk.until = until
    desk.run()
    desk.until = Until.ONCE
    assert sorted(arrived(desk.run())) == [*range(TOTAL)]
    assert desk.faults() == []
    assert any(map(is_a_sum, checkpoints(desk)))


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize("backend", [Hurried, lambda backend: InPairs(Hurried(backend))])
def test_a_window_records_no_work_that_only_a_younger_one_discovered(backend, tmp_path):
    desk = Desk(tmp_path, chain(ranges=Ranges(looks=LOOKS), digits=Digits()), backend=backend)
    desk.run(windows=4)
    desk.backend = Hurried
    desk.run(windows=4)
    assert any(map(is_a_sum, checkpoints(desk)))
    assert all("missing" not in fault and "doubled" not in fault for fault in desk.faults())
    desk.run()
    assert desk.faults() == []
