"""Decide the next action from the state of the loop alone. Pure: the loop performs the action."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum, auto

from dagkit.api.running import Until


class Stopping(Enum):
    """Whether the loop has been asked to stop."""

    NOT = auto()
    AFTER_WINDOW = auto()
    """The loop first commits the windows in flight, unless they take too long."""


@dataclass(frozen=True, slots=True)
class LoopState:
    """The facts that the decision depends on."""

    until: Until
    now: datetime
    stopping: Stopping = Stopping.NOT
    abandons_at: datetime | None = None
    """When a run that is to stop abandons the windows in flight, which run again at the next launch; None: never."""
    windows_left: int | None = None
    """How many more windows may begin; None: no limit."""
    unfinished: bool = False
    """Whether files of the last commit are not in place yet, or an external system is not connected or served."""
    delivers: bool = False
    """Whether only a delivery is unfinished, to external systems that are connected: a window may run meanwhile."""
    next_attempt: datetime | None = None
    """When to try again to finish; None unless an external system is unavailable."""
    in_flight: int = 0
    completed: bool = False
    """Whether the oldest window in flight has ended."""
    overlap: int = 1
    """How many windows may be in flight; 1 if a window needs the state of the previous one."""
    waiting: int = 0
    """How many queued items are due now."""
    next_due: datetime | None = None
    """When the first deferred item that this launch waits for is due; None if there is none."""
    plenty: int = 1
    """The queue length from which on inputs need not look for more."""
    found: int = 0
    """How many discoveries no window has taken yet."""
    promised: bool = False
    """Whether a window was promised before a crash, and must run first."""
    has_delayed_items: bool = False
    """Whether delay operators hold items for the next window."""
    begun: bool = False
    """Whether an operator's application window is open."""
    closes: bool = True
    """Whether the next window closes the application windows of all operators."""
    busy: bool = False
    """Whether work of an input operator runs in the background; the loop is woken when it ends."""
    next_look: datetime | None = None
    """When an input operator wants to look again; None: all have ended or are busy."""
    looked_in_vain: bool = False
    """Whether every input that has not ended has looked since the last work, and found nothing."""
    undrained: bool = False
    """Whether an operator overrides `drained` and has not been called yet."""
    next_beat: datetime | None = None
    """When a window without work is due, to close open application windows."""
    next_wake: datetime | None = None
    """When a window without work is due, so that an operator can complete a file."""
    watermark_advanced: bool = False
    """Whether an operator acts on watermarks and has not seen the present one; False while a window is in flight."""
    change_pending: bool = False
    """Whether a change of the application is requested before the next window."""
    work_requested: bool = False
    """Whether a user asks to give up or to retry work; this is done when a window starts, even a promised one."""
    changed: bool = False
    """Whether the application has changed, and no window has been committed since."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Put the files of the last commit in place, and deliver what it staged to external systems."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit the oldest window in flight, which has ended."""


@dataclass(frozen=True, slots=True)
class Look:
    """Let the input operators that are due look for more."""


@dataclass(frozen=True, slots=True)
class Start:
    """Start the next window."""

    last: bool = False
    """Whether no more input is expected for now."""


@dataclass(frozen=True, slots=True)
class Change:
    """Apply the requested changes: no window is in flight, and none is promised."""


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
    """End the run.

    Everything is committed and in place, except what an unavailable system is to take, and the windows in flight that
    a run abandons because they did not end after the request to stop.
    """


Action = Finish | Commit | Look | Start | Change | Await | Sleep | Stop


def next_action(outlook: LoopState) -> Action:
    """Return the next action. Commits come first, in order; then more work; then waiting."""
    if outlook.unfinished:
        return Start() if _runs_beside_delivery(outlook) else _finish(outlook)
    if outlook.completed:
        return Commit()
    if outlook.stopping is not Stopping.NOT:
        is_over = outlook.abandons_at is not None and outlook.abandons_at <= outlook.now
        return Await(outlook.abandons_at) if outlook.in_flight and not is_over else Stop()
    if _is_full(outlook):
        return Await()
    if outlook.windows_left == 0:
        return Await() if outlook.in_flight else Stop()
    if outlook.work_requested or (outlook.change_pending and not outlook.promised):
        return Await() if outlook.in_flight else _requested(outlook)
    if _should_look(outlook):
        return Look()
    if outlook.promised or outlook.waiting or outlook.found or _is_wanted(outlook):
        return Start()
    if outlook.in_flight:
        return Await(_next_call(outlook))
    return _idle(outlook)


def _requested(outlook: LoopState) -> Action:
    """Perform requests. A change waits until a window that a request on work concerns is committed."""
    return Start() if outlook.work_requested else Change()


def _runs_beside_delivery(outlook: LoopState) -> bool:
    """Whether to start the next window before a delivery, so that slots work meanwhile."""
    # Otherwise slots read for 3.5 s while the driver waits, and then the driver sends for 3.5 s while the slots wait.
    # The commit still follows the delivery before it, so one number for each writer is enough, and a crash leaves at
    # most one delivery and one promised window. Rejected: a thread for deliveries, with which the loop would share all
    # it owns; two windows beside a delivery, since the driver is the slower side then.
    if not outlook.delivers or outlook.in_flight or _is_full(replace(outlook, in_flight=1)):
        return False
    if outlook.stopping is not Stopping.NOT or outlook.windows_left == 0 or outlook.next_attempt is not None:
        return False
    return bool(outlook.waiting) and not (outlook.work_requested or outlook.change_pending)


def _finish(outlook: LoopState) -> Action:
    """Finish when it is due. A run that is to stop leaves an unavailable system to the next launch."""
    if outlook.next_attempt is None or outlook.next_attempt <= outlook.now:
        return Finish()
    return Sleep(outlook.next_attempt) if outlook.stopping is Stopping.NOT else Stop()


def _is_wanted(outlook: LoopState) -> bool:
    """Whether a window is wanted without input: the first with a change, or one in which operators see watermarks."""
    return (outlook.changed and not outlook.in_flight) or outlook.watermark_advanced


def _is_full(outlook: LoopState) -> bool:
    return outlook.in_flight >= outlook.overlap


def _should_look(outlook: LoopState) -> bool:
    """Whether the queue is short and an input is due to look; earlier discoveries are given to a window first."""
    if outlook.promised or outlook.found or outlook.waiting >= outlook.plenty or outlook.next_look is None:
        return False
    return outlook.next_look <= outlook.now and not _looks_no_more(outlook)


def _looks_no_more(outlook: LoopState) -> bool:
    """Whether this launch looks for no more input."""
    return outlook.until is Until.DRAINED or (outlook.until is Until.ONCE and outlook.looked_in_vain)


def _next_call(outlook: LoopState) -> datetime | None:
    """The next time at which an input looks for more or a deferred item is due."""
    calls = (None if _looks_no_more(outlook) else outlook.next_look, outlook.next_due)
    return min((call for call in calls if call is not None), default=None)


def _empty_window(outlook: LoopState) -> datetime | None:
    """When a window without work is due; None if no operator needs one."""
    beat = (outlook.next_beat or outlook.now) if outlook.begun else None
    return min((at for at in (beat, outlook.next_wake) if at is not None), default=None)


def _await_input(outlook: LoopState) -> Action:
    """Return the action when only work in the background may bring more."""
    call, empty = _next_call(outlook), _empty_window(outlook)
    if empty is None:
        return Await(call)
    if empty <= outlook.now:
        return Start()
    return Await(empty if call is None else min(empty, call))


def _idle(outlook: LoopState) -> Action:
    """Return the action when no work is pending and nothing new was found."""
    if outlook.has_delayed_items:
        return Start()
    if outlook.busy:
        return _await_input(outlook)
    no_looks = outlook.next_look is None or outlook.until is Until.DRAINED
    ending = no_looks or (outlook.until is not Until.STOPPED and outlook.looked_in_vain)
    if ending and outlook.next_due is None:
        if outlook.begun or outlook.undrained:
            return Start(last=outlook.undrained and outlook.closes)
        return Stop()
    call = outlook.next_due if ending else _next_call(outlook)
    assert call is not None, "only who never looks again, and waits for nothing, ends here"
    empty = _empty_window(outlook)
    if empty is None:
        return Sleep(call)
    return Start() if empty <= outlook.now else Sleep(min(empty, call))
