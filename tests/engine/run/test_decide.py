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


DELIVERING = replace(QUIET, unfinished=True, delivers=True, overlap=2, waiting=9)
"""A window may begin before a delivery."""
STOPPING = replace(QUIET, stopping=Stopping.AFTER_WINDOW)
BUSY = replace(QUIET, busy=True, next_look=None)
"""An input works in the background."""


def case(claim: str, action: Action, outlook: LoopState = QUIET, **known: Any) -> Any:
    return pytest.param(replace(outlook, **known), action, id=claim)


@pytest.mark.parametrize(
    ("outlook", "action"),
    [
        case("files come before the next commit", Finish(), unfinished=True, in_flight=1, completed=True),
        case("a window begins before a delivery", Start(), DELIVERING),
        case("and no more than one", Finish(), DELIVERING, in_flight=1),
        case("unless windows do not overlap", Finish(), DELIVERING, overlap=1),
        case("or nothing waits", Finish(), DELIVERING, waiting=0),
        case("or files are to be put in place", Finish(), DELIVERING, delivers=False),
        case("or the external system is away", Finish(), DELIVERING, next_attempt=NOW),
        case("or the run is to stop", Finish(), DELIVERING, stopping=Stopping.AFTER_WINDOW),
        case("or no window is left", Finish(), DELIVERING, windows_left=0),
        case("or the next window comes after a change", Finish(), DELIVERING, change_pending=True),
        case("or after a request on work", Finish(), DELIVERING, work_requested=True),
        case("a commit comes before work", Commit(), in_flight=2, overlap=2, completed=True, waiting=9),
        case("who stops waits for what is in flight", Await(), STOPPING, in_flight=1),
        case("who stops commits what has ended", Commit(), STOPPING, in_flight=1, completed=True),
        case("who stops leaves what waits", Stop(), STOPPING, waiting=9),
        case("state goes from one window to the next", Await(), in_flight=1, overlap=1, waiting=9),
        case("two windows overlap", Start(), in_flight=1, overlap=2, waiting=9),
        case("no more windows than were asked for", Stop(), windows_left=0, waiting=9),
        case("the last window asked for is waited for", Await(), windows_left=0, in_flight=1),
        case("a promise comes before a look", Start(), promised=True, next_look=NOW),
        case("what was found is given away before a look", Start(), found=1, next_look=NOW),
        case("no look while plenty waits", Start(), waiting=4, plenty=4, next_look=NOW),
        case("a look when little waits", Look(), waiting=3, plenty=4, next_look=NOW),
        case("what waits need not wait for a look", Start(), waiting=3, plenty=4),
        case("while a window runs, the next look is waited for", Await(LATER), in_flight=1, overlap=2),
        case("who looks no more is not waited for", Await(), OVER, in_flight=1, overlap=2, next_look=NOW),
        case("a pending change comes before the next window", Change(), change_pending=True, waiting=9),
        case("and waits for windows in flight", Await(), change_pending=True, waiting=9, in_flight=1, overlap=2),
        case("a promise comes before a pending change", Start(), change_pending=True, promised=True),
        case("who stops changes nothing", Stop(), STOPPING, change_pending=True),
        case("what changed is committed with a window of its own", Start(), changed=True),
        case("and with no more than one", Await(LATER), changed=True, in_flight=1, overlap=2),
        case("what circles goes round at once", Start(), has_delayed_items=True, next_look=LATER),
        case("nothing to do until the next look", Sleep(LATER)),
        case("an open window waits for its beat", Sleep(SOON), begun=True, next_beat=SOON),
        case("a look may come before the beat", Sleep(SOON), begun=True, next_beat=LATER, next_look=SOON),
        case("an open window is closed in time", Start(), begun=True, next_beat=NOW),
        case("at the end an open window is closed at once", Start(), OVER, begun=True, next_beat=SOON),
        case("it ends when all inputs have", Stop(), next_look=None),
        case("once: it ends when nothing was found", Stop(), OVER),
        case("idle: it ends when nothing was found", Stop(), OVER, until=Until.IDLE),
        case("stopped: it goes on when nothing was found", Sleep(LATER), looked_in_vain=True),
        case("once: it looks no more after a look in vain", Stop(), OVER, next_look=NOW),
        case("idle: it looks whenever an input is due", Look(), OVER, until=Until.IDLE, next_look=NOW),
        case("operators learn that nothing more comes", Start(last=True), OVER, undrained=True),
        case("they learn it in a window that closes theirs", Start(), OVER, undrained=True, closes=False),
        case("they learn it as their windows close", Start(last=True), OVER, undrained=True, begun=True),
        case("not in the middle of one", Start(), OVER, undrained=True, begun=True, closes=False),
        case("an input that works in the background keeps the launch alive", Await(), BUSY),
        case("meanwhile another input looks when it is due", Await(LATER), until=Until.ONCE, busy=True),
        case("and open windows are closed", Await(SOON), BUSY, begun=True, next_beat=SOON),
        case("and what waits is done", Start(), BUSY, waiting=9),
        case("a file waits for the time at which it is complete", Sleep(SOON), next_wake=SOON),
        case("a look may come before that time", Sleep(SOON), next_wake=LATER, next_look=SOON),
        case("at that time a window runs without work", Start(), next_wake=NOW),
        case("also while an input works in background", Await(SOON), BUSY, next_wake=SOON),
        case("the earlier of a file and an open window", Sleep(SOON), begun=True, next_beat=LATER, next_wake=SOON),
    ],
)
def test_the_next_action(outlook, action):
    assert next_action(outlook) == action


def outlooks() -> Iterator[LoopState]:
    """All that differ in anything that a decision looks at."""
    either = (False, True)
    alone = {
        "until": Until,
        "stopping": Stopping,
        "windows_left": (None, 0, 1),
        "waiting": (0, 5),
        "found": (0, 1),
        "promised": either,
        "has_delayed_items": either,
        "begun": either,
        "looked_in_vain": either,
        "undrained": either,
        "closes": either,
        "next_beat": (None, NOW, LATER),
    }
    flying = [(0, False, 1), (0, False, 2), (1, False, 1), (1, True, 1), (1, False, 2), (1, True, 2), (2, False, 2)]
    looks = [(None, False), (NOW, False), (SOON, False), (None, True), (SOON, True)]
    for (in_flight, completed, overlap), (next_look, busy), *values in product(flying, looks, *alone.values()):
        known = dict(zip(alone, values, strict=True))
        known["looked_in_vain"] &= not busy
        flight = {"in_flight": in_flight, "completed": completed, "overlap": overlap}
        yield LoopState(**known, **flight, now=NOW, plenty=4, busy=busy, next_look=next_look)


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
