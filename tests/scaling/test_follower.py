"""How statistics become a decision."""

from datetime import timedelta

import pytest

from dagkit import Backlog, BatchedOperatorStats, Capacity, OperatorStats, PortStats, Response
from dagkit.scaling import Follower, ScalingInputs, ScalingSettings, decide
from dagkit.testing import FakeClock

CLOCK = FakeClock()
APEX = ScalingSettings(policy="apex", interval_millis=500)
AS_MALHAR = ScalingSettings(policy="apex", policy_settings={"apex_compat": True}, interval_millis=500)
DRAIN = ScalingSettings()


CAPACITY = Capacity(cores=4, most_cores=4)


def _round(
    follower: Follower, settings: ScalingSettings, queued: list[int], *, millis: int = 0, backlog: Backlog | None = None
) -> list[Response]:
    """What is answered to each partition."""
    at = CLOCK.now() + timedelta(milliseconds=millis)
    common = {"current_window_id": 1, "partitions": len(queued), "at": at, "backlog": backlog, "capacity": CAPACITY}
    answers = []
    for partition, size in enumerate(queued):
        window = OperatorStats(1, (PortStats("blocks", queue_size=size),))
        place = {"operator_id": partition, "partition": partition, "last_windowed_stats": [window]}
        answers.append(follower.answer(settings, BatchedOperatorStats(**common, **place)))
    return answers


def test_process_stats_for_partition_count():
    """AbstractBlockReaderTest.testProcessStatsForPartitionCount."""
    (response,) = _round(Follower(), APEX, [10])
    assert (response.repartition_required, response.partitions) == (True, 8)


def test_process_stats_for_repeated_partition_count():
    """AbstractBlockReaderTest.testProcessStatsForRepeatedPartitionCount."""
    follower = Follower()
    _round(follower, APEX, [10])
    again = _round(follower, APEX, [10, 0, 0, 0, 0, 0, 0, 0], millis=500)
    assert not any(response.repartition_required for response in again)


def test_what_partitions_had_that_are_gone_counts_no_more():
    follower = Follower()
    _round(follower, APEX, [2, 2, 2, 2])
    assert not _round(follower, APEX, [1, 1], millis=500)[-1].repartition_required


@pytest.mark.parametrize(
    ("settings", "queued", "backlog", "asked"),
    [
        (APEX, [4, 3, 3], None, [Response(), Response(), 8]),
        (AS_MALHAR, [4, 16, 16], None, [4, Response(), Response()]),
        (APEX, [1], Backlog(blocks=100), [16]),
        (DRAIN, [5], None, [Response()]),
    ],
    ids=[
        *("the last is answered for all", "as Malhar, the first decides with what is known"),
        *("a reported backlog counts, and not the queues", "without a backlog there is nothing to follow"),
    ],
)
def test_what_is_answered_to_each_partition(settings, queued, backlog, asked):
    responses = _round(Follower(), settings, queued, backlog=backlog)
    assert [each.partitions if each.repartition_required else each for each in responses] == asked


def test_drain_asks_before_the_first_window():
    backlog = Backlog(9, 9000, 9)
    stats = BatchedOperatorStats(operator_id=0, current_window_id=0, backlog=backlog, capacity=CAPACITY)
    assert Follower().answer(DRAIN, stats).partitions == 4


def test_what_is_reported_of_a_look_makes_the_same_decision_again():
    (response,) = _round(Follower(), DRAIN, [9], backlog=Backlog(9, 9000, 9))
    assert response.inputs is not None
    decision = decide(ScalingInputs.of(response.inputs))
    assert (decision.after, decision.rule) == (response.partitions, response.repartition_note)


def test_a_look_that_finds_what_the_one_before_found_is_not_recorded_again():
    follower = Follower()
    told = [_round(follower, DRAIN, [0], millis=at, backlog=Backlog())[-1].inputs is not None for at in range(5)]
    assert told == [True, False, False, False, False]
