"""What is done next, for all that the parts of a run may want."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest

from dagkit.engine.parts.run_part import Action, Await, Change, Commit, Finish, Look, Resume, Sleep, Start, Stop, Want
from dagkit.engine.run.decide import LoopState, next_action

NOW = datetime(2024, 1, 1, tzinfo=UTC)
SOON, LATER = NOW + timedelta(seconds=1), NOW + timedelta(seconds=2)


def with_wants(outlook: LoopState, *wants: Want | tuple[Want, datetime], **known: Any) -> LoopState:
    """An outlook with further wants, of now if no other instant is named."""
    more = dict(want if isinstance(want, tuple) else (want, NOW) for want in wants)
    return replace(outlook, wants={**outlook.wants, **more}, **known)


OVER = LoopState(NOW)
"""Nothing to do, and no further look."""
QUIET = with_wants(OVER, Want.MORE, (Want.LOOK, LATER))
"""Nothing to do now; the next look is later."""
IN_VAIN = with_wants(OVER, (Want.LOOK, LATER))
"""The same, and the run does not wait for that look."""
DELIVERING = with_wants(QUIET, Want.FINISH, Want.BESIDE, Want.WORK, overlap=2)
"""A window may begin before a delivery."""
STOPPING = replace(QUIET, is_stopping=True)
BUSY = with_wants(OVER, Want.BUSY)
"""An input works in the background."""


def case(claim: str, action: Action, *wants: Want | tuple[Want, datetime], to: LoopState = QUIET, **known: Any) -> Any:
    return pytest.param(with_wants(to, *wants, **known), action, id=claim)


@pytest.mark.parametrize(
    ("outlook", "action"),
    [
        case("files come before the next commit", Finish(), Want.FINISH, in_flight=1, completed=True),
        case("a delivery that failed is tried again when it is due", Sleep(LATER), (Want.FINISH, LATER), to=OVER),
        case("who stops tries it once", Finish(), Want.FINISH, to=STOPPING),
        case("and not again", Stop(), (Want.FINISH, LATER), to=STOPPING),
        case("though a window has ended", Stop(), (Want.FINISH, LATER), to=STOPPING, in_flight=1, completed=True),
        case("a window begins before a delivery", Start(), to=DELIVERING),
        case("and no more than one", Finish(), to=DELIVERING, in_flight=1),
        case("unless only one may be in flight", Finish(), to=DELIVERING, overlap=1),
        case("unless windows do not overlap", Finish(), Want.ALONE, to=DELIVERING),
        case("or nothing waits", Finish(), Want.FINISH, Want.BESIDE, overlap=2),
        case("or files are to be put in place", Finish(), Want.FINISH, Want.WORK, overlap=2),
        case("or the run is to stop", Finish(), to=DELIVERING, is_stopping=True),
        case("or no window is left", Finish(), to=DELIVERING, windows_left=0),
        case("or the next window comes after a change", Finish(), Want.CHANGE, to=DELIVERING),
        case("or after a request on work", Finish(), Want.REQUEST, to=DELIVERING),
        case("a window waits for a server", Sleep(SOON), (Want.RESUME, SOON), Want.WORK, in_flight=1, overlap=2),
        case("and is tried again when it is due", Resume(), Want.RESUME, in_flight=1),
        case("and is left to the next launch by a run that is to stop", Stop(), Want.RESUME, to=STOPPING, in_flight=1),
        case("a commit comes before work", Commit(), Want.WORK, in_flight=2, overlap=2, completed=True),
        case("who stops waits for what is in flight", Await(), to=STOPPING, in_flight=1),
        case("who stops commits what has ended", Commit(), to=STOPPING, in_flight=1, completed=True),
        case("who stops leaves what waits", Stop(), Want.WORK, to=STOPPING),
        case("who stops waits no longer than this", Await(SOON), to=STOPPING, in_flight=1, abandons_at=SOON),
        case("and then abandons windows", Stop(), to=STOPPING, in_flight=1, abandons_at=NOW),
        case("state goes from one window to the next", Await(), Want.WORK, Want.ALONE, in_flight=1, overlap=2),
        case("two windows overlap", Start(), Want.WORK, in_flight=1, overlap=2),
        case("no more windows than were asked for", Stop(), Want.WORK, windows_left=0),
        case("the last window asked for is waited for", Await(), windows_left=0, in_flight=1),
        case("a promise comes before a look", Start(), Want.PROMISED, (Want.LOOK, NOW)),
        case("what was found is given away before a look", Start(), Want.WINDOW, Want.ENOUGH, (Want.LOOK, NOW)),
        case("no look while plenty waits", Start(), Want.WORK, Want.ENOUGH, (Want.LOOK, NOW)),
        case("a look when little waits", Look(), Want.WORK, (Want.LOOK, NOW)),
        case("what waits need not wait for a look", Start(), Want.WORK),
        case("while a window runs, the next look is waited for", Await(LATER), in_flight=1, overlap=2),
        case("unless windows may return enough", Await(), Want.ENOUGH, (Want.LOOK, NOW), in_flight=1, overlap=2),
        case("or deferred work", Await(SOON), (Want.DEFERRED, SOON), in_flight=1, overlap=2),
        case("who looks no more is not waited for", Await(), to=OVER, in_flight=1, overlap=2),
        case("a pending change comes before the next window", Change(), Want.CHANGE, Want.WORK),
        case("and waits for windows in flight", Await(), Want.CHANGE, Want.WORK, in_flight=1, overlap=2),
        case("a promise comes before a pending change", Start(), Want.CHANGE, Want.PROMISED),
        case("a request on work comes with a window", Start(), Want.REQUEST, Want.CHANGE),
        case("and waits for windows in flight, too", Await(), Want.REQUEST, in_flight=1, overlap=2),
        case("who stops changes nothing", Stop(), Want.CHANGE, to=STOPPING),
        case("a window that is wanted without work begins at once", Start(), Want.WINDOW),
        case("nothing to do until the next look", Sleep(LATER)),
        case("an open window waits for its beat", Sleep(SOON), Want.CLOSE, (Want.EMPTY, SOON)),
        case("a look may come before the beat", Sleep(SOON), (Want.EMPTY, LATER), (Want.LOOK, SOON)),
        case("an open window is closed in time", Start(), Want.CLOSE, Want.EMPTY),
        case("at the end an open window is closed at once", Start(), Want.CLOSE, (Want.EMPTY, SOON), to=OVER),
        case("it ends when nothing more comes", Stop(), to=OVER),
        case("it ends although an input would look again", Stop(), to=IN_VAIN),
        case("unless that look is due", Look(), (Want.LOOK, NOW), to=OVER),
        case("it waits for deferred work, and not for that look", Sleep(LATER), (Want.DEFERRED, LATER), to=IN_VAIN),
        case("operators learn that nothing more comes", Start(last=True), Want.CLOSE, Want.LAST, to=OVER),
        case("not before deferred work is done", Sleep(SOON), Want.CLOSE, Want.LAST, (Want.DEFERRED, SOON), to=OVER),
        case("an input that works in the background keeps the launch alive", Await(), to=BUSY),
        case("meanwhile another input looks when it is due", Await(LATER), Want.BUSY),
        case("and open windows are closed", Await(SOON), Want.CLOSE, (Want.EMPTY, SOON), to=BUSY),
        case("in time", Start(), Want.CLOSE, Want.EMPTY, to=BUSY),
        case("and what waits is done", Start(), Want.WORK, to=BUSY),
        case("requests are read in time while the loop sleeps", Sleep(SOON), (Want.WAKE, SOON)),
        case("and while it waits for a window", Await(SOON), (Want.WAKE, SOON), to=OVER, in_flight=1),
    ],
)
def test_the_next_action(outlook, action):
    assert next_action(outlook) == action


def outlooks() -> Iterator[LoopState]:
    """All that differ in anything that a decision looks at."""
    alone = {
        "is_stopping": (False, True),
        "windows_left": (None, 0, 1),
    }
    now = (Want.WORK, Want.WINDOW, Want.ENOUGH, Want.PROMISED, Want.ALONE, Want.REQUEST, Want.CHANGE)
    flying = [(0, False, 1), (0, False, 2), (1, False, 1), (1, True, 1), (1, False, 2), (1, True, 2), (2, False, 2)]
    inputs: list[dict[Want, datetime]] = [
        {},
        *({Want.LOOK: at} for at in (NOW, SOON)),
        *({Want.LOOK: at, Want.MORE: NOW} for at in (NOW, SOON)),
        {Want.BUSY: NOW},
        {Want.BUSY: NOW, Want.LOOK: SOON, Want.MORE: NOW},
    ]
    ends: list[dict[Want, datetime]] = [{}, {Want.CLOSE: NOW}, {Want.CLOSE: NOW, Want.LAST: NOW}]
    later = [
        {},
        *({Want.EMPTY: at} for at in (NOW, LATER)),
        {Want.DEFERRED: SOON},
        {Want.DEFERRED: SOON, Want.EMPTY: NOW},
    ]
    for (in_flight, completed, overlap), look, end, due, *values in product(
        flying, inputs, ends, later, *alone.values(), *[(False, True)] * len(now)
    ):
        known, wanted = values[: len(alone)], values[len(alone) :]
        wants = look | end | due | {want: NOW for want, is_wanted in zip(now, wanted, strict=True) if is_wanted}
        if Want.ENOUGH in wants and wants.keys().isdisjoint((Want.WORK, Want.WINDOW)) and not in_flight:
            continue  # something waits, or may come back
        flight = {"in_flight": in_flight, "completed": completed, "overlap": overlap}
        yield LoopState(NOW, wants, **dict(zip(alone, known, strict=True)), **flight)


def goes_on(outlook: LoopState, action: Action) -> bool:
    """Whether something comes of the action: no step in vain, and no waiting for what never comes."""
    wants = outlook.wants
    starts = not wants.keys().isdisjoint((Want.WORK, Want.WINDOW, Want.PROMISED, Want.REQUEST))
    match action:
        case Await(until=until):
            comes = outlook.in_flight > 0 or Want.BUSY in wants
            return comes and not outlook.completed and (until is None or until > NOW)
        case Sleep(until=until):
            return until > NOW and not (outlook.in_flight or starts)
        case Commit():
            return outlook.completed
        case Look():
            return wants[Want.LOOK] <= NOW and not outlook.is_stopping
        case Change():
            return Want.CHANGE in wants and not outlook.in_flight
        case Start(last=last):
            open_ = not outlook.is_stopping and outlook.windows_left != 0
            return open_ and not outlook.is_full and (Want.LAST in wants or not last)
        case Stop():
            ended = wants.keys().isdisjoint((Want.BUSY, Want.MORE, Want.DEFERRED, Want.CLOSE))
            asked = outlook.is_stopping or outlook.windows_left == 0
            return not outlook.in_flight and (asked or (ended and not starts))
        case Finish():
            return Want.FINISH in wants


@pytest.mark.trial
@pytest.mark.slow
def test_no_outlook_leads_to_a_hang():
    stuck = [(outlook, action) for outlook in outlooks() if not goes_on(outlook, action := next_action(outlook))]
    assert stuck[:1] == []
