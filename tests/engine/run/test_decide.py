"""What is done next, for every outlook there is."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest

from dagkit.api.running import Until
from dagkit.engine.run.decide import (
    Action,
    Await,
    Change,
    Commit,
    Finish,
    Look,
    LoopState,
    Sleep,
    Start,
    Stop,
    Stopping,
    next_action,
)

NOW = datetime(2024, 1, 1, tzinfo=UTC)
SOON, LATER = NOW + timedelta(seconds=1), NOW + timedelta(seconds=2)
QUIET = LoopState(Until.STOPPED, NOW, next_look=LATER)
"""Nothing to do now; the next look is later."""
OVER = replace(QUIET, until=Until.ONCE, looked_in_vain=True)
"""Nothing to do, and no further look."""


def seen(outlook: LoopState = QUIET, **known: Any) -> LoopState:
    return replace(outlook, **known)


@pytest.mark.parametrize(
    ("outlook", "action"),
    [
        pytest.param(
            seen(unfinished=True, in_flight=1, completed=True), Finish(), id="files come before the next commit"
        ),
        pytest.param(
            seen(unfinished=True, delivers=True, overlap=2, waiting=9), Start(), id="a window begins before a delivery"
        ),
        pytest.param(
            seen(unfinished=True, delivers=True, overlap=2, waiting=9, in_flight=1),
            Finish(),
            id="and no more than one",
        ),
        pytest.param(
            seen(unfinished=True, delivers=True, overlap=1, waiting=9), Finish(), id="unless windows do not overlap"
        ),
        pytest.param(seen(unfinished=True, delivers=True, overlap=2), Finish(), id="or nothing waits"),
        pytest.param(seen(unfinished=True, overlap=2, waiting=9), Finish(), id="or files are to be put in place"),
        pytest.param(
            seen(unfinished=True, delivers=True, overlap=2, waiting=9, next_attempt=NOW),
            Finish(),
            id="or the external system is away",
        ),
        pytest.param(
            seen(unfinished=True, delivers=True, overlap=2, waiting=9, stopping=Stopping.AFTER_WINDOW),
            Finish(),
            id="or the run is to stop",
        ),
        pytest.param(
            seen(unfinished=True, delivers=True, overlap=2, waiting=9, windows_left=0),
            Finish(),
            id="or no window is left",
        ),
        pytest.param(
            seen(unfinished=True, delivers=True, overlap=2, waiting=9, change_pending=True),
            Finish(),
            id="or the next window comes after a change",
        ),
        pytest.param(
            seen(unfinished=True, delivers=True, overlap=2, waiting=9, work_requested=True),
            Finish(),
            id="or after a request on work",
        ),
        pytest.param(
            seen(in_flight=2, overlap=2, completed=True, waiting=9), Commit(), id="a commit comes before work"
        ),
        pytest.param(
            seen(stopping=Stopping.AFTER_WINDOW, in_flight=1), Await(), id="who stops waits for what is in flight"
        ),
        pytest.param(
            seen(stopping=Stopping.AFTER_WINDOW, in_flight=1, completed=True),
            Commit(),
            id="who stops commits what has ended",
        ),
        pytest.param(seen(stopping=Stopping.AFTER_WINDOW, waiting=9), Stop(), id="who stops leaves what waits"),
        pytest.param(seen(in_flight=1, overlap=1, waiting=9), Await(), id="state goes from one window to the next"),
        pytest.param(seen(in_flight=1, overlap=2, waiting=9), Start(), id="two windows overlap"),
        pytest.param(seen(windows_left=0, waiting=9), Stop(), id="no more windows than were asked for"),
        pytest.param(seen(windows_left=0, in_flight=1), Await(), id="the last window asked for is waited for"),
        pytest.param(seen(promised=True, next_look=NOW), Start(), id="a promise comes before a look"),
        pytest.param(seen(found=1, next_look=NOW), Start(), id="what was found is given away before a look"),
        pytest.param(seen(waiting=4, plenty=4, next_look=NOW), Start(), id="no look while plenty waits"),
        pytest.param(seen(waiting=3, plenty=4, next_look=NOW), Look(), id="a look when little waits"),
        pytest.param(seen(waiting=3, plenty=4), Start(), id="what waits need not wait for a look"),
        pytest.param(seen(in_flight=1, overlap=2), Await(LATER), id="while a window runs, the next look is waited for"),
        pytest.param(
            seen(OVER, in_flight=1, overlap=2, next_look=NOW),
            Await(),
            id="who looks no more is not waited for",
        ),
        pytest.param(
            seen(change_pending=True, waiting=9), Change(), id="a pending change comes before the next window"
        ),
        pytest.param(
            seen(change_pending=True, waiting=9, in_flight=1, overlap=2),
            Await(),
            id="a pending change waits for windows in flight",
        ),
        pytest.param(seen(change_pending=True, promised=True), Start(), id="a promise comes before a pending change"),
        pytest.param(seen(change_pending=True, stopping=Stopping.AFTER_WINDOW), Stop(), id="who stops changes nothing"),
        pytest.param(seen(changed=True), Start(), id="what changed is committed with a window of its own"),
        pytest.param(seen(changed=True, in_flight=1, overlap=2), Await(LATER), id="and with no more than one"),
        pytest.param(seen(has_delayed_items=True, next_look=LATER), Start(), id="what circles goes round at once"),
        pytest.param(QUIET, Sleep(LATER), id="nothing to do until the next look"),
        pytest.param(seen(begun=True, next_beat=SOON), Sleep(SOON), id="an open window waits for its beat"),
        pytest.param(
            seen(begun=True, next_beat=LATER, next_look=SOON), Sleep(SOON), id="a look may come before the beat"
        ),
        pytest.param(seen(begun=True, next_beat=NOW), Start(), id="an open window is closed in time"),
        pytest.param(seen(OVER, begun=True, next_beat=SOON), Start(), id="at the end an open window is closed at once"),
        pytest.param(seen(next_look=None), Stop(), id="it ends when all inputs have"),
        pytest.param(OVER, Stop(), id="once: it ends when nothing was found"),
        pytest.param(seen(OVER, until=Until.IDLE), Stop(), id="idle: it ends when nothing was found"),
        pytest.param(seen(looked_in_vain=True), Sleep(LATER), id="stopped: it goes on when nothing was found"),
        pytest.param(seen(OVER, next_look=NOW), Stop(), id="once: it looks no more after a look in vain"),
        pytest.param(seen(OVER, until=Until.IDLE, next_look=NOW), Look(), id="idle: it looks whenever an input is due"),
        pytest.param(seen(OVER, undrained=True), Start(last=True), id="operators learn that nothing more comes"),
        pytest.param(
            seen(OVER, undrained=True, closes=False), Start(), id="they learn it in a window that closes theirs"
        ),
        pytest.param(
            seen(OVER, undrained=True, begun=True), Start(last=True), id="they learn it as their windows close"
        ),
        pytest.param(
            seen(OVER, undrained=True, begun=True, closes=False),
            Start(),
            id="they do not learn it in the middle of one",
        ),
        pytest.param(
            seen(busy=True, next_look=None), Await(), id="an input that works in the background keeps the launch alive"
        ),
        pytest.param(
            seen(until=Until.ONCE, busy=True), Await(LATER), id="meanwhile another input looks when it is due"
        ),
        pytest.param(
            seen(busy=True, next_look=None, begun=True, next_beat=SOON), Await(SOON), id="and open windows are closed"
        ),
        pytest.param(seen(busy=True, next_look=None, waiting=9), Start(), id="and what waits is done"),
        pytest.param(seen(next_wake=SOON), Sleep(SOON), id="a file waits for the time at which it is complete"),
        pytest.param(seen(next_wake=LATER, next_look=SOON), Sleep(SOON), id="a look may come before that time"),
        pytest.param(seen(next_wake=NOW), Start(), id="at that time a window runs without work"),
        pytest.param(
            seen(busy=True, next_look=None, next_wake=SOON), Await(SOON), id="also while an input works in background"
        ),
        pytest.param(
            seen(begun=True, next_beat=LATER, next_wake=SOON),
            Sleep(SOON),
            id="the earlier of a file and an open window",
        ),
    ],
)
def test_the_next_action(outlook, action):
    assert next_action(outlook) == action


def outlooks() -> Iterator[LoopState]:
    """All that differ in anything that a decision looks at."""
    flying = [(0, False, 1), (0, False, 2), (1, False, 1), (1, True, 1), (1, False, 2), (1, True, 2), (2, False, 2)]
    either = (False, True)
    for until, stopping, left, (in_flight, completed, overlap) in product(Until, Stopping, (None, 0, 1), flying):
        for waiting, found, promised, has_delayed_items, begun in product((0, 5), (0, 1), either, either, either):
            looks = [(None, False), (NOW, False), (SOON, False), (None, True), (SOON, True)]
            for (next_look, busy), in_vain, undrained, closes, beat in product(
                looks, either, either, either, (None, NOW, LATER)
            ):
                yield LoopState(
                    until,
                    NOW,
                    stopping,
                    left,
                    in_flight=in_flight,
                    completed=completed,
                    overlap=overlap,
                    waiting=waiting,
                    plenty=4,
                    found=found,
                    promised=promised,
                    has_delayed_items=has_delayed_items,
                    begun=begun,
                    busy=busy,
                    next_look=next_look,
                    looked_in_vain=in_vain and not busy,
                    undrained=undrained,
                    closes=closes,
                    next_beat=beat,
                )


def goes_on(outlook: LoopState, action: Action) -> bool:
    """Whether something comes of the action: no step in vain, and no waiting for what never comes."""
    match action:
        case Await(until=until):
            comes = outlook.in_flight > 0 or outlook.busy
            return comes and not outlook.completed and (until is None or until > NOW)
        case Sleep(until=until):
            return until > NOW and not (outlook.in_flight or outlook.waiting or outlook.found or outlook.promised)
        case Commit():
            return outlook.completed
        case Look():
            return outlook.next_look is not None and outlook.next_look <= NOW and outlook.stopping is Stopping.NOT
        case Start(last=last):
            open_ = outlook.stopping is Stopping.NOT and outlook.windows_left != 0
            return open_ and outlook.in_flight < outlook.overlap and (outlook.undrained or not last)
        case Stop():
            ended = not outlook.busy and (outlook.next_look is None or outlook.until is not Until.STOPPED)
            asked = outlook.stopping is not Stopping.NOT or outlook.windows_left == 0
            left = outlook.waiting or outlook.found or outlook.promised or outlook.begun or outlook.has_delayed_items
            return not outlook.in_flight and (asked or (ended and not left))
        case Finish():
            return outlook.unfinished


@pytest.mark.trial
@pytest.mark.slow
def test_no_outlook_leads_to_a_hang():
    stuck = [(outlook, action) for outlook in outlooks() if not goes_on(outlook, action := next_action(outlook))]
    assert stuck[:1] == []
