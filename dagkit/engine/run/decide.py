"""Deciding what to do next, from what is known and nothing else. Pure: the loop performs what is decided here."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto

from dagkit.api.running import Until


class Stopping(Enum):
    """Whether somebody asked the loop to stop."""

    NOT = auto()
    AFTER_WINDOW = auto()
    """What is in flight is committed first."""


@dataclass(frozen=True, slots=True)
class LoopState:
    """All that the decision depends on."""

    until: Until
    now: datetime
    stopping: Stopping = Stopping.NOT
    windows_left: int | None = None
    """How many more windows may begin; none: any number."""
    unfinished: bool = False
    """Whether files of the last commit are not in place yet."""
    in_flight: int = 0
    completed: bool = False
    """Whether the oldest window in flight has come to its end."""
    overlap: int = 1
    """How many windows may be in flight: state that goes from one to the next allows one."""
    waiting: int = 0
    """What waits in the queue and can be worked on now."""
    next_due: datetime | None = None
    """When work can go on that was deferred, and that the launch waits for; none: there is no such."""
    plenty: int = 1
    """Blocks with which the queue is full enough that nobody needs to look for more."""
    found: int = 0
    """Findings that no window was given yet."""
    promised: bool = False
    """Whether a window was promised before a crash, and must run first."""
    has_delayed_items: bool = False
    """Whether delays hold items for the next window."""
    begun: bool = False
    """Whether an operator's application window is open."""
    closes: bool = True
    """Whether the next window closes the application windows of all operators."""
    next_look: datetime | None = None
    """When an input operator wants to look again; none: all have ended."""
    looked_in_vain: bool = False
    """Whether every input that has not ended has looked since there was work, and found nothing."""
    undrained: bool = False
    """Whether somebody wants to be told when nothing more comes for now, and was not."""
    next_beat: datetime | None = None
    """When a window is due that has nothing to do but to close what is begun."""
    wished: bool = False
    """Whether the application is to change before the next window."""
    changed: bool = False
    """Whether it has changed, and no window was committed since."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Put the files of the last commit in place."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit the oldest window in flight, which has ended."""


@dataclass(frozen=True, slots=True)
class Look:
    """Let the input operators that are due look for more."""


@dataclass(frozen=True, slots=True)
class Start:
    """Begin the next window."""

    last: bool = False
    """Whether nothing more comes for now."""


@dataclass(frozen=True, slots=True)
class Change:
    """Let what is wished take effect: nothing is in flight, and nothing was promised."""


@dataclass(frozen=True, slots=True)
class Await:
    """Wait until the oldest window in flight has ended, or until an instant."""

    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait until an instant: there is nothing to do."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Stop:
    """The end: everything is committed and in place."""


Action = Finish | Commit | Look | Start | Change | Await | Sleep | Stop


def next_action(outlook: LoopState) -> Action:
    """What to do now. Commits come first, in order; then more work; then waiting."""
    if outlook.unfinished:
        return Finish()
    if outlook.completed:
        return Commit()
    if outlook.stopping is not Stopping.NOT:
        return Await() if outlook.in_flight else Stop()
    if _is_full(outlook):
        return Await()
    if outlook.windows_left == 0:
        return Await() if outlook.in_flight else Stop()
    if outlook.wished and not outlook.promised:
        return Await() if outlook.in_flight else Change()
    if _should_look(outlook):
        return Look()
    if outlook.promised or outlook.waiting or outlook.found or (outlook.changed and not outlook.in_flight):
        return Start()
    if outlook.in_flight:
        return Await(_next_call(outlook))
    return _idle(outlook)


def _is_full(outlook: LoopState) -> bool:
    return outlook.in_flight >= outlook.overlap


def _should_look(outlook: LoopState) -> bool:
    """Whether the queue wants more, and somebody is due to look; what was found before is given away first."""
    if outlook.promised or outlook.found or outlook.waiting >= outlook.plenty or outlook.next_look is None:
        return False
    return outlook.next_look <= outlook.now and not _looks_no_more(outlook)


def _looks_no_more(outlook: LoopState) -> bool:
    """Whether all was found that this launch wants to find."""
    return outlook.until is Until.DRAINED or (outlook.until is Until.ONCE and outlook.looked_in_vain)


def _next_call(outlook: LoopState) -> datetime | None:
    """When there may be something to do: somebody looks for more, or what was deferred is due."""
    calls = (None if _looks_no_more(outlook) else outlook.next_look, outlook.next_due)
    return min((call for call in calls if call is not None), default=None)


def _idle(outlook: LoopState) -> Action:
    """Nothing waits and nothing was found."""
    if outlook.has_delayed_items:
        return Start()
    no_looks = outlook.next_look is None or outlook.until is Until.DRAINED
    ending = no_looks or (outlook.until is not Until.STOPPED and outlook.looked_in_vain)
    if ending and outlook.next_due is None:
        if outlook.begun or outlook.undrained:
            return Start(last=outlook.undrained and outlook.closes)
        return Stop()
    call = outlook.next_due if ending else _next_call(outlook)
    assert call is not None, "only who never looks again, and waits for nothing, ends here"
    if not outlook.begun:
        return Sleep(call)
    if outlook.next_beat is None or outlook.next_beat <= outlook.now:
        return Start()
    return Sleep(min(outlook.next_beat, call))
