"""`dagkit serve`: keep Spark running, so that launches from this directory start at once."""

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import rich_click as click

from dagkit.cli.application.options import WholeNumber, spark_settings, spoken
from dagkit.cli.terminal.output import Output
from dagkit.errors import RunFailure
from dagkit.runs.machine import Machine
from dagkit.runs.warm.handing_over import STDERR, asked, open_files, use_no_warm_driver
from dagkit.runs.warm.place import ServeFailed, log_path, open_log

if TYPE_CHECKING:
    from dagkit.runs.warm.warm_driver import WarmDriver

_IMPORTED_BY_LAUNCHES = (
    "dagkit.backends.spark.window.backend",
    "dagkit.backends.spark.session.kept_java",
    "dagkit.cli.running.launch",
    "dagkit.cli.running.run_application",
    "pandas",
)
"""What launches import, with what these import. PySpark needs pandas for windows with exchanges."""


@click.command()
@click.option("--cores", metavar="N", type=WholeNumber(min=1), help="Cores of the local Spark; default: all.")
@spark_settings
@click.option(
    "--idle-minutes",
    metavar="N",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="End after this time without a launch.",
)
@click.option("--foreground", is_flag=True, help="Run in this process, until interrupted.")
@click.option("--status", is_flag=True, help="Show the warm driver of this directory.")
@click.option("--stop", is_flag=True, help="End it, after the launch that it runs.")
@spoken
def serve(
    *,
    cores: int | None,
    settings: tuple[tuple[str, str], ...],
    idle_minutes: float,
    foreground: bool,
    status: bool,
    stop: bool,
    output: Output,
) -> None:
    """Start a warm driver for this directory: a process that keeps a local Spark running.

    A `dagkit launch` from the same directory, with the same cores and settings of Spark and the same environment, runs
    there, and begins at once. It prints and ends as without a warm driver.
    """
    if status and stop:
        raise click.UsageError("--status and --stop exclude each other; give one of them")
    if status or stop:
        _show(asked("stop" if stop else "status"), output)
        return
    driver = partial(_driver, Machine(cores=cores, settings=dict(settings)), idle_minutes * 60)
    if foreground:
        why = driver().serve(partial(_show, output=output))
        output.message(f"the warm driver ends: {why}")
    else:
        _show(_in_background(driver), output)


def _driver(machine: Machine, idle_seconds: float) -> "WarmDriver":
    for name in _IMPORTED_BY_LAUNCHES:
        import_module(name)
    from dagkit.backends.spark.session.kept_workers import import_operators  # noqa: PLC0415 - only the driver needs Spark
    from dagkit.backends.spark.session.session import use_java  # noqa: PLC0415 - as above
    from dagkit.backends.spark.session.session_settings import users_settings  # noqa: PLC0415 - as above
    from dagkit.runs.warm.keeper import keep_spark  # noqa: PLC0415 - as above
    from dagkit.runs.warm.warm_driver import WarmDriver  # noqa: PLC0415 - as above

    import_operators()
    context: Any = click.get_current_context()
    main = context.find_root().command

    def run(java: Any, arguments: Sequence[str], program: str) -> None:
        use_no_warm_driver()
        use_java(java)
        main.main(list(arguments), prog_name=program)

    return WarmDriver(machine, partial(keep_spark, machine), run, idle_seconds, users_settings)


def _in_background(driver: "Callable[[], WarmDriver]") -> dict[str, Any]:
    """Start the warm driver in a process of its own; return its status once it is ready."""
    status, announced = os.pipe()
    process = os.fork()
    if process == 0:
        _run_in_background(driver, announced)
    os.close(announced)
    try:
        with os.fdopen(status, encoding="utf-8") as answers:
            line = answers.readline()
    except KeyboardInterrupt:
        # The driver has left the group of the terminal, so the interrupt did not reach it.
        os.kill(process, signal.SIGTERM)
        raise
    answer: dict[str, Any] = json.loads(line) if line else {"failed": "it has ended", "help": f"see {log_path()}"}
    if "failed" in answer:
        raise ServeFailed(answer["failed"], answer["help"])
    return answer


def _run_in_background(driver: "Callable[[], WarmDriver]", announced: int) -> NoReturn:
    """In the forked process: run the warm driver, and write one line to `announced` when it is ready or has failed."""

    def announce(answer: Mapping[str, Any]) -> None:
        os.write(announced, json.dumps(answer).encode() + b"\n")

    code = 1
    try:
        os.setsid()  # an interrupt at the terminal ends what runs there, and the warm driver outlives that
        for inherited in open_files()[STDERR + 1 :]:  # such as a lock that ends with the process that holds it
            os.close(inherited)
        log = open_log()
        for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), log, log)):
            os.dup2(file, number)
        print("the warm driver ends:", driver().serve(announce))  # noqa: T201 - to the log
        sys.stdout.flush()
        code = 0
    except RunFailure as failure:
        announce({"failed": failure.problem, "help": failure.help})
    except BaseException:  # noqa: BLE001 - the process ends here
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)  # what the parent registered to run at its end is the parent's


def _show(status: Mapping[str, Any] | None, output: Output) -> None:
    """Print the status of the warm driver of this directory."""
    if output.as_json:
        output.document("dagkit.serve/1", {"running": status is not None, **(status or {})})
    elif status is None:
        output.result("no warm driver runs for this directory")
    else:
        output.result(
            f"warm driver: process {status['process']}, {status['master']}, {status['state']}, "
            f"launches: {status['launches']}"
        )
