"""An observer that keeps the present picture of a run."""

import logging
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from math import isfinite
from typing import Any

from dagkit.api.metrics import Counted, Metric
from dagkit.api.operators import REJECTED
from dagkit.api.outage import present_outages
from dagkit.api.stats import by_unit
from dagkit.engine.program.facts import Scaled
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.record.backlog_trend import BacklogTrend
from dagkit.engine.record.pace import Pace, TimeLeft
from dagkit.engine.record.run_events import (
    Committed,
    Draining,
    Ended,
    Failed,
    Found,
    Measured,
    Reshaped,
    Resumed,
    RunEvent,
    SlotAtWork,
    Started,
    Starting,
    Waiting,
    Working,
)
from dagkit.engine.record.snapshot import (
    LEAST_BUSY,
    InputActivity,
    OperatorFigures,
    PartitionShare,
    PendingInput,
    RejectedRecord,
    RunError,
    RunningWindow,
    RunSnapshot,
    RunTotals,
    StageFigures,
)
from dagkit.engine.record.statistics import AVERAGED, Balance, Lately, Partitions, rejected_by
from dagkit.errors import DagkitError
from dagkit.ground.clock import Clock
from dagkit.plan import Plan

MOST_REJECTED = 10
"""How many samples of rejected records an operator keeps."""
MOST_PARTITIONS = 10
"""How many partitions of an operator are shown."""

_logger = logging.getLogger(__name__)


@dataclass
class RunPicture:
    """The picture of one launch. The loop's thread updates it; any thread may take a snapshot."""

    clock: Clock
    first: RunSnapshot
    """What is known before the run begins."""
    plan: Plan
    counting: Mapping[str, Sequence[Metric]] = field(default_factory=dict)
    """The metrics that count what an operator leaves out or reads again, by operator."""
    _now: RunSnapshot = field(init=False)
    """Replaced as a whole, so that another thread reads one state of it."""
    _lately: dict[str, Lately] = field(default_factory=dict)
    """The last windows of each operator that took part in one."""
    _balances: dict[str, Balance] = field(default_factory=dict)
    _pace: Pace = field(default_factory=Pace)
    _paces: dict[str, Pace] = field(default_factory=dict)
    """The paces of the operators with pending work."""
    _trend: BacklogTrend = field(default_factory=BacklogTrend)
    _decided: dict[str, int] = field(default_factory=dict)
    """The partitions of the last decision on each operator."""

    def __post_init__(self) -> None:
        stage_of = {name: stage.name for stage in self.plan.stages for name in stage.operators}
        operators = tuple(
            OperatorFigures(
                name=planned.name,
                stage=stage_of.get(planned.name, planned.stage),
                partitions=len(planned.partitions),
                wanted=len(planned.partitions),
            )
            for planned in self.plan.operators
        )
        stages = tuple(
            StageFigures(name=stage.name, operators=stage.operators, level=stage.level) for stage in self.plan.stages
        )
        inputs = tuple(InputActivity(operator=name) for name in self._fed_by)
        self._now = self.first.model_copy(update={"stages": stages, "operators": operators, "inputs": inputs})

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

    def snapshot(self) -> RunSnapshot:
        """The picture now. While no window runs, rates fall to zero after the period that they are averages of."""
        now, at = self._now, self.clock.now()
        if not now.is_over:
            now = now.model_copy(update={"waits_for": (*present_outages(), *now.waits_for)})
        if now.in_flight or now.committed_at is None or at - now.committed_at < AVERAGED:
            return now.model_copy(update={"at": at})
        rates = dict.fromkeys(("received_per_second", "sent_per_second", "positions_per_second", "busy"), 0.0)
        quiet = {**rates, "skew": None, "by_partition": ()}
        operators = tuple(each.model_copy(update=quiet) for each in now.operators)
        return now.model_copy(update={"at": at, "operators": operators, "positions_per_second": 0.0})

    def __call__(self, event: RunEvent) -> None:
        match event:
            case Starting() | Resumed() | Draining() | Ended():
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
        self._set(state="failed", step="", in_flight=(), working=(), error=last)

    # ---- single events

    def _changed(self, event: Starting | Resumed | Draining | Ended) -> None:
        """Note another state."""
        match event:
            case Starting(step=step, spark_page=page):
                page = page or self._now.spark_page
                self._set(state="starting", step=step, spark_page=page, in_flight=(), working=())
            case Resumed(window_id=window_id, waiting=waiting, pending=pending):
                self._set(state="running", step="", resumed_after=window_id, window=window_id, pending_elements=waiting)
                self._set(queued=pending)
            case Draining():
                self._set(state="draining")
            case Ended(window_id=window_id):
                self._set(state="stopped", window=window_id, in_flight=(), working=())

    def _found(self, event: Found) -> None:
        self._count(elements_found=event.blocks, items_found=event.items)
        self._set(queued=by_unit((*self._now.queued.items(), *event.amounts.items())))
        now = self.clock.now()
        self._trend.add(now, self._left)
        self._set(grows_since=self._trend.grows_since, inputs=self._active({event.operator}, now))

    def _active(self, names: Container[str], at: datetime) -> tuple[InputActivity, ...]:
        """The activity of the input operators, of which these had something for the run."""
        return tuple(_at(each, at) if each.operator in names else each for each in self._now.inputs)

    def _started(self, event: Started) -> None:
        now = self.clock.now()
        window = RunningWindow(
            window=event.window_id,
            elements=event.blocks,
            since=now,
            lasts_millis=event.lasts_millis,
            amounts=event.amounts,
        )
        if not self._now.in_flight:
            for pace in (self._pace, *self._paces.values()):
                pace.resume(now)
        queued = {unit: max(0, held - event.amounts.get(unit, 0)) for unit, held in self._now.queued.items()}
        self._set(in_flight=(*self._others(event.window_id), window), queued=queued)
        self._estimate()

    def _working(self, event: Working) -> None:
        windows = self._now.in_flight
        done = {window.window: _within(window, event.done.get(window.window, {})) for window in windows}
        in_flight = (window.model_copy(update={"done": done[window.window]}) for window in windows)
        self._set(working=tuple(event.work), in_flight=tuple(in_flight))
        if self._has_one_level:
            self._pace.report(self.clock.now(), self._now.totals.positions + sum(self._now.done.values()))
        self._estimate()

    @cached_property
    def _has_one_level(self) -> bool:
        """Whether slots process at once what they read; otherwise later levels follow, of unknown length."""
        return all(stage.level == 0 for stage in self.plan.stages)

    def _estimate(self) -> None:
        """Estimate how long all pending work takes."""
        left = self._pace.time_for(self._left, self.clock.now())
        pending = [each for each in self._now.operators if each.pending]
        operators = (
            each.model_copy(update={"eta_seconds": self._time_left(each, left, len(pending))})
            for each in self._now.operators
        )
        self._set(
            operators=tuple(operators),
            positions_per_second=self._pace.per_second,
            eta_seconds=left and left.seconds,
            eta_least_seconds=left and left.least,
            eta_most_seconds=left and left.most,
        )

    @property
    def _left(self) -> int:
        """The positions that wait, or that windows in flight have not processed yet."""
        done = sum(self._now.done.values()) if self._has_one_level else 0
        return sum(self._now.to_do.values()) - done

    def _time_left(self, operator: OperatorFigures, of_run: TimeLeft | None, readers: int) -> float | None:
        """How long the pending work of an operator takes: as long as that of the run if no other one has any."""
        if not operator.pending:
            return None
        left, waiting = of_run, sum(each.positions for each in operator.pending)
        if readers > 1:
            left = self._paces.setdefault(operator.name, Pace()).time_for(waiting, self.clock.now())
        return left.seconds if left is not None else None

    def _failed(self, event: Failed) -> None:
        error = RunError(
            at=self.clock.now(),
            operator=event.operator,
            window=event.window_id,
            message=event.message,
            again=event.again,
        )
        self._set(error=error, working=self._work_of_others(event.window_id))

    def _committed(self, event: Committed) -> None:
        self._count(
            windows=1, positions=event.positions, written=event.written, files=event.files, completed=event.completed
        )
        self._set(
            window=event.window_id,
            operators=tuple(_under_way(each, event) for each in self._now.operators),
            block=event.block,
            committed_at=self.clock.now(),
            in_flight=self._others(event.window_id),
            working=self._work_of_others(event.window_id),
            pending_elements=event.waiting,
            pending_positions=event.waiting_positions,
            queued=event.pending,
            visible_at=event.visible,
        )
        self._pace.add(self.clock.now(), self._now.totals.positions)
        self._estimate()

    def _measured(self, event: Measured) -> None:
        for fact in event.facts:
            if isinstance(fact, Scaled):
                self._decided[fact.operator] = fact.after
        figures = tuple(self._after(event, each) for each in self._now.operators)
        shown = {name: _plain(metrics) for name, metrics in event.metrics.items()}
        self._set(
            operators=figures,
            user_metrics={**self._now.user_metrics, **shown},
            left_out=self._with(self._now.left_out, "left out", event),
            read_again=self._with(self._now.read_again, "read again", event),
            inputs=self._active(self._read_from(event), event.committed),
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
        count = now.partitions
        if partitions := window.operators.get(now.name):
            millis = (window.committed - window.began).total_seconds() * 1000
            lately, count = self._lately.setdefault(now.name, Lately(window.began)), len(partitions)
            for stats in partitions:
                lately.add(stats, window.committed, millis)
            inputs = [port for stats in partitions for port in stats.input_ports]
            outputs = [port for stats in partitions for port in stats.output_ports]
            queued = {queue.port for queue in queues}
            positions, rejected = now.positions + sum(stats.positions for stats in partitions), lately.rejected_share
            if queued:
                self._paces.setdefault(now.name, Pace()).add(window.committed, positions)
            busy = min(1.0, lately.busy_slots / count)
            changed |= {
                "partitions": count,
                "received": now.received + sum(port.tuple_count for port in inputs),
                "sent": now.sent + sum(port.tuple_count for port in outputs),
                "rejects_since": now.rejects_since or (window.committed if rejected else None),
                "rejected_share": now.rejected_share if rejected is None else rejected,
                "rejected_records": (*now.rejected_records, *_rejected(window, now.name))[-MOST_REJECTED:],
                "positions": positions,
                "unit": partitions[-1].unit,
                "reads": partitions[-1].reads,
                "received_per_second": lately.processed_per_second,
                "sent_per_second": lately.emitted_per_second,
                "positions_per_second": lately.positions_per_second,
                "busy": busy,
                **self._divided(now.name, partitions, window, is_busy=busy >= LEAST_BUSY),
                "elements_begun": now.elements_begun + sum(port.tuple_count for port in inputs if port.port in queued),
            }
        return now.model_copy(update={**changed, "wanted": self._decided.get(now.name, count)})

    def _divided(self, operator: str, partitions: Partitions, window: Measured, *, is_busy: bool) -> Mapping[str, Any]:
        """How the work of an operator is divided among its partitions. Of one that hardly works, that is chance."""
        if len(partitions) == 1:
            self._balances.pop(operator, None)
            return {"skew": None, "by_partition": ()}
        balance = self._balances.setdefault(operator, Balance())
        balance.add(partitions, window.committed)
        shares = [PartitionShare(partition=number, busy=busy, taken=taken) for number, busy, taken in balance.shares()]
        skew = shares[0].busy * len(shares) if is_busy else 0.0
        return {"skew": skew or None, "by_partition": tuple(shares[:MOST_PARTITIONS]) if skew else ()}

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
        self._decided[fact.operator] = fact.after
        wanted = {"wanted": fact.after}
        operators = (e.model_copy(update=wanted) if e.name == fact.operator else e for e in self._now.operators)
        self._set(operators=tuple(operators))

    # ---- updates

    def _others(self, window_id: int) -> tuple[RunningWindow, ...]:
        """The windows in flight without this one."""
        return tuple(window for window in self._now.in_flight if window.window != window_id)

    def _work_of_others(self, window_id: int) -> tuple[SlotAtWork, ...]:
        """What slots process in other windows than this one."""
        return tuple(work for work in self._now.working if work.window_id != window_id)

    def _count(self, **added: int) -> None:
        totals = self._now.totals.model_dump()
        self._set(totals=RunTotals(**{name: count + added.get(name, 0) for name, count in totals.items()}))

    def _set(self, **changed: Any) -> None:
        self._now = self._now.model_copy(update=changed)


def _warn(operator: str, text: str) -> None:
    """Log a warning that may have a line of help. Handlers escape line breaks in arguments, since data names fields."""
    problem, _, help_ = text.partition("\n  help: ")
    if help_:
        _logger.warning("%s: %s\n  help: %s", operator, problem, help_)
    else:
        _logger.warning("%s: %s", operator, problem)


def _within(window: RunningWindow, done: Mapping[str, int]) -> Mapping[str, int]:
    """What slots have done of the work with which a window began; they may do more, which is found in the window."""
    return {unit: min(done.get(unit, window.done.get(unit, 0)), amount) for unit, amount in window.amounts.items()}


def _at(activity: InputActivity, at: datetime) -> InputActivity:
    """The activity of an input operator that had something for the run at a time."""
    pause = (at - activity.at).total_seconds() if activity.at is not None else 0.0
    longest = max(activity.longest_pause_seconds, pause)
    return activity.model_copy(update={"at": at, "longest_pause_seconds": longest})


def _under_way(now: OperatorFigures, window: Committed) -> OperatorFigures:
    underway = tuple(window.underway.get(now.name, ()))
    return now if underway == now.underway else now.model_copy(update={"underway": underway})


def _rejected(window: Measured, operator: str) -> Iterator[RejectedRecord]:
    """The samples of what an operator rejected in a window."""
    for sample in window.rejected:
        if sample.operator == operator:
            yield RejectedRecord(window=window.window_id, place=sample.place, record=sample.item)


def _plain(metrics: Mapping[str, Any]) -> dict[str, float | int | str | None]:
    """Metrics that are numbers or texts; None for numbers that JSON does not have."""
    plain = {name: value for name, value in metrics.items() if isinstance(value, float | int | str | None)}
    return {name: None if isinstance(value, float) and not isfinite(value) else value for name, value in plain.items()}
