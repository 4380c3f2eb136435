"""Apply or refuse the changes that are requested of a running application, between two windows."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import JsonValue

from dagkit.api.stats import BatchedOperatorStats
from dagkit.compiler.reconfigure import name_of, value_of
from dagkit.engine.changes.requests import (
    ForgetFile,
    GiveUp,
    OnWork,
    Reply,
    Request,
    RequestInbox,
    SetCount,
    SetValue,
    StopRun,
    TapStream,
)
from dagkit.engine.changes.running_plan import RunningPlan
from dagkit.engine.changes.taps import Taps
from dagkit.engine.checkpoint.outcome import ChangesInForce
from dagkit.engine.facts import Changed, Decided, Fact, Forgotten, Scaled
from dagkit.errors import ApplicationFaults, DagkitError

_log = logging.getLogger(__name__)

ASKED = "asked"
"""The policy name of a count that a user set by hand."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A requested new value of a property or an attribute."""

    operator: str
    name: str
    value: str
    request: str | None = None
    """The ID of the request to answer; None if the change has no outside request."""

    def on(self, plan: RunningPlan) -> RunningPlan:
        return plan.setting(self.operator, self.name, self.value)

    def fact(self, before: RunningPlan, after: RunningPlan, at: datetime) -> Fact:
        """Return the fact that records the change. Secrets are masked: both values are as a plan shows them."""
        was = value_of(before.configured, self.operator, self.name)
        now = value_of(after.configured, self.operator, self.name)
        name = name_of(after.configured, self.operator, self.name)
        return Changed(operator=self.operator, name=name, at=at, before=was, after=now)


@dataclass(frozen=True, slots=True)
class Scaling:
    """A requested number of partitions, or a request to repartition by load."""

    operator: str
    wanted: int = 0
    loads: Sequence[int] = ()
    stats: Sequence[BatchedOperatorStats] = ()
    policy: str = ASKED
    rule: str = "set by hand"
    inputs: Mapping[str, JsonValue] = field(default_factory=dict)
    request: str | None = None

    def on(self, plan: RunningPlan) -> RunningPlan:
        return plan.asked_for(self.operator, wanted=self.wanted, loads=self.loads, stats=self.stats)

    def fact(self, before: RunningPlan, after: RunningPlan, at: datetime) -> Fact:
        return Scaled(
            operator=self.operator,
            at=at,
            before=before.count(self.operator),
            after=after.count(self.operator),
            policy=self.policy,
            rule=self.rule,
            inputs=self.inputs,
        )


@dataclass(frozen=True, slots=True)
class Forgetting:
    """A request to read a file again."""

    operator: str
    path: str
    request: str

    def on(self, plan: RunningPlan) -> RunningPlan:
        """Return the same plan: only the state of an operator changes."""
        return plan

    def fact(self, before: RunningPlan, after: RunningPlan, at: datetime) -> Fact:  # noqa: ARG002 - as other changes
        return Forgotten(operator=self.operator, path=self.path, at=at)


PendingChange = Setting | Scaling | Forgetting


@dataclass(frozen=True, slots=True)
class WorkRequest:
    """A request to give up or to retry work. It changes the queue and not the plan."""

    asks: OnWork
    request: str

    @property
    def operator(self) -> str:
        return self.asks.operator or "the work"


class Reconfiguration:
    """The running plan of an application, and its requested changes."""

    def __init__(self, plan: RunningPlan, inbox: RequestInbox) -> None:
        self.plan = plan
        self.inbox = inbox
        self.taps = Taps(inbox)
        """The requests to see items that pass on a stream."""
        self._pending: list[PendingChange] = []
        self._waiting: list[Forgetting] = []
        """Requests that wait until no input operator scans beside the loop."""
        self.work_requests: list[WorkRequest] = []
        """Requests on work; they are performed when the next window starts, even if it was promised."""
        self.stop_requested = False
        """Whether a user has asked from outside that the run stops."""
        self._made: list[tuple[PendingChange | WorkRequest, Fact]] = []
        """Changes that took effect after the last commit."""

    @property
    def is_pending(self) -> bool:
        """Whether a change is pending; it takes effect once no window is in flight."""
        return bool(self._pending)

    @property
    def is_made(self) -> bool:
        """Whether a change took effect that no commit contains yet."""
        return bool(self._made)

    @property
    def in_force(self) -> ChangesInForce:
        """The changes that the next checkpoint contains, and the requests that it answers."""
        answered = tuple(change.request for change, _ in self._made if change.request is not None)
        return ChangesInForce(self.plan.partitions, self.plan.altered, answered)

    def request_change(self, change: PendingChange) -> None:
        """Queue a change: it takes effect before the next window, or is refused."""
        self._pending.append(change)

    def read_requests(self, window_id: int, *, busy: bool = False) -> None:
        """Queue the changes that users have requested from outside; while a scan is `busy`, no file is forgotten."""
        requests = self.inbox.read_requests(window_id)
        self.work_requests += [WorkRequest(each.asks, each.id) for each in requests if isinstance(each.asks, OnWork)]
        for each in requests:
            if isinstance(each.asks, StopRun):
                self.stop_requested = True
                self.inbox.reply(Reply(id=each.id, done=True, window=window_id))
            elif isinstance(each.asks, TapStream):
                self.taps.add(each, each.asks, self.plan.compilation.graph)
        changes = [
            *self._waiting,
            *(
                _change_of(request, asks)
                for request in requests
                if not isinstance(asks := request.asks, OnWork | StopRun | TapStream)
            ),
        ]
        self._waiting = [change for change in changes if busy and isinstance(change, Forgetting)]
        self._pending += [change for change in changes if change not in self._waiting]

    def perform(
        self,
        take: Callable[[RunningPlan], None],
        now: datetime,
        refused: Callable[["PendingChange"], None] = lambda _: None,
        forget: Callable[[Forgetting], None] = lambda _: None,
    ) -> list[Fact]:
        """Apply each pending change, one after the other. Return the facts of those that took effect.

        `take` switches the application to another plan, or raises the reason why it cannot; `refused` is called for a
        refused change without an outside request; `forget` lets an operator forget a file, or raises the reason.
        """
        changes, self._pending = self._pending, []
        facts = []
        for change in changes:
            before = self.plan
            try:
                if change.request is not None and not self.inbox.is_there(change.request):
                    continue  # the request was withdrawn
                if isinstance(change, Forgetting):
                    forget(change)
                after = change.on(before)
                if after is not before:
                    take(after)
            except DagkitError as error:
                self._refuse(change, error)
                if change.request is None:
                    refused(change)
                continue
            self.plan = after
            fact = change.fact(before, after, now)
            self._made.append((change, fact))
            facts += [fact, *_counted(change, before, after, now)]
        return facts

    def perform_on_work(self, perform: Callable[[OnWork], Sequence[Decided]]) -> list[Fact]:
        """Perform the requests on work, and return the facts; `perform` raises the reason why it cannot."""
        requests, self.work_requests = self.work_requests, []
        facts: list[Fact] = []
        for each in requests:
            if not self.inbox.is_there(each.request):
                continue  # the request was withdrawn
            try:
                decided = perform(each.asks)
            except DagkitError as error:
                self._refuse(each, error)
                continue
            self._made.append((each, decided[0]))
            facts += decided
        return facts

    def committed(self, window_id: int) -> None:
        """Answer the requests that the committed window contains."""
        made, self._made = self._made, []
        for change, fact in made:
            if change.request is not None:
                before, after = (fact.before, fact.after) if isinstance(fact, Changed | Scaled) else (None, None)
                name = fact.name if isinstance(fact, Changed) else None
                reply = Reply(id=change.request, done=True, window=window_id, name=name, before=before, after=after)
                self.inbox.reply(reply)

    def failed(self, error: DagkitError) -> None:
        """Refuse uncommitted changes: the run ends with an error that they may have caused; the next omits them.

        Work that is given up causes no error: the next launch gives it up. Changes without an outside request need no
        answer, and the run itself reports the error.
        """
        made, self._made = self._made, []
        for change, _ in made:
            if change.request is not None and not (isinstance(change, WorkRequest) and isinstance(change.asks, GiveUp)):
                self._refuse(change, error)

    def _refuse(self, change: PendingChange | WorkRequest, error: DagkitError) -> None:
        reason = "\n".join(map(str, error.diagnostics)) if isinstance(error, ApplicationFaults) else str(error)
        if change.request is None:
            _log.warning("%s stays as it is: %s", change.operator, reason)
        else:
            self.inbox.reply(Reply(id=change.request, done=False, refused=reason))


def _counted(change: PendingChange, before: RunningPlan, after: RunningPlan, at: datetime) -> list[Fact]:
    """Return the fact of another number of partitions, if setting a value caused it."""
    if not isinstance(change, Setting) or before.count(change.operator) == after.count(change.operator):
        return []
    name = name_of(after.configured, change.operator, change.name)
    counted = Scaling(change.operator, rule=f"{name} was set by hand")
    return [counted.fact(before, after, at)]


def _change_of(request: Request, asks: SetValue | SetCount | ForgetFile) -> PendingChange:
    if isinstance(asks, SetValue):
        return Setting(asks.operator, asks.name, asks.value, request.id)
    if isinstance(asks, ForgetFile):
        return Forgetting(asks.operator, asks.path, request.id)
    return Scaling(asks.operator, asks.count, request=request.id)
