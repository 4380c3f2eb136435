"""Decide the next action from what the parts of a run want. Pure: the loop performs the action."""

from dataclasses import dataclass, field, replace
from datetime import datetime

from dagkit.engine.parts.run_part import (
    Action,
    Await,
    Change,
    Commit,
    Finish,
    Look,
    Resume,
    Sleep,
    Start,
    Stop,
    Want,
    Wants,
)


@dataclass(frozen=True, slots=True)
class LoopState:
    """The facts that the decision depends on."""

    now: datetime
    wants: Wants = field(default_factory=dict)
    is_stopping: bool = False
    """Whether the run was asked to stop: it commits the windows in flight, unless they take too long."""
    abandons_at: datetime | None = None
    """When a run that is to stop abandons the windows in flight, which run again at the next launch; None: never."""
    windows_left: int | None = None
    """How many more windows may begin; None: no limit."""
    in_flight: int = 0
    completed: bool = False
    """Whether the oldest window in flight has ended."""
    overlap: int = 1
    """How many windows may be in flight, if no part wants them one by one."""

    def is_due(self, want: Want) -> bool:
        """Whether a part wants this now."""
        return want in self.wants and self.wants[want] <= self.now

    @property
    def is_full(self) -> bool:
        return self.in_flight >= (1 if Want.ALONE in self.wants else self.overlap)


def next_action(state: LoopState) -> Action:
    """Return the next action. Commits come first, in order; then more work; then waiting."""
    action, wake = _next_action(state), state.wants.get(Want.WAKE)
    # Only waits end then: after any other action, the loop decides again at once.
    if wake is None or not isinstance(action, Await | Sleep):
        return action
    return replace(action, until=wake if action.until is None else min(action.until, wake))


def _next_action(state: LoopState) -> Action:
    wants = state.wants
    # Before anything else: the next checkpoint does not name the files and entries of this one any more, and external
    # systems take windows in order, so that one number for each writer is enough.
    if Want.FINISH in wants:
        return Start() if _runs_beside_delivery(state) else _finish(state)
    if state.completed:
        return Commit()
    if state.is_stopping:
        return Stop() if _is_over(state) else Await(state.abandons_at)
    if Want.RESUME in wants or state.is_full:
        return _await_oldest(state)
    if state.windows_left == 0:
        return Await() if state.in_flight else Stop()
    if Want.REQUEST in wants or (Want.CHANGE in wants and Want.PROMISED not in wants):
        # A change waits until a window that a request on work concerns is committed. A promised window runs with the
        # plan for which it was promised, since the promise names what each slot gets.
        return Await() if state.in_flight else Start() if Want.REQUEST in wants else Change()
    # a promised window takes the discoveries that its promise names, so that a look could not add to it
    if state.is_due(Want.LOOK) and wants.keys().isdisjoint((Want.PROMISED, Want.ENOUGH)):
        return Look()
    if not wants.keys().isdisjoint((Want.PROMISED, Want.WORK, Want.WINDOW)):
        return Start()
    if state.in_flight:
        # While there is enough work, a look that is due would end each wait at once, and the loop would spin.
        calls = (Want.DEFERRED,) if Want.ENOUGH in wants else (Want.LOOK, Want.DEFERRED)
        return Await(_first(state, *calls))
    return _idle(state)


def _is_over(state: LoopState) -> bool:
    """Whether a run that is to stop ends now: no window is in flight, or those that are will not end in time."""
    if not state.in_flight or Want.RESUME in state.wants:
        return True
    return state.abandons_at is not None and state.abandons_at <= state.now


def _await_oldest(state: LoopState) -> Action:
    """Await the oldest window; if it is put off, resume it when that is due."""
    if Want.RESUME not in state.wants:
        return Await()
    return Resume() if state.is_due(Want.RESUME) else Sleep(state.wants[Want.RESUME])


def _runs_beside_delivery(state: LoopState) -> bool:
    """Whether to start the next window before a delivery, so that slots work meanwhile."""
    # Otherwise slots read for 3.5 s while the driver waits, and then the driver sends for 3.5 s while the slots wait.
    # The commit still follows the delivery before it, so one number for each writer is enough, and a crash leaves at
    # most one delivery and one promised window. Rejected: a thread for deliveries, with which the loop would share all
    # it owns; two windows beside a delivery, since the driver is the slower side then.
    if Want.BESIDE not in state.wants or state.in_flight or replace(state, in_flight=1).is_full:
        return False
    if state.is_stopping or state.windows_left == 0:
        return False
    return Want.WORK in state.wants and state.wants.keys().isdisjoint((Want.REQUEST, Want.CHANGE))


def _finish(state: LoopState) -> Action:
    """Finish when it is due. A run that is to stop leaves an unavailable system to the next launch."""
    if state.is_due(Want.FINISH):
        return Finish()
    return Stop() if state.is_stopping else Sleep(state.wants[Want.FINISH])


def _first(state: LoopState, *wants: Want) -> datetime | None:
    """The first instant at which one of these is wanted."""
    return min((state.wants[want] for want in wants if want in state.wants), default=None)


def _idle(state: LoopState) -> Action:
    """Return the action when no work is pending and nothing new was found."""
    wants, is_busy = state.wants, Want.BUSY in state.wants
    if not is_busy and wants.keys().isdisjoint((Want.MORE, Want.DEFERRED)):
        return Start(last=Want.LAST in wants) if Want.CLOSE in wants else Stop()
    if state.is_due(Want.EMPTY):
        return Start()
    calls = (Want.LOOK, Want.DEFERRED) if is_busy or Want.MORE in wants else (Want.DEFERRED,)
    until = _first(state, *calls, Want.EMPTY)
    if is_busy:
        return Await(until)
    assert until is not None, "a run that waits for nothing ends"
    return Sleep(until)
