"""Runs the application of `dagkit launch`, and prints its progress. `launch` imports this module while Spark starts."""

from contextlib import ExitStack
from dataclasses import asdict, replace

from click import get_current_context

from dagkit.cli.application.opening import opened
from dagkit.cli.application.options import Asked
from dagkit.cli.running.launch_options import Wanted, command_again
from dagkit.cli.running.launch_progress import Progress, has_live_table, live_table
from dagkit.cli.terminal.output import Output, WrongUsage
from dagkit.compiler.steps import application_path
from dagkit.engine.record.run_events import Observer
from dagkit.ground.urls import absolute, is_url
from dagkit.launching import launch_compiled
from dagkit.observers.lines import Lines
from dagkit.runs.inventory.finders import places, receivers
from dagkit.runs.machine import Machine


def run(asked: Asked, output: Output, machine: Machine, wanted: Wanted) -> None:
    """Compile and run the application, and print the result."""
    lines = Lines(output.fault) if wanted.as_lines else None
    if lines is not None:
        # The group prints a failure of this command by its own object, so it gets the same one.
        output = get_current_context().find_root().obj = replace(output, report=lines.report)
    with opened(asked, output) as app:
        compilation = app.compiled()
        if lines is not None:
            lines.app = compilation.application
        output.notes(compilation.notes)
        if wanted.fresh and is_url(wanted.path or application_path(compilation)):
            raise WrongUsage("--fresh renames a folder, which object stores cannot do; give another folder with --path")
        has_table = has_live_table(output, machine.backend)
        # With lines of JSON, progress only counts for the summary: the lines have every event already.
        progress = Progress(
            Output(verbosity=-1) if lines else output, places(compilation), receivers(compilation), has_table=has_table
        )
        with ExitStack() as stack:
            observers: list[Observer] = [progress, *wanted.observers]
            if lines is not None:
                stack.enter_context(lines.with_logs())
                observers.append(lines)
            if wanted.metrics is not None:
                from dagkit.observers.prometheus import Prometheus  # noqa: PLC0415 - few launches have metrics

                address, port = wanted.metrics
                metrics = Prometheus()
                port = stack.enter_context(metrics.served(port, address))
                output.message(f"metrics at http://{address}:{port}/metrics")
                observers.append(metrics)
            if wanted.console is not None:
                from dagkit.console.run_folder import RunFolder  # noqa: PLC0415 - few launches have a console
                from dagkit.console.serving import Console  # noqa: PLC0415 - as above

                place = absolute(wanted.path or application_path(compilation))
                page = Console(RunFolder(place), allows_control=wanted.allow_control)
                output.message(f"console: {stack.enter_context(page.served(wanted.console))}")
            launched = launch_compiled(
                compilation,
                machine,
                path=wanted.path,
                until=wanted.until,
                windows=wanted.windows,
                fresh=wanted.fresh,
                take_over=wanted.take_over,
                durable=wanted.durable,
                observers=observers,
                watch=live_table if has_table else progress.watch,
                command=command_again(get_current_context(), compilation),
            )
    if output.as_json:
        # Without the status, which has the figures of all operators: `asdict` would copy them in vain.
        body = asdict(replace(launched, status=None))
        del body["status"]
        status = launched.status
        body["left_out"] = {} if status is None else status.metrics.left_out
        body["read_again"] = {} if status is None else status.metrics.read_again
        body["waits_for"] = () if status is None else status.expected.waits_for
        output.document("dagkit.launch/1", {**body, **asdict(progress.totals)})
    else:
        output.result(progress.summary(launched))
