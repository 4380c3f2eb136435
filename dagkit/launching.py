"""Launching: an application, a backend to run it on, a ledger that remembers it, and a loop that does the rest.

from dagkit.launching import launch

launch(LineFilter(), {"dt.operator.File-splitter.prop.scanner.files": "input"}, until="once")
"""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal
from urllib.parse import quote

from dagkit.api.attributes import DagContext
from dagkit.api.configuration import Config
from dagkit.api.running import Until
from dagkit.clock import Timer
from dagkit.compiler import Compilation, compile_application
from dagkit.compiler.steps import Author
from dagkit.engine.points import Probe
from dagkit.engine.reports.run_events import Observer
from dagkit.engine.run.loop import Loop
from dagkit.engine.run.run_state import RunSettings, RunState
from dagkit.engine.worker.protocol import Backend
from dagkit.ledger import Ledger
from dagkit.observers.spans import tracing
from dagkit.plan import fingerprint
from dagkit.urls import absolute

HOME = ".dagkit"
"""The folder in which applications are kept that nobody gave an APPLICATION_PATH."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What an application runs on."""

    backend: Literal["spark", "reference"] = "spark"
    spark: Any = None
    """A session that is there already; it stays there."""
    master: str | None = None
    """Where a session is to be started: a master's URL, or that of a Connect server."""
    cores: int | None = None
    """The cores of a local session; none: all."""


@dataclass(frozen=True, slots=True)
class Launched:
    """What is left of a launch."""

    application: str
    application_path: str
    window_id: int
    """The last window that was committed."""


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
    """Run an application on Spark, from where its ledger says that it stopped.

    `spark` is a session that is there already, such as a notebook has; without one a local session is started, and
    stopped at the end. `until` is "once": all that is there now; "idle": until a further look finds nothing new;
    "drained": what was found before, and no look for more; or "stopped": until the process is interrupted. `path` goes
    before the application's own APPLICATION_PATH. Further options are those of `launch_compiled`.
    """
    compilation = compile_application(application, conf if isinstance(conf, Config) else Config.of(conf or {}))
    return launch_compiled(compilation, machine or Machine(spark=spark), until=Until(until), path=path, **options)


def launch_compiled(
    compilation: Compilation,
    machine: Machine,
    *,
    until: Until = Until.STOPPED,
    path: str | Path | None = None,
    windows: int | None = None,
    durable: bool = True,
    observers: Sequence[Observer] = (),
    clock: Timer | None = None,
    probe: Probe | None = None,
) -> Launched:
    """Run a compiled application.

    After so many `windows` it stops, whatever is left. One that is not `durable` survives a crash of its process, and
    not one of its machine. `observers` are told what happens; a `probe` may crash the run at any step.
    """
    place = absolute(str(path or application_path(compilation)))
    with _signals() as interrupts:
        ledger = Ledger.create(place, clock=clock, durable=durable)
        with _backend(compilation, machine) as backend:
            loop = Loop(
                RunState(
                    compilation,
                    backend,
                    ledger,
                    RunSettings(place, until, windows, durable=durable, home=str(Path.cwd())),
                    fingerprint=fingerprint(compilation.plan),
                    version=sys.modules["dagkit"].__version__,
                    clock=clock,
                    observers=[*observers, *tracing()],
                    probe=probe,
                )
            )
            interrupts.end(loop)
            loop.run()
    return Launched(compilation.application, place, loop.checkpoint.window)


def application_path(compilation: Compilation) -> str:
    """The application's folder: its own APPLICATION_PATH, else one of its name."""
    settings = compilation.graph.attributes
    setting = settings.get(DagContext.APPLICATION_PATH)
    if setting is not None and setting.value:
        return str(setting.value)
    return str(Path(HOME) / quote(compilation.application, safe=" "))


@contextlib.contextmanager
def _backend(compilation: Compilation, machine: Machine) -> Iterator[Backend]:
    if machine.backend == "reference":
        from dagkit.backends.reference import ReferenceBackend  # noqa: PLC0415 - only one of the two is loaded

        yield ReferenceBackend(compilation)
        return
    from dagkit.backends.spark import SparkBackend  # noqa: PLC0415 - as above

    with _session(machine) as session, contextlib.closing(SparkBackend(compilation, session)) as backend:
        yield backend


@contextlib.contextmanager
def _session(machine: Machine) -> Iterator[Any]:
    """The session that is meant; one that somebody else started stays."""
    from dagkit.backends.spark import local_session, running_session, session_at, stop_session  # noqa: PLC0415 - see above

    there = machine.spark or running_session(machine.master)
    if there is not None:
        yield there
        return
    session = _undisturbed(lambda: session_at(machine.master) if machine.master else local_session(machine.cores))
    try:
        yield session
    finally:
        stop_session(session)


def _undisturbed(make: Callable[[], Any]) -> Any:
    """The session that is made, in a thread of its own, which no signal interrupts.

    Java whose start is interrupted stays behind; and PySpark takes SIGINT for itself where the main thread makes the
    session. Whoever is to end at once does not wait: Java ends with the process, and where that stays, as a notebook's
    does, the session is stopped once it is made.
    """
    made: Future[Any] = Future()

    def run() -> None:
        try:
            made.set_result(make())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            made.set_exception(error)

    threading.Thread(target=run, name="dagkit-session", daemon=True).start()
    try:
        return made.result()
    except SystemExit:
        made.add_done_callback(lambda session: session.exception() or session.result().stop())
        raise


class _Interrupts:
    """Whether somebody asked for a stop, and the loop that is to end then, once there is one."""

    def __init__(self) -> None:
        self._asked = False
        self._loop: Loop | None = None

    def end(self, loop: Loop) -> None:
        """The loop ends once somebody asks, or before its first window where somebody has asked."""
        self._loop = loop
        if self._asked:
            loop.stop()

    def ask(self, *_: Any) -> None:
        """The first signal; the next one ends the process."""
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, _at_once)
        self._asked = True
        if self._loop is not None:
            # in another thread: this one may hold the very lock that stopping takes
            threading.Thread(target=self._loop.stop, daemon=True).start()


@contextlib.contextmanager
def _signals() -> Iterator[_Interrupts]:
    """SIGINT and SIGTERM stop after the window; a second one stops at once, and costs the window in flight."""
    interrupts = _Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = {each: signal.signal(each, interrupts.ask) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupts
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _at_once(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
