"""What happens, as lines of JSON."""

import json
import logging
from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest

from dagkit.api.stats import OperatorStats, PortStats, WorkProgress
from dagkit.engine.program.facts import Scaled
from dagkit.engine.record import run_events as events
from dagkit.observers.lines import EVENTS, Lines

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STATS = OperatorStats(
    1, (PortStats("input", 3),), (PortStats("output", 2),), cpu_nanos=1_500_000, busy_millis=2.5, positions=9
)
NOON_TEXT = "2026-01-01T12:00:00.000Z"
COUNTS = {"partitions": 2, "in": {"input": 6}, "out": {"output": 4}, "positions": 18}
MEASURED = {"op": {**COUNTS, "busy_millis": 5.0, "cpu_millis": 3.0}}
HAPPENINGS = {
    "starting": (events.Starting("starting Spark"), {"step": "starting Spark", "spark_page": None}),
    "plan_differs": (
        events.PlanDiffers(2, NOON, ("operator in is gone",)),
        {"window": 2, "last_launch": NOON_TEXT, "changes": ["operator in is gone"]},
    ),
    "resumed": (
        events.Resumed("App", 2, 5, promised=False, pending={"byte": 9}),
        {"window": 2, "waiting": 5, "promised": False, "pending": {"byte": 9}, "set_aside": 0, "last_aside": ""},
    ),
    "found": (
        events.Found("in", 1, 10, 0, {"offset": 10}, 2),
        {"operator": "in", "blocks": 1, "positions": 10, "items": 0, "amounts": {"offset": 10}, "unsent": 2},
    ),
    "started": (
        events.Started(3, 4, 5.0, {"byte": 9}),
        {"window": 3, "blocks": 4, "lasts_millis": 5.0, "amounts": {"byte": 9}},
    ),
    "failed": (
        events.Failed(3, "op", "ValueError: no", again=True),
        {"window": 3, "operator": "op", "message": "ValueError: no", "again": True},
    ),
    "committed": (
        events.Committed(3, 1.5, {"byte": 10}, 1, 8, [], {"op": [WorkProgress("a", 4, 6)]}, NOON, 7, 2),
        {
            "window": 3,
            "millis": 1.5,
            "positions": 10,
            "files": 1,
            "written": 8,
            "waiting": 0,
            "waiting_positions": 0,
            "underway": {"op": [{"source": "a", "completed": 4, "remaining": 6}]},
            "visible": NOON_TEXT,
            "block": 7,
            "read": {"byte": 10},
            "pending": {},
            "received": 2,
            "completed": 0,
            "set_aside": 0,
            "last_aside": "",
        },
    ),
    "measured": (
        events.Measured(3, NOON, NOON, NOON + timedelta(seconds=1), {"op": [STATS, STATS]}, {"op": {"dropped": 1}}),
        {
            "window": 3,
            "began": NOON_TEXT,
            "committed": "2026-01-01T12:00:01.000Z",
            "operators": MEASURED,
            "metrics": {"op": {"dropped": 1}},
            "facts": [],
        },
    ),
    "reshaped": (
        events.Reshaped(4, Scaled(operator="op", at=NOON, before=1, after=2, policy="drain", rule="much waits")),
        {
            "window": 4,
            "fact": "scaled",
            "operator": "op",
            "at": "2026-01-01T12:00:00Z",
            "before": 1,
            "after": 2,
            "policy": "drain",
            "rule": "much waits",
            "inputs": {},
        },
    ),
    "working": (
        events.Working([events.SlotAtWork(3, "op", 1, "a", NOON, 0.25)], {3: {"byte": 9}}, {3: {"op": 0.9}}),
        {
            "work": [
                {"window_id": 3, "operator": "op", "slot": 1, "source": "a", "since": NOON_TEXT, "fraction": 0.25}
            ],
            "done": {"3": {"byte": 9}},
            "shares": {"3": {"op": 0.9}},
        },
    ),
    "waiting": (events.Waiting(["op: pending files: 1"]), {"reasons": ["op: pending files: 1"]}),
    "found_nothing": (events.FoundNothing(3), {"window": 3}),
    "draining": (events.Draining(3), {"window": 3}),
    "ended": (events.Ended(4), {"window": 4}),
}


@pytest.fixture
def written():
    return []


@pytest.fixture
def lines(written):
    return Lines(written.append, lambda: NOON)


@pytest.mark.parametrize("event", HAPPENINGS)
def test_a_happening_is_one_line_of_these_keys(event, lines, written):
    happening, told = HAPPENINGS[event]
    lines(happening)
    level = "warning" if event == "failed" else "info"
    always = {"ts": "2026-01-01T12:00:00.000Z", "level": level, "logger": "dagkit.run", "event": event}
    (line,) = written
    app = "App" if event == "resumed" else None
    assert json.loads(line) == {**always, "app": app, **told}
    assert "\n" not in line


def test_there_is_an_event_for_whatever_may_happen():
    assert set(EVENTS) == set(get_args(events.RunEvent))
    assert {EVENTS[type(happening)] for happening, _ in HAPPENINGS.values()} == set(EVENTS.values())


def test_every_line_after_the_first_names_the_application(lines, written):
    lines(events.Resumed("App", 0, 0, promised=False))
    lines(events.Ended(1))
    assert [json.loads(line)["app"] for line in written] == ["App", "App"]


def test_what_is_logged_meanwhile_is_a_line_and_nothing_else(lines, written, monkeypatch):
    heard, root = logging.NullHandler(), logging.getLogger()
    monkeypatch.setattr(root, "handlers", [heard])
    with lines.with_logs():
        try:
            int("no")
        except ValueError:
            logging.getLogger("dagkit.engine").exception("it came to %s", "nothing")
        assert heard not in root.handlers
    assert root.handlers == [heard]
    (line,) = map(json.loads, written)
    assert (line["event"], line["level"], line["logger"]) == ("logged", "error", "dagkit.engine")
    assert line["message"] == "it came to nothing"
    assert line["exception"].endswith("ValueError: invalid literal for int() with base 10: 'no'")
