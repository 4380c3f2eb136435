"""Launching: compile an application, open its backend and its ledger, and run the loop.

from dagkit.launching import launch

launch(LineFilter(), {"dt.operator.File-splitter.prop.scanner.files": "input"}, until="once")
"""

import contextlib
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from inspect import signature
from pathlib import Path
from types import FrameType
from typing import Any

from dagkit.api.application import HOME
from dagkit.api.configuration import Config
from dagkit.api.metrics import counting_metrics
from dagkit.api.running import Until
from dagkit.api.work import reads_positions, unit_of
from dagkit.compiler import Compilation, compile_application
from dagkit.compiler.steps import Author, application_path
from dagkit.engine.files.checks import make_output_folders, output_places
from dagkit.engine.parts.run_state import RunSettings, RunState, Woken
from dagkit.engine.program.failures import Interrupted
from dagkit.engine.program.lower import program_of
from dagkit.engine.program.masking import Masking
from dagkit.engine.program.points import Probe
from dagkit.engine.record.journal import refuse_another
from dagkit.engine.record.run_events import Observer, Observers, PlanDiffers, RunEvent, Starting
from dagkit.engine.record.run_picture import RunPicture
from dagkit.engine.record.snapshot import DriverState, Launch, RunSnapshot
from dagkit.engine.record.status_file import StatusFile, refuse_second, this_process
from dagkit.engine.run.launch_record import LaunchRecord, claimed, differences
from dagkit.engine.run.loop import Loop
from dagkit.engine.run.restart_mark import finish_restart
from dagkit.engine.worker.protocol import Backend
from dagkit.errors import did_you_mean
from dagkit.ground.clock import SystemClock, Timer
from dagkit.ground.forks import only_here
from dagkit.ground.urls import absolute, shown
from dagkit.ledger import Ledger
from dagkit.ledger.stores import Store
from dagkit.observers.run_log import logged
from dagkit.observers.run_text import figures_of, in_notebook, incomplete_files
from dagkit.observers.spans import tracing
from dagkit.plan import fingerprint
from dagkit.runs.machine import Machine
from dagkit.runs.sessions import Sessions

__all__ = ["HOME", "Launched", "Machine", "application_path", "launch", "launch_compiled"]

_LEAST_SET_BACK = timedelta(seconds=20)
"""The difference between the clocks of two hosts that is taken for no mistake."""
_log = logging.getLogger(__name__)

Watch = Callable[[Callable[[], RunSnapshot]], contextlib.AbstractContextManager[Any]]
"""Is entered for a run with a function that returns its present figures, callable from any thread."""


@dataclass(frozen=True, slots=True, repr=False)
class Launched:
    """The result of a launch."""

    application: str
    application_path: str
    window_id: int
    """The last committed window; 0 if there is none."""
    outputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The folders, or URLs, into which each operator writes files."""
    status: RunSnapshot | None = None
    """The figures of this launch: totals, and each operator's items, positions and partitions."""
    incomplete: int = 0
    """The output files that are not complete: they are invisible, and the next launch continues them."""

    def __repr__(self) -> str:
        """What the launch did, and where its results are: short, since a notebook shows it below the cell."""
        done = "" if self.status is None else figures_of(self.status)
        written = "; ".join(f"{name} wrote to {', '.join(folders)}" for name, folders in self.outputs.items())
        left = incomplete_files(self.incomplete, 'until="once"')
        parts = [f"Launched {self.application}, window {self.window_id}", done, written, left]
        return f"<{'; '.join(filter(None, parts))}>"

    def to_dataframe(self, spark: Any, operator: str | None = None) -> Any:
        """A DataFrame of the files that an operator wrote, which is checked against the ledger when it is read.

        `operator` may be left out if only one operator writes files.
        """
        from dagkit.dataframes import register  # noqa: PLC0415 - only where there is a session

        register(spark)
        options = {} if operator is None else {"operator": operator}
        return spark.read.format("dagkit").options(**options).load(self.application_path)


def launch(
    application: Author,
    conf: Config | Mapping[str, Any] | None = None,
    *,
    spark: Any = None,
    until: Until | str = Until.STOPPED,
    path: str | Path | None = None,
    machine: Machine | None = None,
    **options: Any,
) -> Launched:
    """Run an application on Spark; resume after the last window in its ledger.

    `spark` is an existing session, such as a notebook's; without it, a local session is started, and stopped at the
    end. `machine` is another place to run it, instead of `spark`. `until` is "once": process all input available now;
    "idle": until a scan finds nothing new; "drained": process what earlier launches found, without scanning; or
    "stopped": until the process is interrupted. `path` overrides the application's own APPLICATION_PATH. Further
    options are those of `launch_compiled`.
    """
    ends, unknown = Until(until), next((name for name in options if name not in _OPTIONS), None)
    if unknown == "reference":
        raise TypeError("launch has no option 'reference'; did you mean machine=Machine('reference')?")
    if unknown is not None:
        known = [*_OPTIONS, "spark", "until", "path", "machine"]
        raise TypeError(f"launch has no option {unknown!r}; {did_you_mean(unknown, known)}")
    if spark is not None and machine is not None:
        raise TypeError("launch takes spark or machine, not both: a session that exists, or where to start one")
    compilation = compile_application(application, conf if isinstance(conf, Config) else Config.of(conf or {}))
    # Only here: `dagkit launch`, which calls `launch_compiled`, prints the differences itself.
    options["observers"] = [_warn_if_it_differs, *options.get("observers", ())]
    return launch_compiled(compilation, machine or Machine(spark=spark), until=ends, path=path, **options)


def launch_compiled(
    compilation: Compilation,
    machine: Machine,
    *,
    until: Until = Until.STOPPED,
    path: str | Path | None = None,
    windows: int | None = None,
    durable: bool = True,
    observers: Sequence[Observer] = (),
    watch: Watch | None = None,
    clock: Timer | None = None,
    probe: Probe | None = None,
    take_over: bool = False,
    fresh: bool = False,
    command: str = "",
) -> Launched:
    """Run a compiled application.

    It stops after this many `windows`, even if work is left. Unless `durable`, its ledger survives a crash of the
    process but not of the machine. `observers` receive every run event, and `watch` the present figures; a `probe` may
    crash the run at any step. Raise `driver-runs` if another process runs the application, unless this one is to
    `take_over`. If `fresh`, begin again beside the earlier run, whose folder is renamed. If the Spark Connect server of
    a session that dagkit opened starts again, resume in another session. The status shows the `command` that launches
    the application again, if it is known.
    """
    compilation.check_it_can_run()
    if until is Until.STOPPED and windows is None:
        _warn_of_late_outputs(compilation)
    # Looked up, because modules of dagkit do not import from the package itself.
    place, version = absolute(str(path or application_path(compilation))), sys.modules["dagkit"].__version__
    # Before anything is started: a signal while Spark starts must end the launch before its first window, and leave no
    # Java behind.
    with _signals() as interrupts, contextlib.ExitStack() as shown_status:
        # first of all: a restart that was killed may have renamed the folder that everything below reads
        finish_restart(place)
        if fresh:
            _check_outputs(compilation, durable=durable)  # a launch that cannot write renames no earlier run
        # the lock is held until the status names this driver: a second launch, which waits for it, then finds the
        # status
        with claimed(place, take_over=take_over, fresh=fresh) as kept:
            ledger = Ledger.create(place, clock=clock, durable=durable)
            refuse_another(ledger, compilation.application)  # before anything in its folder is replaced
            picture = _picture(compilation, machine, place, until, command)
            status = StatusFile(ledger.store, picture)
            shown_status.enter_context(status.kept())
            if watch is not None:
                shown_status.enter_context(watch(picture.snapshot))
        with logged(place, compilation.application) as log, Masking.of(lambda: program_of(compilation)).masked():
            everyone: list[Observer] = [status, *in_notebook(picture), *log, *observers, *tracing()]
            # one list for the whole launch: an observer that raised once is called by no later session either
            publish = Observers(everyone).publish
            if kept is not None:
                step = f"beginning again; the earlier run is in {shown(kept)}; its output files stay"
                publish(Starting(step))
            on_driver = machine.backend == "reference"
            settings = RunSettings(
                place, until, windows, durable=durable, home=str(Path.cwd()), runs_in_driver=on_driver
            )

            def loop_on(backend: Backend, ended: Loop | None) -> Loop:
                if ended is not None:  # a driver that has taken over may not have appended to the ledger yet
                    refuse_second(ledger.store, datetime.now(UTC), picture.launch_id)
                state = RunState(
                    compilation,
                    backend,
                    ledger,
                    settings,
                    fingerprint=fingerprint(compilation.plan),
                    version=version,
                    clock=clock,
                    observers=[publish],
                    probe=probe,
                )
                loop = Loop(state, last_window=None if ended is None else ended.last_window)
                # A further session belongs to the same launch, which is on record already.
                if ended is None:
                    _record(state, compilation, version, ledger.store)
                interrupts.end(loop)
                return loop

            sessions = Sessions(machine.server, publish, interrupts.asked)
            loop = sessions.run(machine, lambda on: _backend(compilation, on, place, publish), loop_on)
    outputs = output_places(loop.run_state.program, settings.home)
    last, figures = loop.checkpoint, picture.snapshot()
    return Launched(compilation.application, place, last.window, outputs, figures, last.output.incomplete)


def _check_outputs(compilation: Compilation, *, durable: bool) -> None:
    """Raise `folder-refused` if an operator cannot write to its output folder."""
    with Masking.of(lambda: program_of(compilation)).masked():
        make_output_folders(program_of(compilation), str(Path.cwd()), durable=durable)


_OPTIONS = {
    name for name, option in signature(launch_compiled).parameters.items() if option.kind == option.KEYWORD_ONLY
}


def _warn_of_late_outputs(compilation: Compilation) -> None:
    """Warn of connected outputs that send nothing before the inputs end, in a launch that runs until it is stopped."""
    for node in compilation.graph.nodes:
        for port in node.output_ports.values():
            if port.when_drained and compilation.graph.streams_from(node.name, port.name):
                _log.warning(
                    "%s.%s sends only after all input is processed, and this launch runs until it is stopped: until "
                    "its inputs end, nothing is sent, also when it is stopped\n"
                    "  help: connect an output that sends in each window; or stop this launch, and launch with --drain "
                    '(until="drained") to send it',
                    node.name,
                    port.name,
                )


def _record(state: RunState, compilation: Compilation, version: str, store: Store) -> None:
    """Record what this launch runs, and report how that, and the time, differ from the last launch."""
    _warn_of_clock(state)
    differing = differences(store, compilation.plan, state.checkpoint.window)
    if differing is not None:
        state.publisher.publish(differing)
    # The record holds the plan as it was written, too: what autoscaling changed must not be reported as a difference of
    # the application at the next launch.
    resumed = state.plan.compilation
    LaunchRecord.of(compilation, resumed.plan, version, state.clock.now()).write(store)


def _warn_of_clock(state: RunState) -> None:
    """Warn if the clock is behind the ledger, whose blocks keep the time of the last one then."""
    last, now = state.journal.chain.standing.system_time, state.clock.now()
    if last is not None and last - now > _LEAST_SET_BACK:
        _log.warning(
            "the clock of this machine is at %s, before the ledger's last block, of %s: it was set back, or was wrong "
            "then. No record is lost; new blocks keep the time of that block, and work that is due later waits longer\n"
            "  help: correct the clock if it is wrong; if it is right, nothing is to be done",
            *(f"{time.astimezone():%Y-%m-%d %H:%M:%S}" for time in (now, last)),
        )


def _warn_if_it_differs(event: RunEvent) -> None:
    """Log how the application differs from its last launch: it may be another one that has the same name."""
    if isinstance(event, PlanDiffers):
        _log.warning(
            "the application differs from its last launch, %s: %s. It resumes after window %d: input that was "
            "processed is not processed again. To begin again, pass fresh=True; for another application, set "
            "APPLICATION_NAME or pass path",
            f"{event.last_launch.astimezone():%Y-%m-%d %H:%M:%S}",
            "; ".join(event.changes),
            event.window_id,
        )


def _picture(compilation: Compilation, machine: Machine, place: str, until: Until, command: str) -> RunPicture:
    """The picture of a launch before anything has happened."""
    clock = SystemClock()
    now = clock.now()
    launch = Launch(
        application=compilation.application,
        application_path=place,
        version=sys.modules["dagkit"].__version__,
        driver=this_process(),
        master=machine.shown,
        command=command,
        until=until.value,
        since=now,
    )
    first = RunSnapshot(launch=launch, status=DriverState(at=now))
    counting = {node.name: counting_metrics(type(node.operator)) for node in compilation.graph.nodes}
    counting = {name: metrics for name, metrics in counting.items() if metrics}
    units = {node.name: (unit_of(node.operator), reads_positions(node.operator)) for node in compilation.graph.nodes}
    return RunPicture(clock, first, compilation.plan, counting, units)


@contextlib.contextmanager
def _backend(
    compilation: Compilation, machine: Machine, place: str, publish: Callable[[RunEvent], None]
) -> Iterator[Backend]:
    """The backend of a session of a launch; reports the steps of its start."""
    if machine.backend == "reference":
        from dagkit.backends.reference import ReferenceBackend  # noqa: PLC0415 - only one of the two is loaded

        yield ReferenceBackend(compilation)
        return
    from dagkit.backends.spark import SparkBackend, has_kept_java, web_page  # noqa: PLC0415 - as above

    how = "using the Spark that a warm driver keeps" if has_kept_java() else "starting Spark"
    publish(Starting(f"{how} at {machine.shown}"))
    with machine.session() as session:
        publish(Starting("sending code to Spark's workers", web_page(session)))
        with contextlib.closing(SparkBackend(compilation, session)) as backend:
            backend.check_workers(place)
            publish(Starting("reading the ledger"))
            yield backend


class _Interrupts:
    """Records a request to stop, and passes it to the loop once there is one."""

    def __init__(self) -> None:
        self.asked = Woken()
        self._loop: Loop | None = None

    def end(self, loop: Loop) -> None:
        """Stop this loop at the first signal; at once if the signal came already."""
        self._loop = loop
        if self.asked.is_set():
            loop.stop()

    def ask(self, *_: Any) -> None:
        """Handle the first signal; the next one ends the process."""
        for number in _stopping():
            signal.signal(number, _at_once)
        self.asked.set()
        if self._loop is not None:
            # in another thread: this one may hold the lock that stopping takes
            threading.Thread(target=self._loop.stop, daemon=True).start()


@contextlib.contextmanager
def _signals() -> Iterator[_Interrupts]:
    """SIGINT and SIGTERM stop the loop after the current window; a second signal ends the process at once."""
    interrupts = _Interrupts()
    # Python lets only the main thread set handlers of signals.
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    # a process that an operator forks inherits the handler, and is to end at a signal
    ask = only_here(interrupts.ask)
    before = {number: signal.signal(number, ask) for number in _stopping()}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stopping() -> list[signal.Signals]:
    """SIGINT and SIGTERM, unless a program that embeds Python handles them: Python cannot restore its handler."""
    return [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not None]


def _at_once(number: int, _: FrameType | None) -> None:
    # The exit code with which a shell reports a process that this signal ended.
    raise Interrupted(128 + number)
