"""`dagkit launch`: run an application; resume after the last window in its ledger."""

from typing import TYPE_CHECKING, Any

import rich_click as click
from click.exceptions import Exit

from dagkit.cli.application.options import Asked, WholeNumber, application, spark_settings, spoken
from dagkit.cli.terminal.output import Output
from dagkit.runs.machine import Machine

if TYPE_CHECKING:
    from dagkit.engine.record.run_events import Observer

LOCAL = "127.0.0.1"
"""The default address of the metrics: this machine only."""


def _observers(names: tuple[str, ...]) -> "tuple[Observer, ...]":
    """The named observers; the modules that make them are imported only for `--observer`."""
    if not names:
        return ()
    from dagkit.observers.named_observers import ObserverUnknown, observer_named  # noqa: PLC0415 - see above

    try:
        return tuple(map(observer_named, names))
    except ObserverUnknown as unknown:
        raise click.BadParameter(str(unknown), param_hint="'--observer'") from unknown


class LaunchCommand(click.RichCommand):
    """Reads `--console` without a value as `--console=0`, so that it never takes the next argument for its port."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ["--console=0" if argument == "--console" else argument for argument in args])


@click.command(cls=LaunchCommand)
@application
@click.option("--once", is_flag=True, help="Process the input available now, then stop.")
@click.option("--until-idle", is_flag=True, help="Stop when a scan finds nothing new.")
@click.option("--drain", is_flag=True, help="Process the work found before, without scanning, then stop.")
@click.option("--path", metavar="FOLDER", help="The application's folder: ledger, checkpoints, staged files.")
@click.option("--cores", metavar="N", type=WholeNumber(min=1), help="Cores of a local Spark; default: all.")
@click.option(
    "--master", metavar="URL", help="The Spark to use: `spark://…`, `yarn`, `k8s://…`, or `sc://…` for Connect."
)
@spark_settings
@click.option("--reference", is_flag=True, help="Run in plain single-threaded Python, without Spark.")
@click.option("--windows", metavar="N", type=WholeNumber(min=1), help="Stop after N windows.")
@click.option("--fresh", is_flag=True, help="Begin again; rename the folder of the earlier run.")
@click.option("--take-over", is_flag=True, help="Launch although another process seems to run the application.")
@click.option("--no-sync", is_flag=True, help="Skip fsync: safe against crashes, not against power loss.")
@click.option(
    "--metrics-port",
    metavar="N",
    type=WholeNumber(0, 65535),
    help="Serve metrics for Prometheus on this port; 0: any free port.",
)
@click.option("--metrics-address", metavar="ADDRESS", help="The address for the metrics; default 127.0.0.1.")
@click.option(
    "--console",
    "console_port",
    metavar="[=PORT]",
    type=WholeNumber(0, 65535),
    help="Serve a page about the run on this machine; default: the last port.",
)
@click.option("--allow-control", is_flag=True, help="Let that page stop the run.")
@click.option(
    "--observer",
    "observers",
    metavar="NAME",
    multiple=True,
    help="Send run events to an observer of an installed distribution.",
)
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
    settings: tuple[tuple[str, str], ...],
    reference: bool,
    windows: int | None,
    fresh: bool,
    take_over: bool,
    no_sync: bool,
    metrics_port: int | None,
    metrics_address: str | None,
    console_port: int | None,
    allow_control: bool,
    observers: tuple[str, ...],
    log: str,
) -> None:
    """Run an application until it is stopped, by default on a local Spark.

    It resumes after the last window in its ledger. An interrupt lets the current window end; a second one stops at
    once and discards the current window, which runs again later.
    """
    if once + until_idle + drain > 1:
        raise click.UsageError("--once, --until-idle and --drain exclude each other; give one of them")
    if metrics_address is not None and metrics_port is None:
        raise click.UsageError("--metrics-address needs --metrics-port")
    if allow_control and console_port is None:
        raise click.UsageError("--allow-control needs --console")
    named = _observers(observers)
    machine = _machine(master, cores, dict(settings), reference=reference)
    # A warm driver has imported and started everything, so this process imports nothing that only a launch needs.
    if (code := _handed_over(machine, output)) is not None:
        raise Exit(code)
    # Java starts on one core while Python imports and compiles on another.
    with machine.with_spark_starting() as machine:
        from dagkit.api.running import Until  # noqa: PLC0415 - see above
        from dagkit.cli.running.launch_options import Wanted  # noqa: PLC0415 - as above
        from dagkit.cli.running.run_application import run  # noqa: PLC0415 - as above

        until = Until.ONCE if once else Until.IDLE if until_idle else Until.DRAINED if drain else Until.STOPPED
        serving = None if metrics_port is None else (metrics_address or LOCAL, metrics_port)
        run(
            asked,
            output,
            machine,
            Wanted(
                path,
                until,
                windows,
                fresh=fresh,
                take_over=take_over,
                durable=not no_sync,
                as_lines=log == "json",
                metrics=serving,
                console=console_port,
                allow_control=allow_control,
                observers=named,
            ),
        )


def _handed_over(machine: Machine, output: Output) -> int | None:
    """The exit code of the launch if a warm driver ran it; None if it is to run here."""
    if machine.backend == "reference":
        return None
    from dagkit.runs.warm.handing_over import Declined, hand_over  # noqa: PLC0415 - only Spark is kept warm

    context: Any = click.get_current_context()
    ended = hand_over(machine, context.find_root().info_name or "dagkit")
    if isinstance(ended, Declined):
        if ended.reason is not None:
            output.detail(f"the warm driver does not run this launch: {ended.reason}")
        return None
    return ended


def _machine(master: str | None, cores: int | None, settings: dict[str, str], *, reference: bool) -> Machine:
    """The machine for these options; raise if the master's URL is malformed, before anything is started."""
    if reference and (cores or master or settings):
        raise click.UsageError("--reference runs without Spark: leave out --cores, --master and --spark")
    if master is not None:
        from dagkit.backends.spark.session.master import Master  # noqa: PLC0415 - imports much, and few launches name a master

        Master.of(master)
    return Machine("reference" if reference else "spark", master=master, cores=cores, settings=settings)
