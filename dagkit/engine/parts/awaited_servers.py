"""Waits for the servers that operators ask on the workers: a window in which one does not answer is tried again."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from dagkit.api.outage import Outage
from dagkit.engine.parts.in_flight import InFlightWindow, PutOff
from dagkit.engine.parts.run_part import Action, Resume, RunPart, Want, Wants
from dagkit.engine.parts.run_state import RunState
from dagkit.engine.program.failures import OperatorFailed, WindowLost
from dagkit.engine.worker.protocol import Answer, WindowTask


class AwaitedServers(RunPart):
    """The outages of servers, during which the oldest window in flight is put off."""

    def __init__(self, run: RunState) -> None:
        self._in_flight = run.in_flight
        self._publisher = run.publisher
        self._clock = run.clock
        self._outages: dict[str, Outage] = {}
        """By the operator that raised `Unavailable`."""

    def wants(self, now: datetime, known: Wants) -> Iterator[tuple[Want, datetime]]:
        put_off = self._in_flight.put_off
        if put_off is not None:
            yield Want.RESUME, put_off.until

    def perform(self, action: Action) -> None:
        if isinstance(action, Resume):
            self._in_flight.resume()

    def again(self, window: InFlightWindow, task: WindowTask, error: OperatorFailed | WindowLost) -> WindowTask:
        """Put the next attempt off, as often as a server does not answer an operator."""
        if not isinstance(error, OperatorFailed) or not error.is_away:
            return task
        failure, clock = error.failure, self._clock
        name = failure.operator
        outage = self._outages.setdefault(name, Outage(name, lambda: clock.now().timestamp()))
        # Once for each outage: the attempts after each pause fail in the same way.
        if not outage.is_on:
            self._publisher.started(window)
            self._publisher.failed(window, error, again=True)
        # Observers know of the window now, so it is committed even if it finds nothing to poll.
        window.attempts.cause = error
        # Without the name of the failure, with which its message begins.
        pause = outage.failed(failure.message.partition(": ")[2])
        until = clock.now() + timedelta(seconds=pause)
        window.attempts.put_off = PutOff(until, "waited for a server that does not answer")
        return task

    def receive(self, window: InFlightWindow, answer: Answer) -> Answer:
        for outage in self._outages.values():
            outage.is_over()
        return answer
