"""The picture of a run, from its events."""

import json
from dataclasses import replace
from datetime import timedelta
from math import nan

import pytest

from dagkit.api.outage import Outage
from dagkit.api.stats import OperatorStats, PortStats, WorkProgress
from dagkit.compiler import compile_application
from dagkit.engine.program.facts import Scaled
from dagkit.engine.record.run_events import (
    Committed,
    Draining,
    Ended,
    Failed,
    Found,
    FoundNothing,
    Measured,
    Queue,
    Reshaped,
    Resumed,
    RunEvent,
    SlotAtWork,
    Started,
    Starting,
    Working,
)
from dagkit.engine.record.run_picture import RunPicture
from dagkit.engine.record.snapshot import OperatorFigures, RunSnapshot, bytes_of
from tests.engine.cast import numbers_collected
from tests.engine.record.launches import NOON, SetClock, first_snapshot

STATS = OperatorStats(3, (PortStats("blocks", 2),), (PortStats("output", 20),), busy_millis=500, positions=400)
"""Of one partition, in a window of one second."""
SECOND = NOON + timedelta(seconds=1)
SCALED = Scaled(operator="digits", at=NOON, before=2, after=4, policy="drain", rule="much waits")
QUEUES = [Queue("digits", "blocks", 3, 1600)]
MEASURED = Measured(
    3,
    NOON,
    SECOND,
    SECOND,
    {"digits": [STATS, STATS]},
    {"digits": {"dropped": 1, "what": object()}},
    queues=QUEUES,
    facts=[SCALED],
)
WINDOW: tuple[RunEvent, ...] = (
    Starting("starting Spark"),
    Resumed("App", 2, 5, promised=False),
    Found("files", 4, 4000, 0),
    Started(3, 4, 5.0),
    Committed(3, 1000.0, {"byte": 800}, 1, 80, QUEUES, {"digits": [WorkProgress("a", 4, 6)]}, NOON, 7),
    MEASURED,
)
AT_WORK = SlotAtWork(4, "digits", 1, "b", NOON, 0.25)
RUNNING: tuple[RunEvent, ...] = (Started(4, 1, None), Working([AT_WORK, replace(AT_WORK, window_id=5, fraction=None)]))


@pytest.fixture
def clock():
    return SetClock()


@pytest.fixture
def picture(clock):
    compilation = compile_application(numbers_collected(((3,),), readers=2))
    return RunPicture(clock, first_snapshot(), compilation.plan)


def seen(picture: RunPicture, *events: RunEvent) -> RunSnapshot:
    for event in events:
        if isinstance(event, Committed):
            picture.clock.instant += timedelta(seconds=1)
        picture(event)
    return picture.snapshot()


def digits(snapshot: RunSnapshot) -> OperatorFigures:
    (found,) = [each for each in snapshot.operators if each.name == "digits"]
    return found


@pytest.mark.parametrize(
    ("events", "state", "step"), [(0, "starting", ""), (1, "starting", "starting Spark"), (2, "running", "")]
)
def test_a_start_is_reported_by_steps(picture, events, state, step):
    now = seen(picture, *WINDOW[:events])
    assert (now.state, now.step) == (state, step)


def test_a_run_that_is_asked_to_stop_drains_and_then_has_stopped(picture):
    assert seen(picture, *WINDOW, Draining(3)).state == "draining"
    assert seen(picture, Ended(3)).state == "stopped"


def test_a_window_is_in_flight_until_it_is_committed(picture):
    assert [window.window for window in seen(picture, *WINDOW[:4], Started(4, 1, None)).in_flight] == [3, 4]
    after = seen(picture, WINDOW[4])
    assert ([window.window for window in after.in_flight], after.window, after.block) == ([4], 3, 7)


def test_a_committed_window_is_counted_for_the_run_and_for_each_operator(picture):
    now = seen(picture, *WINDOW)
    totals, figures = now.totals, digits(now)
    assert (totals.windows, totals.positions, totals.written, totals.files) == (1, 800, 80, 1)
    assert (totals.elements_found, now.pending_elements, now.pending_positions) == (4, 3, 1600)
    assert (figures.received_per_second, figures.sent_per_second, figures.positions_per_second) == (4.0, 40.0, 800.0)
    assert (figures.received, figures.sent, figures.positions, figures.elements_begun) == (4, 40, 800, 4)
    assert (figures.partitions, figures.wanted, figures.busy) == (2, 4, 0.5)
    assert (now.eta_seconds, figures.eta_seconds) == (2.0, 2.0), "it follows from what is pending and the rate"
    assert [(work.source, work.fraction) for work in figures.underway] == [("a", 0.4)]
    assert now.user_metrics == {"digits": {"dropped": 1}}, "only plain metrics are kept"


def test_the_work_of_partitions_is_compared_over_ten_seconds_and_over_one_number_of_partitions(picture):
    others = [replace(STATS, busy_millis=busy, positions=positions) for busy, positions in ((100, 0), (300, 1200))]
    figures = digits(seen(picture, *WINDOW, replace(MEASURED, operators={"digits": others})))
    assert figures.skew == pytest.approx(800 / 700)
    shares = [(each.partition, round(each.busy, 2), round(each.taken, 2)) for each in figures.by_partition]
    assert shares == [(1, 0.57, 0.8), (0, 0.43, 0.2)], "items count where no positions are read: 2 of 2,002"
    three = digits(seen(picture, replace(MEASURED, operators={"digits": [STATS] * 3})))
    assert (three.skew, len(three.by_partition)) == (pytest.approx(1.0), 3)
    longer = [replace(stats, busy_millis=10 * stats.busy_millis) for stats in (*others, STATS)]
    later = replace(MEASURED, committed=SECOND + timedelta(seconds=11), operators={"digits": longer})
    assert digits(seen(picture, later)).skew == pytest.approx(500 / 300), "windows that are older do not count"
    assert digits(seen(picture, replace(MEASURED, operators={"digits": [STATS]}))).skew is None


def test_the_partitions_of_an_operator_that_hardly_works_are_not_compared(picture):
    idle = [replace(STATS, busy_millis=busy) for busy in (10, 50)]
    figures = digits(seen(picture, *WINDOW[:-1], replace(MEASURED, operators={"digits": idle})))
    assert (figures.busy, figures.skew, figures.by_partition) == (0.03, None, ())


def test_the_busiest_operator_works_at_least_for_a_twentieth_of_the_time(picture):
    assert seen(picture, *WINDOW).busiest.name == "digits"
    idle = replace(STATS, busy_millis=0)
    assert seen(picture, replace(MEASURED, operators={"digits": [idle] * 40})).busiest is None


def test_metrics_that_json_does_not_have_are_none(picture):
    measured = replace(MEASURED, metrics={"digits": {"mean": nan}})
    assert seen(picture, measured).user_metrics == {"digits": {"mean": None}}


def test_an_operator_that_follows_the_partitions_of_another_one_wants_no_others(picture):
    figures = digits(seen(picture, *WINDOW[:-1], replace(MEASURED, operators={"digits": [STATS] * 3}, facts=())))
    assert (figures.partitions, figures.wanted) == (3, 3)


def test_a_change_of_partitions_is_shown_before_its_window(picture):
    assert digits(seen(picture, Reshaped(4, SCALED.model_copy(update={"after": 3})))).wanted == 3


def test_rates_are_zero_once_nothing_has_run_for_ten_seconds(picture, clock):
    seen(picture, *WINDOW)
    clock.instant = NOON + timedelta(seconds=11)
    now = picture.snapshot()
    assert (now.positions_per_second, digits(now).sent_per_second, digits(now).sent) == (0.0, 0.0, 40)
    assert now.at == clock.instant, "the clock of the picture is the heartbeat"


def test_rates_stay_while_a_long_window_runs(picture, clock):
    seen(picture, *WINDOW, Started(4, 1, None))
    clock.instant = NOON + timedelta(seconds=60)
    assert picture.snapshot().positions_per_second == 800.0


def test_what_slots_have_read_of_a_window_that_runs_counts_for_the_time_left(clock):
    picture = RunPicture(clock, first_snapshot(), compile_application(numbers_collected(((3,),))).plan)
    seen(picture, Resumed("App", 0, 1, promised=False, pending={"byte": 900}), Started(1, 1, None, {"byte": 600}))
    for seconds, done in ((1, 0), (2, 100), (3, 200)):
        clock.instant = NOON + timedelta(seconds=seconds)
        now = seen(picture, Working([], {1: {"byte": done}}))
    assert (now.done, now.to_do) == ({"byte": 200}, {"byte": 900})
    shares = {"digits": 0.6}
    for event in (Working([], {1: {"byte": 200}}, {1: shares}), Working([], {1: {"byte": 200}})):
        (window,) = seen(picture, event).windows.in_flight
        assert window.shares == shares, "they stay if no slot reports any"
    assert (now.positions_per_second, now.eta_seconds) == (100.0, 7.0), "the second until slots read does not count"


def test_a_window_that_lasts_too_long_has_no_estimate_of_the_one_before(picture, clock):
    began = clock.instant
    seen(picture, *WINDOW, Started(4, 1, 10_000, {"byte": 1600}))
    clock.instant = began + timedelta(seconds=20)
    assert None not in (picture.snapshot().eta_seconds, digits(picture.snapshot()).eta_seconds)
    clock.instant = began + timedelta(seconds=70)
    now = picture.snapshot()
    assert {now.eta_seconds, now.eta_least_seconds, now.eta_most_seconds, digits(now).eta_seconds} == {None}


def test_time_in_later_levels_of_a_window_counts_for_the_time_left(picture, clock):
    assert any(stage.level for stage in picture.snapshot().stages)
    seen(picture, *WINDOW, Started(4, 1, None, {"byte": 1600}), Working([], {4: {"byte": 1600}}))
    clock.instant += timedelta(seconds=0.5)
    assert seen(picture, Working([], {4: {"byte": 1600}})).eta_seconds == 1.5


def test_the_last_failure_is_kept(picture):
    error = seen(picture, *WINDOW, Failed(4, "digits", "ValueError: no", again=True)).error
    assert (error.operator, error.window, error.message, error.again) == ("digits", 4, "ValueError: no", True)


def test_what_slots_process_is_known_while_its_window_runs(picture):
    assert [each.window_id for each in seen(picture, *WINDOW, *RUNNING).working] == [4, 5]
    assert [each.window_id for each in seen(picture, Failed(5, "digits", "no", again=True)).working] == [4]
    assert seen(picture, Committed(4, 1.0, {"byte": 1}, 0, 0)).working == ()


def test_no_slot_is_at_work_after_a_run_has_ended(picture):
    assert seen(picture, *WINDOW, *RUNNING, Ended(4)).working == ()


def test_an_interrupted_launch_failed(picture):
    seen(picture, *WINDOW, *RUNNING)
    picture.ended(KeyboardInterrupt())
    now = picture.snapshot()
    assert (now.state, now.error.message, now.status.is_over, now.working) == ("failed", "interrupted", True, ())


@pytest.mark.parametrize("place", ["state", "slot", "completed"])
def test_a_snapshot_is_the_same_after_its_json_form_even_if_a_later_dagkit_writes_more(picture, place):
    now = seen(picture, *WINDOW, *RUNNING)
    text = now.model_dump_json().replace(f'"{place}"', f'"mood": 1, "{place}"')
    assert RunSnapshot.model_validate_json(text) == now


def test_the_fields_of_groups_stand_among_the_others_in_the_status_file(picture):
    status = json.loads(bytes_of(seen(picture, *WINDOW)))
    assert " ".join(status) == (
        "format application application_path version driver master command until since at state step spark_page "
        "resumed_after window block committed_at in_flight working usual_millis slow_millis stages operators totals "
        "pending_elements pending_positions positions_per_second queued set_aside last_aside eta_seconds "
        "eta_least_seconds eta_most_seconds grows_since inputs visible_at waits_for user_metrics left_out read_again "
        "error"
    )
    assert " ".join(status["operators"][0]) == (
        "name stage partitions wanted received sent rejects_since rejected_share rejected_records positions unit reads "
        "received_per_second sent_per_second positions_per_second busy skew by_partition elements_begun pending "
        "underway eta_seconds"
    )


@pytest.mark.parametrize(("endless", "grows"), [(1, True), (0, False)], ids=["without an end", "with an end"])
def test_what_is_added_to_work_without_an_end_is_a_backlog_that_grows_although_no_look_finds_it(
    picture, clock, endless, grows
):
    for number in range(1, 6):
        clock.instant += timedelta(seconds=10)
        picture(Started(number, 1, 500.0))
        picture(
            Committed(number, 500.0, {"byte": 8}, 0, 0, [Queue("digits", "blocks", 1, 1000 * number, "byte", endless)])
        )
    now = picture.snapshot()
    assert now.pending_positions == 5000
    assert (now.backlog.grows_since is not None) is grows


def test_no_time_is_estimated_while_an_input_has_not_sent_all_that_it_found(picture):
    assert seen(picture, *WINDOW).eta_seconds is not None
    (name,) = [each.operator for each in picture.snapshot().inputs]
    held_back = seen(picture, Found(name, 1, 100, 0, {"byte": 100}, 7), Started(4, 1, 5.0))
    assert (held_back.unsent, held_back.eta_seconds) == (7, None)
    assert seen(picture, Found(name, 0, 0, 0), Started(5, 1, 5.0)).eta_seconds is not None


def test_the_work_of_a_window_that_does_not_end_waits_for_the_next_launch(picture):
    before = seen(picture, *WINDOW, Started(4, 1, None, {"byte": 600})).to_do
    picture.ended(ValueError("no"))
    now = picture.snapshot()
    assert (now.in_flight, now.to_do) == ((), before)
    assert sum(before.values()) >= 600


def test_a_window_that_takes_much_longer_than_the_last_ones_is_slow_while_it_runs_and_after_it(picture, clock):
    def window(number, seconds, lasts=500.0):
        picture(Started(number, 1, lasts))
        clock.instant += timedelta(seconds=seconds)
        windows = picture.snapshot().windows
        overdue = windows.overdue(clock.now())
        picture(Committed(number, 1000.0 * seconds, {"byte": 8}, 0, 0))
        slow = picture.snapshot().windows.slow_millis
        return (overdue and overdue.window, slow)

    assert window(3, 15) == (None, None), "the first windows of a launch may take long"
    assert [window(4 + number, 0.1) for number in range(9)] == [(None, None)] * 9
    assert window(13, 15) == (13, 15_000.0)
    assert window(14, 4) == (None, None)
    assert window(15, 12, lasts=10_000.0) == (None, None), "it was to last that long"
    assert picture.snapshot().windows.usual_millis == pytest.approx(100.0)


def test_a_window_that_found_nothing_runs_no_more(picture):
    assert seen(picture, *WINDOW, Started(4, 1, None, {})).in_flight
    assert seen(picture, FoundNothing(4)).in_flight == ()


def test_the_page_of_spark_is_kept_through_the_later_steps(picture):
    now = seen(picture, Starting("sending code", "http://driver:4040"), Starting("reading the ledger"))
    assert now.spark_page == "http://driver:4040"


def test_an_operator_has_its_unit_before_its_first_window(clock):
    compilation = compile_application(numbers_collected(((3,),)))
    picture = RunPicture(clock, first_snapshot(), compilation.plan, units={"digits": ("offset", False)})
    assert (digits(picture.snapshot()).unit, digits(picture.snapshot()).reads) == ("offset", False)


def test_no_window_runs_while_another_session_is_opened(picture):
    assert seen(picture, *WINDOW, *RUNNING).in_flight
    now = seen(picture, Starting("opening another session"))
    assert (now.state, now.step, now.in_flight, now.working) == ("starting", "opening another session", (), ())
    assert (now.window, now.totals.windows) == (3, 1)


def test_a_driver_that_waits_for_a_server_says_so_also_when_it_ended(picture):
    outage = Outage("the broker of this test")
    outage.failed("refused")
    (sentence,) = [each for each in seen(picture, *WINDOW).waits_for if "of this test" in each]
    assert sentence == "the broker of this test has not answered for 0 s: refused"
    ended = seen(picture, Ended(3))
    outage.is_over()
    assert [each for each in ended.waits_for if "of this test" in each] == [sentence]
    assert picture.snapshot() == ended, "it is kept as it was at the end"


def test_an_input_is_active_when_it_finds_something_and_when_what_it_found_is_read(picture):
    def files():
        (activity,) = picture.snapshot().inputs
        return (activity.operator, activity.at, activity.longest_pause_seconds)

    assert files() == ("ranges", None, 0.0)
    picture(Found("ranges", 1, 10, 0))
    assert files() == ("ranges", NOON, 0.0)
    picture(replace(MEASURED, committed=NOON + timedelta(seconds=90)))
    assert files() == ("ranges", NOON + timedelta(seconds=90), 90.0), "endless work is found once, and read for ever"
    picture(replace(MEASURED, operators={"digits": [replace(STATS, positions=0)]}, committed=NOON + timedelta(hours=1)))
    assert files() == ("ranges", NOON + timedelta(seconds=90), 90.0)


def test_rejected_records_have_a_beginning_and_a_share_of_the_last_ones(picture):
    def window(seconds, rejected):
        stats = replace(STATS, output_ports=(PortStats("output", 20), PortStats("rejected", rejected)))
        return replace(MEASURED, committed=NOON + timedelta(seconds=seconds), operators={"digits": [stats]})

    assert digits(seen(picture, window(1, 0))).rejects_since is None
    first = digits(seen(picture, window(2, 5)))
    assert (first.rejects_since, first.rejected_share) == (NOON + timedelta(seconds=2), 5 / 45)
    later = digits(seen(picture, window(30, 20)))
    assert (later.rejects_since, later.rejected_share) == (NOON + timedelta(seconds=2), 0.5)
    nothing = replace(
        MEASURED, committed=NOON + timedelta(seconds=60), operators={"digits": [OperatorStats(5, (), ())]}
    )
    assert digits(seen(picture, nothing)).rejected_share == 0.5, "an empty window has no share"


def test_an_operator_that_alone_has_pending_work_is_done_when_the_run_is(picture):
    now = seen(picture, *WINDOW, Started(4, 4, 5.0, {"byte": 1600}), Working([], {4: {"byte": 1200}}))
    assert digits(now).eta_seconds == now.eta_seconds is not None
