"""An observer that keeps the present picture of a run."""

import logging
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from math import isfinite
from statistics import median
from typing import Any

from dagkit.api.metrics import Counted, Metric
from dagkit.api.operators import REJECTED
from dagkit.api.outage import present_outages
from dagkit.engine.program.facts import Scaled
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.record.pace import BacklogTrend, Pace, TimeLeft
from dagkit.engine.record.run_events import (
    Committed,
    Draining,
    Ended,
    Failed,
    Found,
    FoundNothing,
    Measured,
    Reshaped,
    Resumed,
    RunEvent,
    Started,
    Starting,
    Waiting,
    Working,
)
from dagkit.engine.record.snapshot import (
    InputActivity,
    OperatorFigures,
    PendingInput,
    Rates,
    RunError,
    RunSnapshot,
    StageFigures,
)
from dagkit.engine.record.statistics import AVERAGED, Balance, Lately, Partitions, rejected_by
from dagkit.errors import DagkitError
from dagkit.ground.amounts import BYTE
from dagkit.ground.clock import Clock
from dagkit.plan import Plan

_logger = logging.getLogger(__name__)

_FEWEST_TIMES, _MOST_TIMES = 5, 100
"""From how many windows on, and from how many at most, it is known how long a window usually takes."""


@dataclass
class _LatelyOf:
    """The last windows of one operator."""

    averages: Lately = field(default_factory=Lately)
    balance: Balance = field(default_factory=Balance)
    pace: Pace = field(default_factory=Pace)
    """How fast it works off its queue."""
    decided: int | None = None
    """The partitions of the last decision on it."""

    def rates(self, partitions: Partitions, ended: datetime) -> Rates:
        """The rates after a window, with how the work is divided among partitions if there are several."""
        rates = self.averages.rates(len(partitions))
        self.balance.add(partitions, ended)
        return rates if len(partitions) == 1 else rates.divided(list(self.balance.shares()))


@dataclass
class RunPicture:
    """The picture of one launch. The loop's thread updates it; any thread may take a snapshot."""

    clock: Clock
    first: RunSnapshot
    """The picture before the run begins."""
    plan: Plan
    counting: Mapping[str, Sequence[Metric]] = field(default_factory=dict)
    """The metrics that count what an operator leaves out or reads again, by operator."""
    units: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    """By operator, the unit of its positions, and whether it reads them. Without an entry, it reads bytes."""
    _now: RunSnapshot = field(init=False)
    """Replaced as a whole, so that another thread reads one state of it."""
    _lately: defaultdict[str, _LatelyOf] = field(default_factory=lambda: defaultdict(_LatelyOf))
    _pace: Pace = field(default_factory=Pace)
    _trend: BacklogTrend = field(default_factory=BacklogTrend)
    _times: deque[float] = field(default_factory=lambda: deque(maxlen=_MOST_TIMES))
    """How long the last windows took, in milliseconds."""

    def __post_init__(self) -> None:
        stage_of = {name: stage.name for stage in self.plan.stages for name in stage.operators}
        operators = []
        for planned in self.plan.operators:
            name, count = planned.name, len(planned.partitions)
            unit, reads = self.units.get(name, (BYTE, True))
            stage = stage_of.get(name, planned.stage)
            figures = OperatorFigures(name=name, stage=stage, partitions=count, wanted=count, unit=unit, reads=reads)
            operators.append(figures)
        stages = tuple(
            StageFigures(name=stage.name, operators=stage.operators, level=stage.level) for stage in self.plan.stages
        )
        inputs = tuple(InputActivity(operator=name) for name in self._fed_by)
        self._now = self.first.model_copy(update={"stages": stages, "operators": tuple(operators), "inputs": inputs})

    @cached_property
    def _fed_by(self) -> Mapping[str, frozenset[str]]:
        """The input operators, each with the operators that it sends to."""
        streams, fed = self.plan.streams, {sink.operator for stream in self.plan.streams for sink in stream.sinks}
        return {
            planned.name: frozenset(
                sink.operator for stream in streams if stream.source.operator == planned.name for sink in stream.sinks
            )
            for planned in self.plan.operators
            if planned.name not in fed
        }

    @property
    def launch_id(self) -> str:
        launch = self.first.launch
        return launch.id

    def snapshot(self) -> RunSnapshot:
        """The picture now. While no window runs, rates fall to zero after the period that they are averages of."""
        now, at = self._now, self.clock.now()
        if not now.status.is_over:
            now = now.model_copy(update={"waits_for": (*present_outages(), *now.expected.waits_for)})
        if now.windows.overdue(at):
            none = {"eta_seconds": None, "eta_least_seconds": None, "eta_most_seconds": None}
            operators = tuple(each.model_copy(update={"eta_seconds": None}) for each in now.operators)
            now = now.model_copy(update={**none, "operators": operators})
        if not now.windows.is_quiet(at - AVERAGED):
            return now.model_copy(update={"at": at})
        operators = tuple(each.model_copy(update={"rates": Rates()}) for each in now.operators)
        return now.model_copy(update={"at": at, "operators": operators, "positions_per_second": 0.0})

    def __call__(self, event: RunEvent) -> None:
        match event:
            case Starting() | Resumed() | FoundNothing() | Draining() | Ended():
                self._changed(event)
            case Found():
                self._found(event)
            case Started():
                self._started(event)
            case Failed():
                self._failed(event)
            case Committed():
                self._committed(event)
            case Measured():
                self._measured(event)
            case Working():
                self._working(event)
            case Waiting(reasons=reasons):
                self._set(waits_for=tuple(reasons))
            case Reshaped(fact=Scaled() as fact):
                self._scaled(fact)

    def ended(self, error: BaseException) -> None:
        """Record the error that ended the run."""
        explained = error.explained if isinstance(error, DagkitError) else None
        if isinstance(error, KeyboardInterrupt | SystemExit):
            message = "interrupted"
        else:
            message = explained.problem if explained else f"{type(error).__name__}: {error}".removesuffix(": ")
        known = self._now.error
        last = RunError(
            at=self.clock.now(),
            operator=known.operator if known else None,
            window=known.window if known else None,
            code=explained.code if explained else None,
            message=message,
            raised_at=error.failure.raised_at if isinstance(error, OperatorFailed) else "",
            help=explained.help or "" if explained else "",
            again=False,
        )
        windows, backlog = self._now.windows, self._now.backlog
        backlog = backlog.found(windows.amounts)  # the next launch processes the work of windows in flight
        # The error says what the run waited for.
        self._set(state="failed", step="", windows=windows.stopped(), backlog=backlog, error=last, waits_for=())

    # ---- single events

    def _changed(self, event: Starting | Resumed | FoundNothing | Draining | Ended) -> None:
        """Note another state."""
        now = self._now
        windows, status = now.windows, now.status
        stopped = windows.stopped()
        match event:
            case Starting(step=step, spark_page=page):
                page = page or status.spark_page
                self._set(state="starting", step=step, spark_page=page, windows=stopped)
            case Resumed(window_id=window_id, waiting=waiting, pending=pending):
                self._set(state="running", step="", resumed_after=window_id, window=window_id)
                self._set(pending_elements=waiting, queued=pending)
                self._set(**event.aside._asdict())
            case FoundNothing(window_id=window_id):
                self._set(windows=windows.without(window_id))
            case Draining():
                self._set(state="draining")
            case Ended(window_id=window_id):
                # A server that did not answer until the end may be why nothing was read.
                left = (*present_outages(), *now.expected.waits_for)
                backlog = now.backlog.found(windows.amounts)
                self._set(state="stopped", windows=stopped, backlog=backlog, window=window_id, waits_for=left)

    def _found(self, event: Found) -> None:
        self._count(elements_found=event.blocks, items_found=event.items)
        before, now = self._now, self.clock.now()
        expected = before.expected.active({event.operator}, now).with_unsent(event.operator, event.unsent)
        self._set(backlog=before.backlog.found(event.amounts), expected=expected)
        self._trend.add(now, self._left)
        self._set(grows_since=self._trend.grows_since)

    def _started(self, event: Started) -> None:
        before, now = self._now, self.clock.now()
        windows = before.windows
        if not windows.in_flight:
            for pace in (self._pace, *(operator.pace for operator in self._lately.values())):
                pace.resume(now)
        self._set(windows=windows.begun(event, now), backlog=before.backlog.taken(event.amounts))
        self._estimate()

    def _working(self, event: Working) -> None:
        now = self._now
        windows = now.windows.at_work(event)
        self._set(windows=windows)
        if self._has_one_level:
            self._pace.report(self.clock.now(), now.totals.positions + sum(windows.done.values()))
        self._estimate()

    @cached_property
    def _has_one_level(self) -> bool:
        """Whether slots process at once what they read; otherwise later levels follow, of unknown length."""
        return all(stage.level == 0 for stage in self.plan.stages)

    def _estimate(self) -> None:
        """Estimate how long all pending work takes."""
        left = None if self._now.unsent else self._pace.time_for(self._left, self.clock.now())
        operators = self._now.operators
        readers = sum(bool(each.backlog.pending) for each in operators)
        if readers or any(each.backlog.eta_seconds is not None for each in operators):  # a copy of each costs time
            operators = tuple(self._estimated(each, left, readers) for each in operators)
        backlog = self._now.backlog
        self._set(operators=operators, backlog=backlog.estimated(left, self._pace.per_second))

    @property
    def _left(self) -> int:
        """The positions that wait, or that windows in flight have not processed yet."""
        now = self._now
        windows = now.windows
        done = sum(windows.done.values()) if self._has_one_level else 0
        return sum(now.to_do.values()) - done

    def _estimated(self, operator: OperatorFigures, of_run: TimeLeft | None, readers: int) -> OperatorFigures:
        """An operator with how long its pending work takes: as long as that of the run if no other one has any."""
        left, backlog = None, operator.backlog
        if backlog.pending and readers == 1:
            left = of_run
        elif backlog.pending:
            left = self._lately[operator.name].pace.time_for(backlog.positions, self.clock.now())
        seconds = left.seconds if left is not None else None
        return operator if seconds == backlog.eta_seconds else operator.model_copy(update={"eta_seconds": seconds})

    def _failed(self, event: Failed) -> None:
        error = RunError(
            at=self.clock.now(),
            operator=event.operator,
            window=event.window_id,
            message=event.message,
            again=event.again,
        )
        windows = self._now.windows
        self._set(error=error, windows=windows.without_work(event.window_id))

    def _committed(self, event: Committed) -> None:
        self._count(
            windows=1, positions=event.positions, written=event.written, files=event.files, completed=event.completed
        )
        before, now = self._now, self.clock.now()
        windows = before.windows
        ended = [window for window in windows.in_flight if window.window == event.window_id]
        is_slow = any(windows.is_slow(window, event.millis) for window in ended)
        self._times.append(event.millis)
        self._set(
            windows=windows.without(event.window_id),
            usual_millis=median(self._times) if len(self._times) >= _FEWEST_TIMES else None,
            slow_millis=event.millis if is_slow else None,
            window=event.window_id,
            block=event.block,
            committed_at=now,
            operators=tuple(_under_way(each, event) for each in before.operators),
            pending_elements=event.waiting,
            pending_positions=event.waiting_positions,
            queued=event.pending,
            **event.aside._asdict(),
            visible_at=event.visible,
        )
        self._pace.add(now, before.totals.positions)
        waiting = [queue for queue in event.queues if queue.blocks]
        # No look finds what is added to work without an end. Beside other work, a sample after each window would hide
        # that more waits after each find.
        if waiting and all(queue.endless == queue.blocks for queue in waiting):
            self._trend.add(now, self._left)
            self._set(grows_since=self._trend.grows_since)
        self._estimate()

    def _measured(self, event: Measured) -> None:
        for fact in event.facts:
            if isinstance(fact, Scaled):
                self._lately[fact.operator].decided = fact.after
        now = self._now
        figures, before = tuple(self._after(event, each) for each in now.operators), now.metrics
        shown = {name: _plain(metrics) for name, metrics in event.metrics.items()}
        self._set(
            operators=figures,
            user_metrics={**before.user_metrics, **shown},
            left_out=self._with(before.left_out, "left out", event),
            read_again=self._with(before.read_again, "read again", event),
            expected=now.expected.active(self._read_from(event), event.committed),
        )
        self._estimate()

    def _read_from(self, window: Measured) -> set[str]:
        """The input operators of what a window read. Endless work is found once, and read for ever."""
        reading = {name for name, partitions in window.operators.items() if any(each.positions for each in partitions)}
        return {name for name, sinks in self._fed_by.items() if sinks & reading}

    def _after(self, window: Measured, now: OperatorFigures) -> OperatorFigures:
        """The figures of one operator after a window."""
        queues = [queue for queue in window.queues if queue.operator == now.name]
        changed: dict[str, Any] = {
            "pending": tuple(
                PendingInput(port=queue.port, elements=queue.blocks, positions=queue.positions) for queue in queues
            )
        }
        lately, count = self._lately[now.name], now.partitions
        if partitions := window.operators.get(now.name):
            millis = (window.committed - window.began).total_seconds() * 1000
            count = len(partitions)
            for stats in partitions:
                lately.averages.add(stats, window.committed, millis)
            inputs = [port for stats in partitions for port in stats.input_ports]
            outputs = [port for stats in partitions for port in stats.output_ports]
            queued = {queue.port for queue in queues}
            positions = now.positions + sum(stats.positions for stats in partitions)
            if queued:
                lately.pace.add(window.committed, positions)
            begun = sum(port.tuple_count for port in inputs if port.port in queued)
            changed |= {
                "partitions": count,
                "received": now.received + sum(port.tuple_count for port in inputs),
                "sent": now.sent + sum(port.tuple_count for port in outputs),
                "rejections": now.rejections.after(window, lately.averages.rejected_share, now.name),
                "positions": positions,
                "unit": partitions[-1].unit,
                "reads": partitions[-1].reads,
                "rates": lately.rates(partitions, window.committed),
                "elements_begun": now.backlog.elements_begun + begun,
            }
        return now.model_copy(update={**changed, "wanted": count if lately.decided is None else lately.decided})

    def _with(
        self, before: Mapping[str, Mapping[str, int]], counted: Counted, window: Measured
    ) -> Mapping[str, Mapping[str, int]]:
        """The totals with what a window left out or read again. The first window that does it is warned of."""
        totals = {name: dict(counts) for name, counts in before.items()}
        for name in dict.fromkeys([*window.operators, *self.counting]):
            values = window.metrics.get(name, {})
            counting = {each.name: each.warning for each in self.counting.get(name, ()) if each.counted == counted}
            counts = {metric: values.get(metric, 0) for metric in counting}
            if counted == "left out":
                counts[REJECTED] = sum(map(rejected_by, window.operators.get(name, ())))
            for what, count in counts.items():
                if count:
                    total = totals.setdefault(name, {})
                    warning = None if what in total else counting.get(what)
                    if warning is not None:
                        _warn(name, warning.format_map(values))
                    total[what] = total.get(what, 0) + count
        return totals

    def _scaled(self, fact: Scaled) -> None:
        self._lately[fact.operator].decided = fact.after
        wanted = {"wanted": fact.after}
        operators = (e.model_copy(update=wanted) if e.name == fact.operator else e for e in self._now.operators)
        self._set(operators=tuple(operators))

    # ---- updates

    def _count(self, **added: int) -> None:
        totals = self._now.totals
        counts = {name: getattr(totals, name) + count for name, count in added.items()}
        self._set(totals=totals.model_copy(update=counts))

    def _set(self, **changed: Any) -> None:
        self._now = self._now.model_copy(update=changed)


def _warn(operator: str, text: str) -> None:
    """Log a warning that may have a line of help. Handlers escape line breaks in arguments, since data names fields."""
    problem, _, help_ = text.partition("\n  help: ")
    if help_:
        _logger.warning("%s: %s\n  help: %s", operator, problem, help_)
    else:
        _logger.warning("%s: %s", operator, problem)


def _under_way(now: OperatorFigures, window: Committed) -> OperatorFigures:
    underway = tuple(window.underway.get(now.name, ()))
    return now if underway == now.backlog.underway else now.model_copy(update={"underway": underway})


def _plain(metrics: Mapping[str, Any]) -> dict[str, float | int | str | None]:
    """Metrics that are numbers or texts; None for numbers that JSON does not have."""
    plain = {name: value for name, value in metrics.items() if isinstance(value, float | int | str | None)}
    return {name: None if isinstance(value, float) and not isfinite(value) else value for name, value in plain.items()}
