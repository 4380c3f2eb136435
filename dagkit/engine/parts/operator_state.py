"""The state of operators, the items that delays hold, open application windows, and event times."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from dagkit.api.files import why_not_forgotten
from dagkit.api.running import Until
from dagkit.engine.inputs.event_times import EventTimes, Progress
from dagkit.engine.parts.discover import DriverInputs
from dagkit.engine.parts.in_flight import InFlightWindow
from dagkit.engine.parts.pending import PendingWork
from dagkit.engine.parts.run_part import EndedWindow, RunPart, Saved, Want, Wants
from dagkit.engine.parts.run_state import RunState
from dagkit.engine.program.program import Program
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.redistribute import (
    State,
    first_of_delays,
    kept,
    redistribute_state,
    restored,
    state_after,
    state_by_slot,
)
from dagkit.engine.work.waiting import Waiting
from dagkit.engine.worker.instances import live, saved
from dagkit.engine.worker.lifecycle import call_back
from dagkit.engine.worker.outbox import Sent
from dagkit.engine.worker.protocol import Answer


class OperatorState(RunPart):
    """What operators on the workers have after the last committed window."""

    def __init__(self, run: RunState) -> None:
        self._run = run
        self.state, self._held = self.carried(run.program)
        self._beat: datetime | None = None
        """When the next window begins even without input, to close open application windows."""

    def carried(self, program: Program) -> tuple[State, list[Sent]]:
        """The state and held items of the last checkpoint, for another program; raise if it cannot take them."""
        checkpoint = self._run.checkpoint
        kept = checkpoint.operators
        held = restored(program, kept.held) if checkpoint.window else first_of_delays(program)
        return redistribute_state(program, kept.state), held

    def take(self, carried: tuple[State, list[Sent]]) -> None:
        """Continue with what another program carries over."""
        self.state, self._held = carried

    @property
    def holds_items(self) -> bool:
        """Whether delays hold items for the next window."""
        return bool(self._held)

    def wants(self, now: datetime, known: Wants) -> Iterator[tuple[Want, datetime]]:
        run, last, summary = self._run, self._run.checkpoint, self._run.summary
        counts, begun_after = summary.counts, last.window + len(run.in_flight)
        if not summary.overlaps:
            yield Want.ALONE, now
        if self._held and not run.in_flight:
            yield Want.WINDOW, now
        if any(begun_after % count for count in counts):
            yield Want.EMPTY, self._beat or now
            yield Want.CLOSE, now
        # an operator overrides `drained`, or a file waits for the notice that input is drained
        output, progress = last.output, last.progress
        waits = summary.drains or any(part.element_id is None for part in output.files)
        if waits and not progress.drained and last.window > 0:
            yield Want.CLOSE, now
            # With a window that closes all application windows: after another one to close them, the notice would not
            # count as given, and operators would get it again.
            if not any((begun_after + 1) % count for count in counts):
                yield Want.LAST, now

    def before(self, window: InFlightWindow) -> None:
        task, held = window.task, self._held
        state = state_by_slot(self._run.program, self.state)
        window.task = replace(task, state=state, arriving=(*task.arriving, *held))
        window.polls = window.polls and not held
        self._held = []

    def is_changed_by(self, window: InFlightWindow, answer: Answer) -> bool:
        summary = self._run.summary
        is_in_midst = any((window.window_id - 1) % count for count in summary.counts)
        return is_in_midst or bool(answer.delayed) or self._after(answer) != self.state

    def _after(self, answer: Answer) -> State:
        return state_after(self._run.program, self.state, answer)

    def after(self, ended: EndedWindow, saved: Saved) -> Saved:
        held = tuple(kept(ended.program, sent) for sent in ended.answer.delayed)
        return {"state": self._after(ended.answer), "held": held, "drained": ended.task.last}

    def committed(self, ended: EndedWindow, checkpoint: Checkpoint) -> None:
        self.state, self._held = checkpoint.operators.state, list(ended.answer.delayed)
        run = self._run
        self._beat = run.now() + timedelta(milliseconds=run.summary.millis)

    def announce(self, ended: EndedWindow, checkpoint: Checkpoint) -> None:
        """Call what operators registered for the commit."""
        # After the append, so that a lost attempt acknowledges nothing. A crash in between leaves them uncalled.
        call_back(callback for report in ended.answer.reports for callback in report.finalizers)

    def forget_file(self, name: str, path: str, request: str) -> str:
        """Let an operator forget a file; return why this is impossible, or ""."""
        run, states = self._run, self.state.get(name, ({},))
        # an operator that finds files is not partitionable, so it has one state
        operator = live(run.program.operators[name][0], states[0])
        operator.setup(run.program.context_of(name, 0, run.next_window, run.launch))
        try:
            reason = why_not_forgotten(operator, path, request)
        finally:
            operator.teardown()
        if not reason:
            self.state = {**self.state, name: (saved(operator, name), *states[1:])}
        return reason


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
        run = self._run
        flow, times = run.plan.flow, run.event_times
        # a window that follows anyway advances watermarks with its commit
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
        run = self._run
        flow = run.plan.flow
        if flow is not None:
            window.task = replace(window.task, seen=flow.seen(run.event_times))

    def after(self, ended: EndedWindow, saved: Saved) -> Saved:
        plan = self._run.plan
        flow = plan.flow
        if flow is None:
            return {"event_times": EventTimes()}
        has_delayed = bool(ended.answer.delayed)
        progress = self._progress(ended.window_id, ended.at, saved["queue"], has_delayed_items=has_delayed)
        progress, before = replace(progress, reports=ended.answer.reports), ended.before.progress
        return {"event_times": flow.after(before.event_times, progress)}
