"""Send what committed windows staged to external systems, on the driver, one window after the other."""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from dagkit.api.external import ExternalSystem, Unavailable, external_outputs
from dagkit.api.operators import Operator
from dagkit.api.outage import Outage, Patience
from dagkit.engine.files.entries import CommittedEntries
from dagkit.engine.files.staging import EXTERNAL, Part
from dagkit.engine.program.address import Address
from dagkit.engine.program.failures import OperatorFailed, failure_of
from dagkit.engine.program.program import Program
from dagkit.errors import RunFailure, Scene
from dagkit.ground.clock import Clock

_logger = logging.getLogger(__name__)

_PATIENCE = Patience(first=0.5, longest=30.0, reported_every=300.0)


def _entries_stranded(output: Address, window_id: int) -> RunFailure:
    """Committed entries wait for an external output that the application does not have any more."""
    return RunFailure(
        f"window {window_id} committed entries for {output}, which were not delivered before the last launch "
        "ended, and the application has no such output now",
        "launch once with the operator as it was; then change the application",
        Scene(output.operator, window_id),
        code="entries-stranded",
    )


def _delivery_failed(output: Address, window_id: int, error: Exception) -> RunFailure:
    """An external system did not take a committed window, and would not if it was asked again."""
    return RunFailure(
        f"window {window_id} is committed, and the external system of {output} did not take it: "
        f"{type(error).__name__}: {error}; nothing of it is lost",
        "fix this, then launch again: the launch begins with this delivery",
        code="delivery-failed",
        caused_by_author=True,
    )


@dataclass(frozen=True, slots=True)
class _Connection:
    operator: Operator
    """The instance whose properties the system was made from."""
    system: ExternalSystem


class Deliveries:
    """The external systems of a run."""

    def __init__(self, dataset_id: str, application_path: str, clock: Clock) -> None:
        self._dataset_id = dataset_id
        self._path = application_path
        self._connections: dict[Address, _Connection] = {}
        self._clock = clock
        self._away: Address | None = None
        """The output whose system was unavailable last."""
        self._outage = self._outage_of("")
        self.due: datetime | None = None
        """When to try again, while a system is unavailable."""

    def is_prepared(self, program: Program) -> bool:
        """Whether all external systems of a program are connected."""
        return all(self._is_connected(output, operator) for output, operator in _outputs_of(program))

    def attempt(self, work: Callable[[], None]) -> None:
        """Do some work. If a system is unavailable, note when the next attempt is `due`, unless it took too long."""
        try:
            work()
        except _Away as away:
            if away.output != self._away:  # systems are called in turn: the one before it is available again
                self._outage.is_over()
                self._away, self._outage = away.output, self._outage_of(away.output.operator)
            error = away.error
            reason = f"{error.problem} [{error.code}]"
            pause = self._outage.failed(reason, error.retry_after, has_progressed=error.has_progressed)
            self.due = self._clock.now() + timedelta(seconds=pause)
            if away.waits_seconds is not None and self._outage.seconds >= away.waits_seconds:
                raise away.failure from error
        else:
            self._outage.is_over()
            self.due = None

    def prepare(self, program: Program, window_id: int) -> None:
        """Connect every external system that is not connected, or whose operator was changed."""
        for output, operator in _outputs_of(program):
            if not self._is_connected(output, operator):
                self._disconnect(output)
                self._connect(output, operator, window_id)

    def deliver(self, program: Program, window_id: int, name: str, parts: Sequence[Part]) -> None:
        """Deliver the entries of one output in one window. This is safe to repeat."""
        output = Address(name.removeprefix(EXTERNAL))
        if output not in self._connections or output not in dict(_outputs_of(program)):
            raise _entries_stranded(output, window_id)
        connection = self._connections[output]
        window = CommittedEntries(self._writer(output), window_id, parts, self._path)

        def apply() -> None:
            try:
                connection.system.apply(window)
            except RunFailure:
                # The connection may be gone with the server, so the next attempt makes another one.
                self._disconnect(output)
                raise
            except Exception as error:
                raise _delivery_failed(output, window_id, error) from error

        self._call(output, connection.operator, window_id, apply)

    def log_left(self) -> None:
        """Log, at the end of a run, that it leaves an unavailable system to the next launch."""
        if self.due is not None:
            _logger.warning(
                "stopped while the external system of %s was unavailable; the next launch begins with it, and nothing "
                "that is committed is lost",
                self._away,
            )

    def close(self) -> None:
        """Disconnect all systems. What this raises is logged: it changes nothing that was delivered."""
        for output in list(self._connections):
            self._disconnect(output)

    def _outage_of(self, operator: str) -> Outage:
        return Outage(f"the external system of {operator}", lambda: self._clock.now().timestamp(), patience=_PATIENCE)

    def _writer(self, output: Address) -> str:
        # An application that starts over has another chain, so it is another writer, whose windows count from 1.
        return f"{self._dataset_id}/{output}"

    def _is_connected(self, output: Address, operator: Operator) -> bool:
        return output in self._connections and self._connections[output].operator is operator

    def _connect(self, output: Address, operator: Operator, window_id: int) -> None:
        declared = external_outputs(type(operator))[output.port]

        def connect() -> None:
            system = declared.system(operator)
            try:
                system.prepare(self._writer(output))
            except BaseException:
                with suppress(Exception):  # the error that is raised names the cause
                    system.close()
                raise
            self._connections[output] = _Connection(operator, system)

        self._call(output, operator, window_id, connect)

    def _disconnect(self, output: Address) -> None:
        if output in self._connections:
            try:
                self._connections.pop(output).system.close()
            except Exception as error:  # noqa: BLE001 - an author's system may raise anything
                _logger.warning("%s could not be closed: %s", output, error)

    def _call(self, output: Address, operator: Operator, window_id: int, call: Callable[[], None]) -> None:
        """Call an external system. Raise `OperatorFailed` for what it raises, except if it is unavailable."""
        try:
            call()
        except Exception as error:
            failure = failure_of(error, output.operator, window_id, instance=operator)
            if isinstance(error, Unavailable):
                declared = external_outputs(type(operator))[output.port]
                raise _Away(output, error, failure, declared.waits_seconds(operator)) from error
            raise failure from error


class _Away(Exception):
    """An external system is unavailable."""

    def __init__(
        self, output: Address, error: Unavailable, failure: OperatorFailed, waits_seconds: float | None
    ) -> None:
        super().__init__(output)
        self.output = output
        self.error = error
        self.failure = failure
        """Raised if the system is unavailable for too long."""
        self.waits_seconds = waits_seconds


def _outputs_of(program: Program) -> list[tuple[Address, Operator]]:
    """All external outputs of a program, each with an instance of its operator."""
    return [
        (Address.of(name, output), program.operators[name][0])
        for stage in program.stages
        for name in stage.operators
        for output in external_outputs(type(program.operators[name][0]))
    ]
