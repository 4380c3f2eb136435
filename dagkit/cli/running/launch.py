"""`dagkit launch`: run an application; resume after the last window in its ledger."""

import shlex
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from click import get_current_context

from dagkit.api.running import Until
from dagkit.api.stats import WorkProgress
from dagkit.backends.spark.master import Master
from dagkit.cli.application.opening import opened
from dagkit.cli.application.options import Asked, application, spoken
from dagkit.cli.terminal.output import Output, counted, shown_path, shown_value
from dagkit.engine.facts import Changed, Scaled
from dagkit.engine.reports.run_events import Committed, Ended, Found, Observer, Reshaped, Resumed, RunEvent
from dagkit.errors import printable
from dagkit.launching import Launched, Machine, launch_compiled
from dagkit.observers.lines import Lines
from dagkit.urls import is_url

if TYPE_CHECKING:
    from dagkit.observers.prometheus import Prometheus

LOCAL = "127.0.0.1"
"""The default address of the metrics: this machine only."""

MOST_PRINTED = 3
"""How much unfinished work a line of progress names."""
_SECONDS_BETWEEN = 2.0
"""The shortest time between two lines of progress."""


@click.command()
@application
@click.option("--once", is_flag=True, help="Process the input available now, then stop.")
@click.option("--until-idle", is_flag=True, help="Stop when a scan finds nothing new.")
@click.option("--drain", is_flag=True, help="Process the work found before, without scanning, then stop.")
@click.option("--path", metavar="FOLDER", help="The application's folder: ledger, checkpoints, staged files.")
@click.option("--cores", metavar="N", type=click.IntRange(min=1), help="Cores of a local Spark; default: all.")
@click.option(
    "--master", metavar="URL", help="The Spark to use: `spark://…`, `yarn`, `k8s://…`, or `sc://…` for Connect."
)
@click.option("--reference", is_flag=True, help="Run in plain single-threaded Python, without Spark.")
@click.option("--windows", metavar="N", type=click.IntRange(min=1), help="Stop after N windows.")
@click.option("--no-sync", is_flag=True, help="Skip fsync: safe against crashes, not against power loss.")
@click.option(
    "--metrics-port",
    metavar="N",
    type=click.IntRange(0, 65535),
    help="Serve metrics for Prometheus on this port; 0: any free port.",
)
@click.option("--metrics-address", metavar="ADDRESS", help="The address for the metrics; default 127.0.0.1.")
@click.option(
    "--log",
    type=click.Choice(["text", "json"]),
    default="text",
    help="The form of stderr: text, or one line of JSON for each event.",
)
@spoken
def launch(
    *,
    asked: Asked,
    output: Output,
    once: bool,
    until_idle: bool,
    drain: bool,
    path: str | None,
    cores: int | None,
    master: str | None,
    reference: bool,
    windows: int | None,
    no_sync: bool,
    metrics_port: int | None,
    metrics_address: str | None,
    log: str,
) -> None:
    """Run an application until it is stopped, by default on a local Spark.

    It resumes after the last window in its ledger. An interrupt lets the current window end; a second one stops at
    once and discards the current window, which runs again later.
    """
    if once + until_idle + drain > 1:
        raise click.UsageError("--once, --until-idle and --drain exclude each other; give one of them")
    machine = _machine(master, cores, reference=reference)
    if metrics_address is not None and metrics_port is None:
        raise click.UsageError("--metrics-address needs --metrics-port")
    lines = Lines(output.fault) if log == "json" else None
    if lines is not None:
        output = get_current_context().find_root().obj = replace(output, report=lines.report)
    until = Until.ONCE if once else Until.IDLE if until_idle else Until.DRAINED if drain else Until.STOPPED
    with opened(asked, output) as found:
        compilation = found.compiled()
        if lines is not None:
            lines.app = compilation.application
        output.notes(compilation.notes)
        progress = Progress(Output(verbosity=-1) if lines else output)
        with ExitStack() as stack:
            observers: list[Observer] = [progress]
            if lines is not None:
                stack.enter_context(lines.with_logs())
                observers.append(lines)
            if metrics_port is not None:
                metrics = _metrics()
                port = stack.enter_context(metrics.served(metrics_port, metrics_address or LOCAL))
                output.message(f"metrics at http://{metrics_address or LOCAL}:{port}/metrics")
                observers.append(metrics)
            if not reference:
                output.message(f"starting Spark {f'at {master}' if master else 'on this machine'}")
            launched = launch_compiled(
                compilation,
                machine,
                path=path,
                until=until,
                windows=windows,
                durable=not no_sync,
                observers=observers,
            )
    if output.as_json:
        output.document("dagkit.launch/1", {**asdict(launched), **asdict(progress.totals)})
    else:
        output.result(progress.summary(launched))


def _machine(master: str | None, cores: int | None, *, reference: bool) -> Machine:
    """The machine for these options; raise if the master's URL is malformed, before anything is started."""
    if reference and (cores or master):
        raise click.UsageError("--reference runs without Spark: leave out --cores and --master")
    if master is not None:
        Master.of(master)
    return Machine("reference" if reference else "spark", master=master, cores=cores)


def _metrics() -> "Prometheus":
    """The observer for metrics; its library is imported only for `--metrics-port`."""
    from dagkit.observers.prometheus import Prometheus  # noqa: PLC0415 - see above

    return Prometheus()


@dataclass
class Totals:
    """Totals over all windows of a launch."""

    windows: int = 0
    read: int = 0
    written: int = 0
    files: int = 0
    millis: float = 0.0
    underway: Mapping[str, Sequence[WorkProgress]] = field(default_factory=dict)
    """The work that the last window began and did not finish, by operator."""


class Progress:
    """Prints the progress of a launch, at most one window in two seconds."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.totals = Totals()
        self._began = time.monotonic()
        self._printed = self._began
        self._visible: datetime | None = None
        """When the next file becomes visible, as last printed."""

    def __call__(self, event: RunEvent) -> None:
        match event:
            case Resumed(window_id=0, application=application):
                self.output.message(f"{application}: starting")
            case Resumed(application=application, window_id=window_id, waiting=waiting):
                pending = f"{counted(waiting, 'element')} pending" if waiting else "no pending work"
                self.output.message(f"{application}: resuming after window {window_id}; {pending}")
            case Found(operator=operator, blocks=blocks, positions=positions) if blocks:
                self.output.detail(f"{operator}: found {counted(blocks, 'block')}, {in_bytes(positions)}")
            case Reshaped(fact=Scaled() as fact):
                self.output.message(f"{fact.operator}: {counted(fact.after, 'partition')} (before: {fact.before})")
            case Reshaped(fact=Changed() as fact):
                after, before = shown_value(fact.after), shown_value(fact.before)
                self.output.message(f"{fact.operator}.{fact.name} is {after} (before: {before})")
            case Committed(visible=visible):
                self._count(event)
                self._announce(visible)
            case Ended():
                self.totals.millis = (time.monotonic() - self._began) * 1000

    def summary(self, launched: Launched) -> str:
        """The summary of the launch, in two lines."""
        totals, seconds = self.totals, self.totals.millis / 1000
        if not totals.windows:
            done = f"no new input since window {launched.window_id}" if launched.window_id else "no input found"
        else:
            rate = f", {in_bytes(totals.read / seconds)}/s" if totals.read and seconds else ""
            done = (
                f"{counted(totals.windows, 'window')}, {in_bytes(totals.read)} read, {in_bytes(totals.written)} "
                f"written to {counted(totals.files, 'file')} in {seconds:.1f} s{rate}{_underway(totals.underway)}"
            )
        place = shlex.quote(_shown(launched.application_path))
        return f"{launched.application}: {done}\nledger: dagkit ledger show {place}"

    def _announce(self, visible: datetime | None) -> None:
        """Print when the next file becomes visible; not again before that time, unless no file was open meanwhile."""
        if visible is None or self._visible is None or self._visible <= datetime.now(UTC):
            self._visible = visible
            if visible is not None:
                self.output.message(f"the next file becomes visible at {visible.astimezone():%H:%M:%S}")

    def _count(self, committed: Committed) -> None:
        totals, now = self.totals, time.monotonic()
        totals.windows += 1
        totals.read += committed.positions
        totals.written += committed.written
        totals.files += committed.files
        totals.underway = committed.underway
        pending = f"; {counted(committed.waiting, 'element')} pending, {in_bytes(committed.waiting_positions)}"
        line = (
            f"window {committed.window_id}: {in_bytes(committed.positions)} read, {in_bytes(committed.written)} "
            f"written in {committed.millis / 1000:.1f} s{pending if committed.waiting else ''}"
            f"{_underway(committed.underway)}"
        )
        if self.output.verbose or now - self._printed >= _SECONDS_BETWEEN:
            self._printed = now
            self.output.message(line)


def _underway(underway: Mapping[str, Sequence[WorkProgress]]) -> str:
    """How far unfinished work has come: `; under way: Count a 40 %`. Work without an end is left out."""
    found = [
        f"{name} {printable(work.source):.60} {work.fraction:.0%}"
        for name, works in underway.items()
        for work in works
        if work.fraction is not None
    ]
    more = [f"and {len(found) - MOST_PRINTED} more"] if len(found) > MOST_PRINTED else []
    return f"; under way: {', '.join([*found[:MOST_PRINTED], *more])}" if found else ""


def _shown(place: str) -> str:
    return printable(place if is_url(place) else shown_path(Path(place)))


def in_bytes(count: float) -> str:
    """A number of bytes in readable form: `512 B`, `1.5 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
