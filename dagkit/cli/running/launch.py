"""`dagkit launch`: run an application, from where its ledger says that it stopped."""

import shlex
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from click import get_current_context

from dagkit.api.running import Until
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
"""Where metrics are served, unless told: to this machine alone."""

_SECONDS_BETWEEN = 2.0
"""Between two lines of progress."""


@click.command()
@application
@click.option("--once", is_flag=True, help="Do all that is there now, then stop.")
@click.option("--until-idle", is_flag=True, help="Stop when a further look finds nothing new.")
@click.option("--drain", is_flag=True, help="Look for nothing more, do what was found, and stop.")
@click.option("--path", metavar="FOLDER", help="The application's folder: its ledger, its checkpoints, its staging.")
@click.option("--cores", metavar="N", type=click.IntRange(min=1), help="Cores of a local Spark; all, unless told.")
@click.option(
    "--master", metavar="URL", help="Where Spark is: `spark://…`, `yarn`, `k8s://…`, or `sc://…` for Connect."
)
@click.option("--reference", is_flag=True, help="Run in plain single-threaded Python, without Spark.")
@click.option("--windows", metavar="N", type=click.IntRange(min=1), help="Stop after so many windows.")
@click.option("--no-sync", is_flag=True, help="Survive a crash, and not a power cut: leave writing to the system.")
@click.option(
    "--metrics-port",
    metavar="N",
    type=click.IntRange(0, 65535),
    help="Serve metrics for Prometheus there; 0: any port.",
)
@click.option("--metrics-address", metavar="ADDRESS", help="The address to serve them at; 127.0.0.1, unless told.")
@click.option(
    "--log", type=click.Choice(["text", "json"]), default="text", help="How stderr speaks: `json` tells all in lines."
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
    """Run an application until it is stopped, on a local Spark unless told otherwise.

    It resumes after the last window that its ledger holds. An interrupt lets the window in flight end; a second one
    stops at once, and costs that window and nothing else.
    """
    if once + until_idle + drain > 1:
        raise click.UsageError("--once, --until-idle and --drain are different ends; give one of them")
    machine = _machine(master, cores, reference=reference)
    if metrics_address is not None and metrics_port is None:
        raise click.UsageError("--metrics-address says where --metrics-port is; give that, too")
    lines = Lines(output.fault) if log == "json" else None
    if lines is not None:
        output = get_current_context().find_root().obj = replace(output, tell=lines.tell)
    until = Until.ONCE if once else Until.IDLE if until_idle else Until.DRAINED if drain else Until.STOPPED
    with opened(asked, output) as found:
        compilation = found.compiled()
        if lines is not None:
            lines.app = compilation.application
        output.notes(compilation.notes)
        progress = Progress(Output(verbosity=-1) if lines else output)
        with ExitStack() as meanwhile:
            observers: list[Observer] = [progress]
            if lines is not None:
                meanwhile.enter_context(lines.with_logs())
                observers.append(lines)
            if metrics_port is not None:
                metrics = _metrics()
                port = meanwhile.enter_context(metrics.served(metrics_port, metrics_address or LOCAL))
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
    """The machine that the options name; a URL that no master has is refused before anything is started."""
    if reference and (cores or master):
        raise click.UsageError("--reference runs without Spark, and takes neither --cores nor --master")
    if master is not None:
        Master.of(master)
    return Machine("reference" if reference else "spark", master=master, cores=cores)


def _metrics() -> "Prometheus":
    """What keeps the metrics; loaded by whoever asks for them."""
    from dagkit.observers.prometheus import Prometheus  # noqa: PLC0415 - see above

    return Prometheus()


@dataclass
class Totals:
    """What a launch did, all windows together."""

    windows: int = 0
    read: int = 0
    written: int = 0
    files: int = 0
    millis: float = 0.0


class Progress:
    """Tells people how far a launch is, not more often than they can read."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.totals = Totals()
        self._began = time.monotonic()
        self._told = self._began

    def __call__(self, happening: RunEvent) -> None:
        match happening:
            case Resumed(window_id=0, application=application):
                self.output.message(f"{application} begins")
            case Resumed(application=application, window_id=window_id, waiting=waiting):
                self.output.message(
                    f"{application} goes on after window {window_id}; {counted(waiting, 'element')} waiting"
                )
            case Found(operator=operator, blocks=blocks, positions=positions) if blocks:
                self.output.detail(f"{operator} found {counted(blocks, 'block')}, {in_bytes(positions)}")
            case Reshaped(fact=Scaled() as fact):
                self.output.message(f"{fact.operator}: {counted(fact.after, 'partition')}, {fact.before} before")
            case Reshaped(fact=Changed() as fact):
                after, before = shown_value(fact.after), shown_value(fact.before)
                self.output.message(f"{fact.operator}.{fact.name} is {after}, and was {before}")
            case Committed():
                self._count(happening)
            case Ended():
                self.totals.millis = (time.monotonic() - self._began) * 1000

    def summary(self, launched: Launched) -> str:
        """What was done, in two lines."""
        totals, seconds = self.totals, self.totals.millis / 1000
        if not totals.windows:
            done = "nothing new"
        else:
            rate = f", {in_bytes(totals.read / seconds)}/s" if totals.read and seconds else ""
            done = (
                f"{counted(totals.windows, 'window')}, {in_bytes(totals.read)} read, {in_bytes(totals.written)} "
                f"written to {counted(totals.files, 'file')} in {seconds:.1f} s{rate}"
            )
        place = shlex.quote(_shown(launched.application_path))
        return f"{launched.application}: {done}\nledger: dagkit ledger show {place}"

    def _count(self, committed: Committed) -> None:
        totals, now = self.totals, time.monotonic()
        totals.windows += 1
        totals.read += committed.positions
        totals.written += committed.written
        totals.files += committed.files
        waiting = f"; {counted(committed.waiting, 'element')} waiting, {in_bytes(committed.waiting_positions)}"
        line = (
            f"window {committed.window_id}: {in_bytes(committed.positions)} read, {in_bytes(committed.written)} "
            f"written in {committed.millis / 1000:.1f} s{waiting if committed.waiting else ''}"
        )
        if self.output.verbose or now - self._told >= _SECONDS_BETWEEN:
            self._told = now
            self.output.message(line)


def _shown(place: str) -> str:
    return printable(place if is_url(place) else shown_path(Path(place)))


def in_bytes(count: float) -> str:
    """`512 B`, `1.5 MB`: as people count them."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
