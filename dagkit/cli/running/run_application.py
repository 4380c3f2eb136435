"""Runs the application of `dagkit launch`, and prints its progress. `launch` imports this module while Spark starts."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from click import get_current_context

from dagkit.cli.application.opening import opened
from dagkit.cli.application.options import Asked
from dagkit.cli.running.launch_progress import Progress, has_live_table, live_table
from dagkit.cli.terminal.output import Output, WrongUsage
from dagkit.console.run_folder import RunFolder
from dagkit.console.serving import Console
from dagkit.engine.record.run_events import Observer
from dagkit.ground.urls import absolute, is_url
from dagkit.launching import application_path, launch_compiled
from dagkit.observers.lines import Lines
from dagkit.runs.inventory.listing import places, receivers
from dagkit.runs.machine import Machine

if TYPE_CHECKING:
    from dagkit.observers.prometheus import Prometheus


def run(
    asked: Asked,
    output: Output,
    machine: Machine,
    *,
    path: str | None,
    fresh: bool,
    as_lines: bool,
    metrics: tuple[str, int] | None,
    console: int | None,
    allow_control: bool,
    observers: Sequence[Observer],
    **launching: Any,
) -> None:
    """Compile and run the application, and print the result.

    With `as_lines`, stderr gets one line of JSON for each event. `metrics` is the address and the port for Prometheus,
    and `console` the port of the page about the run, which may stop the run if `allow_control` is set. `launching` is
    passed on to `launch_compiled`.
    """
    lines = Lines(output.fault) if as_lines else None
    if lines is not None:
        output = get_current_context().find_root().obj = replace(output, report=lines.report)
    with opened(asked, output) as found:
        compilation = found.compiled()
        if lines is not None:
            lines.app = compilation.application
        output.notes(compilation.notes)
        if fresh and is_url(path or application_path(compilation)):
            raise WrongUsage("--fresh renames a folder, which object stores cannot do; give another folder with --path")
        has_table = has_live_table(output, machine.backend)
        progress = Progress(
            Output(verbosity=-1) if lines else output, places(compilation), receivers(compilation), has_table=has_table
        )
        with ExitStack() as stack:
            watching: list[Observer] = [progress, *observers]
            if lines is not None:
                stack.enter_context(lines.with_logs())
                watching.append(lines)
            if metrics is not None:
                address, port = metrics
                figures = _metrics()
                port = stack.enter_context(figures.served(port, address))
                output.message(f"metrics at http://{address}:{port}/metrics")
                watching.append(figures)
            if console is not None:
                place = absolute(path or application_path(compilation))
                page = Console(RunFolder(place), allows_control=allow_control)
                output.message(f"console: {stack.enter_context(page.served(console))}")
            launched = launch_compiled(
                compilation,
                machine,
                path=path,
                fresh=fresh,
                observers=watching,
                watch=live_table if has_table else progress.watch,
                **launching,
            )
    if output.as_json:
        body = asdict(replace(launched, status=None))
        del body["status"]
        body["left_out"] = {} if launched.status is None else launched.status.left_out
        body["read_again"] = {} if launched.status is None else launched.status.read_again
        body["waits_for"] = () if launched.status is None else launched.status.waits_for
        output.document("dagkit.launch/1", {**body, **asdict(progress.totals)})
    else:
        output.result(progress.summary(launched))


def _metrics() -> "Prometheus":
    """The observer for metrics; its library is imported only for `--metrics-port`."""
    from dagkit.observers.prometheus import Prometheus  # noqa: PLC0415 - see above

    return Prometheus()
