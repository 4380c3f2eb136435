"""What is remarkable about a run, in sentences."""

from datetime import timedelta

import pytest

from dagkit.engine.record.snapshot import InputActivity, OperatorFigures, RunningWindow
from dagkit.observers.run_health import Remark, remarks
from tests.engine.record.launches import NOON, first_snapshot

SCORE = OperatorFigures(name="Score", stage="s", partitions=2, wanted=2, busy=0.92)

SAFE = (
    "no record is lost: input stays where it is until the window that reads it is committed",
    None,
    "",
    False,
)


def said(*, runs=True, state="running", **fields):
    now = first_snapshot().model_copy(update={"state": state, **fields})
    return [(each.text, each.since, each.details, each.warns) for each in remarks(now, runs=runs)]


def test_a_backlog_that_grows_is_a_warning_with_the_busiest_operator():
    behind = {"grows_since": NOON, "queued": {"byte": 9_200_000}, "operators": (SCORE,)}
    waits = "9.2 MB wait, about 1 min 33 s of work, and more each time; busiest: Score 92%"
    assert said(**behind, eta_seconds=93.0) == [("falling behind", NOON, waits, True)]
    assert said(**behind, eta_seconds=20.0) == [("busiest: Score 92%", None, "", False)], "20 s of work is no backlog"
    assert said(**behind, eta_seconds=93.0, runs=False) == []


@pytest.mark.parametrize(
    ("activity", "usual", "warns"),
    [
        ({"at": NOON + timedelta(seconds=3550)}, None, False),
        ({"at": NOON}, "", False),
        ({"at": NOON, "longest_pause_seconds": 30.0}, "the longest pause before was 30 s", True),
        ({"at": NOON, "longest_pause_seconds": 1800.0}, "the longest pause before was 30 min 0 s", False),
    ],
    ids=["it had some lately", "no pause is known", "it paused for less", "it pauses for long"],
)
def test_an_input_that_has_nothing_new_is_named_and_is_a_warning_if_that_is_unusual(activity, usual, warns):
    inputs = (InputActivity(operator="Files", **activity),)
    expected = [] if usual is None else [("nothing new from Files for 1 h 0 min", NOON, usual, warns)]
    assert said(inputs=inputs, at=NOON + timedelta(hours=1)) == expected


def test_a_run_that_is_to_stop_names_the_window_that_it_waits_for():
    window = RunningWindow(window=6, elements=1, since=NOON)
    at_once = "a second signal ends it at once, and the next launch runs it again"
    expected = [("stops after window 6, which has run for 20 s", None, at_once, False)]
    assert said(in_flight=(window,), state="draining", at=NOON + timedelta(seconds=20)) == expected
    assert said(state="draining") == []


def test_an_input_that_had_nothing_in_this_launch_is_named_once_the_launch_runs():
    later = {"inputs": (InputActivity(operator="Files"),), "at": NOON + timedelta(hours=1)}
    assert said(**later) == [("nothing from Files in this launch, for 1 h 0 min", NOON, "", False)]
    assert said(**later, state="starting") == []


def test_the_time_of_a_window_is_no_silence_of_an_input():
    window = RunningWindow(window=2, elements=1, since=NOON + timedelta(seconds=5))
    inputs = (InputActivity(operator="Files", at=NOON),)
    assert said(inputs=inputs, in_flight=(window,), at=NOON + timedelta(hours=1)) == []


def test_a_window_that_lasts_too_long_is_named_instead_of_the_figures_of_the_one_before():
    window = RunningWindow(window=6, elements=1, since=NOON, lasts_millis=10_000)
    given = {"in_flight": (window,), "operators": (SCORE,), "queued": {"byte": 9}}
    before = "busiest in the window before: Score 92%"
    late = {**given, "at": NOON + timedelta(seconds=460)}
    assert said(**late) == [("window 6 has run for 7 min 40 s", NOON, before, True), SAFE]
    stale = "until it ends, rates and the busiest operator are those of the window before"
    assert said(**{**given, "operators": ()}, at=NOON + timedelta(seconds=460))[0][2] == stale
    slow = window.model_copy(update={"shares": {"Parse": 0.07, "Score": 0.93}})
    (_, _, details, _), _ = said(**{**late, "in_flight": (slow,)})
    assert details == f"Score takes 93% of its time; {stale}"
    assert [text for text, *_ in said(**given, at=NOON + timedelta(seconds=25))] == ["busiest: Score 92%"]


def test_a_window_that_takes_much_longer_than_usual_is_a_warning_until_one_ends_in_time():
    window = RunningWindow(window=432, elements=1, since=NOON, lasts_millis=500.0, shares={"Score": 1.0})
    given = {"usual_millis": 84.0, "operators": (SCORE,)}
    (text, _, details, warns), safe = said(**given, in_flight=(window,), at=NOON + timedelta(seconds=15))
    assert (text, warns, safe) == ("window 432 has run for 15 s", True, SAFE)
    assert details.startswith("windows took 0.08 s before; Score takes 100% of its time")
    took = ("window 432 took 24 s", None, "windows took 0.08 s before; busiest: Score 92%", True)
    assert said(**given, window=432, slow_millis=23_600.0) == [took, SAFE]


def test_a_run_that_waits_for_a_server_loses_nothing():
    away = {"waits_for": ("the broker of the queue q has not answered for 17 s: refused",)}
    assert said(**away) == [SAFE]
    assert said(**away, runs=False, state="stopped") == []


def test_while_a_run_goes_on_rejected_records_have_their_share_of_the_last_ones():
    figures = SCORE.model_copy(update={"busy": 0.0, "rejects_since": NOON, "rejected_share": 0.48})
    fields = {"left_out": {"Score": {"late": 2, "rejected": 4080}}, "operators": (figures,)}
    counts = "Score: 2 left out (late), 4,080 rejected"
    assert said(**fields) == [(counts, NOON, "48% of the last records are rejected", True)]
    quiet = {**fields, "operators": (figures.model_copy(update={"rejected_share": 0.0}),)}
    assert said(**quiet) == [(counts, NOON, "none of the last records are rejected", True)]
    few = {"left_out": {"Score": {"rejected": 3}}, "operators": (figures.model_copy(update={"rejected_share": 0.004}),)}
    assert said(**few) == [("Score: 3 rejected", NOON, "less than 1% of the last records is rejected", False)]
    assert said(**fields, runs=False, state="stopped") == [(counts, None, "", True)]


@pytest.mark.parametrize("state", ["running", "stopped"])
def test_work_that_is_set_aside_is_a_warning_also_when_all_else_is_done(state):
    aside, runs = {"set_aside": 1200, "state": state}, state == "running"
    text = "1,200 set aside, and not processed"
    assert said(**aside, runs=runs) == [(text, None, "`dagkit work` shows why", True)]
    details = "last: in/b.gz is no gzip file; `dagkit work` lists all"
    assert said(**aside, last_aside="in/b.gz is no gzip file", runs=runs) == [(text, None, details, True)]


def test_a_remark_is_a_line_of_text():
    assert str(Remark("busiest: Score 92%")) == "busiest: Score 92%"
    at = f"{NOON.astimezone():%Y-%m-%d %H:%M:%S}"
    assert str(Remark("falling behind", NOON, "9.2 MB wait")) == f"falling behind, since {at}; 9.2 MB wait"
