"""How statistics become a decision."""

from datetime import timedelta

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


def test_the_last_partition_is_answered_for_all():
    *first, last = _round(Follower(), APEX, [4, 3, 3])
    assert first == [Response(), Response()]
    assert (last.repartition_required, last.partitions) == (True, 8)


def test_what_partitions_had_that_are_gone_counts_no_more():
    follower = Follower()
    _round(follower, APEX, [2, 2, 2, 2])
    *_, last = _round(follower, APEX, [1, 1], millis=500)
    assert not last.repartition_required


def test_as_malhar_the_first_that_receives_statistics_decides_with_what_is_known():
    first, *rest = _round(Follower(), AS_MALHAR, [4, 16, 16])
    assert (first.repartition_required, first.partitions) == (True, 4)
    assert not any(response.repartition_required for response in rest)


def test_where_the_whole_backlog_is_reported_it_counts_and_not_the_queues():
    (response,) = _round(Follower(), APEX, [1], backlog=Backlog(blocks=100))
    assert response.partitions == 16


def test_drain_asks_before_the_first_window():
    backlog = Backlog(9, 9000, 9)
    stats = BatchedOperatorStats(operator_id=0, current_window_id=0, backlog=backlog, capacity=CAPACITY)
    assert Follower().answer(DRAIN, stats).partitions == 4


def test_without_a_backlog_there_is_nothing_to_follow():
    assert _round(Follower(), DRAIN, [5]) == [Response()]


def test_what_is_reported_of_a_look_makes_the_same_decision_again():
    (response,) = _round(Follower(), DRAIN, [9], backlog=Backlog(9, 9000, 9))
    assert response.inputs is not None
    decision = decide(ScalingInputs.of(response.inputs))
    assert (decision.after, decision.rule) == (response.partitions, response.repartition_note)


def test_a_look_that_finds_what_the_one_before_found_is_not_recorded_again():
    follower = Follower()
    told = [_round(follower, DRAIN, [0], millis=at, backlog=Backlog())[-1].inputs is not None for at in range(5)]
    assert told == [True, False, False, False, False]
