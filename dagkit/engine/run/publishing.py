"""Publishes what each committed window did, from the parts of the run that know it."""

from dagkit.api.work import unit_of
from dagkit.engine.checkpoint.checkpoint import Checkpoint
from dagkit.engine.reports.measuring import Measuring, aggregators_of
from dagkit.engine.reports.run_events import Queue
from dagkit.engine.run.discover import DriverInputs
from dagkit.engine.run.outputs import Outputs
from dagkit.engine.run.pending import PendingWork
from dagkit.engine.run.run_context import RunContext
from dagkit.engine.run.run_part import EndedWindow, RunPart


class Publishing(RunPart):
    """Publishes committed windows and their measurements."""

    def __init__(self, run: RunContext, inputs: DriverInputs, queue: PendingWork, outputs: Outputs) -> None:
        self._run = run
        self._inputs = inputs
        self._queue = queue
        self._outputs = outputs
        self._measuring = Measuring(aggregators_of(run.plan.compilation.graph))

    def announce(self, ended: EndedWindow, checkpoint: Checkpoint) -> None:
        run, window, queue = self._run, ended.window, self._queue.queue
        found, now = self._inputs.figures(ended.window_id), run.now()
        run.publisher.committed(
            window,
            ended.answer,
            files=len(self._outputs.unplaced),
            queue=queue,
            now=now,
            visible=self._outputs.next_wake,
            block=run.journal.chain.head.seq,
        )
        queues = [
            Queue(*run.summary.addresses[into].into, *lengths, unit_of(run.summary.elements[into].operator))
            for into, lengths in queue.lengths().items()
        ]
        measured = self._measuring.after(
            ended.program,
            ended.window_id,
            ended.answer.reports,
            found=found,
            queues=queues,
            facts=checkpoint.facts,
            began=window.began,
            ended=ended.at,
            committed=now,
        )
        run.publisher.publish(measured)
