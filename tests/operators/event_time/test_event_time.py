"""Event time in applications: from files to results, on every backend, across partitions, launches and crashes."""

from datetime import UTC, datetime

import pytest

from dagkit.testing import Alone
from dagkit_operators import EventTime
from tests.cases import cases
from tests.engine.cast import Desk, Hurried
from tests.operators.event_time.sums import received, sums, totals, write
from tests.operators.ways import BOTH_WAYS


@cases(
    "launches, ends",
    ("one partition", [(1, 61)], (20, 40, 60)),
    ("three", [(3, 61)], (20, 40, 60)),
    ("a later launch", [(2, 30), (2, 90)], (20, 40, 60, 80)),
    ("more partitions later", [(1, 38), (3, 61)], (20, 40, 60)),
    ("fewer later", [(3, 38), (2, 61)], (20, 40, 60)),
)
def test_results_do_not_depend_on_blocks_nor_partitions_nor_launches(tmp_path, launches, ends):
    begin = 0
    for partitions, end in launches:
        write(tmp_path, f"{end}.txt", range(begin, end))
        desk = Desk(tmp_path, sums(tmp_path, partitions=partitions), backend=Hurried)
        desk.run()
        begin = end
    assert (received(desk), received(desk, "late")) == (totals(*ends), [])


@BOTH_WAYS
@pytest.mark.parametrize(
    ("event_time", "items", "bad", "second"),
    [
        (EventTime(time=lambda second: second, out_of_order_millis=2000), [5, 9, 7], [], 7),
        (EventTime(time="at", time_unit="ms"), [{"at": 1000}], [{"at": None}], 1),
    ],
    ids=["less the tolerance", "an item without a time is rejected and does not count"],
)
def test_the_watermark_is_the_latest_time(send, event_time, items, bad, second):
    alone = Alone(event_time)
    assert alone.operator.current_watermark() is None
    with alone.window():
        send(alone, *items, *bad)
    assert (alone.sent(), [each.item for each in alone.sent("rejected")]) == (items, bad)
    assert alone.operator.current_watermark() == datetime(1970, 1, 1, 0, 0, second, tzinfo=UTC)
