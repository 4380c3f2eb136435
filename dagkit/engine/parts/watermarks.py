"""The event times of an application, as a part of its run."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from dagkit.api.running import Until
from dagkit.engine.inputs.event_times import EventTimes, Progress
from dagkit.engine.parts.discover import DriverInputs
from dagkit.engine.parts.in_flight import InFlightWindow
from dagkit.engine.parts.operator_state import OperatorState
from dagkit.engine.parts.pending import PendingWork
from dagkit.engine.parts.run_part import EndedWindow, RunPart, Saved
from dagkit.engine.parts.run_state import RunState
from dagkit.engine.parts.wants import Want, Wants
from dagkit.engine.work.waiting import Waiting


class Watermarks(RunPart):
    """The watermarks of all operators after the last committed window, which the checkpoint holds."""

    def __init__(self, run: RunState, inputs: DriverInputs, queue: PendingWork, operators: OperatorState) -> None:
        self._run = run
        self._inputs = inputs
        self._queue = queue
        self._operators = operators

    def wants(self, now: datetime, known: Wants) -> Iterator[tuple[Want, datetime]]:
        """Want a window in which operators see the present watermark, or in which the next source is idle.

        Between two windows, watermarks advance if a source becomes idle, or if an input operator advances its own.
        """
        run, flow, times = self._run, self._run.plan.flow, self._run.checkpoint.event_times
        if flow is None or not flow.users or run.in_flight or Want.WORK in known or self._inputs.found:
            return
        waiting = self._queue.all()
        progress = self._progress(run.window + 1, now, waiting, has_delayed_items=self._operators.holds_items)
        if times.advanced or flow.after(times, progress).advanced:
            yield Want.WINDOW, now
        next_idle = flow.next_idle(times, progress) if run.settings.until is Until.STOPPED else None
        if next_idle is not None:
            yield Want.EMPTY, next_idle

    def _progress(self, window_id: int, now: datetime, waiting: Waiting, *, has_delayed_items: bool) -> Progress:
        inputs = self._inputs
        younger = {name for window in self._run.in_flight for name in window.upto}
        return Progress(
            window_id=window_id,
            now=now,
            waiting=waiting.decisive,
            behind=inputs.behind | younger,
            ended=inputs.exhausted,
            sources=inputs.watermarks,
            has_delayed_items=has_delayed_items,
        )

    def before(self, window: InFlightWindow) -> None:
        flow = self._run.plan.flow
        if flow is not None:
            window.task = replace(window.task, seen=flow.seen(self._run.checkpoint.event_times))

    def after(self, ended: EndedWindow, saved: Saved) -> Saved:
        flow = self._run.plan.flow
        if flow is None:
            return {"event_times": EventTimes()}
        has_delayed = bool(ended.answer.delayed)
        progress = self._progress(ended.window_id, ended.at, saved["queue"], has_delayed_items=has_delayed)
        progress = replace(progress, reports=ended.answer.reports)
        return {"event_times": flow.after(ended.before.event_times, progress)}
