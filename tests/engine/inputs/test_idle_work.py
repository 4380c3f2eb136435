"""Idle work: what does not hold back a watermark, and from when on."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from dagkit.engine.inputs.event_times import Watermark, idle_instants, of_elements
from dagkit.engine.parts.pending import renewed
from dagkit.engine.program.address import Address
from dagkit.engine.work.item import WorkItem
from dagkit.ranges import OFFSET_INFINITY

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ACTIVE = WorkItem(Address("read.in"), (1,), "a", 0, OFFSET_INFINITY, reached=NOON + 5 * MINUTE)
IDLE = replace(ACTIVE, number=(2,), reached=NOON, in_vain=True, due=NOON + MINUTE, idle_since=NOON)


def test_idle_work_holds_back_until_its_time_is_over():
    for minutes, held in ((1, NOON), (2, ACTIVE.reached)):
        now = NOON + minutes * MINUTE
        assert of_elements([ACTIVE, IDLE], None, 2 * MINUTE, now) == Watermark(held)
        assert of_elements([ACTIVE, IDLE], None, None, now) == Watermark(NOON)
    assert of_elements([IDLE], ACTIVE.reached, 2 * MINUTE, NOON + 2 * MINUTE) == Watermark(ACTIVE.reached, is_idle=True)


def test_the_instant_at_which_work_becomes_idle_is_known_before():
    since = [NOON, None, NOON + MINUTE]
    assert list(idle_instants(since, 2 * MINUTE, NOON + MINUTE)) == [NOON + 2 * MINUTE, NOON + 3 * MINUTE]
    assert list(idle_instants(since, 2 * MINUTE, NOON + 2 * MINUTE)) == [NOON + 3 * MINUTE]
    assert list(idle_instants(since, None, NOON)) == []


def test_a_new_launch_asks_idle_work_before_it_lets_it_go():
    (item,) = renewed([IDLE])
    assert (item.due, item.idle_since) == (None, None)
    assert renewed([replace(IDLE, due=None)]) == [item]
