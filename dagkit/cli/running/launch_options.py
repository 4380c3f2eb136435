"""The values of the options of `dagkit launch`, and the command line that launches in the same way."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dagkit.api.running import Until
from dagkit.api.secrets import MASK, without_credentials
from dagkit.cli.application.options import Asked
from dagkit.compiler import Compilation
from dagkit.conf.sources.references import is_secret_name
from dagkit.engine.record.run_events import Observer
from dagkit.plan.configuration_lines import lines_of
from dagkit.runs.machine import Machine

_UNTIL = {Until.ONCE: ["--once"], Until.IDLE: ["--until-idle"], Until.DRAINED: ["--drain"]}


@dataclass(frozen=True, slots=True)
class Wanted:
    """The values of the options of `dagkit launch` that do not configure the application."""

    path: str | None
    until: Until
    windows: int | None
    fresh: bool
    take_over: bool
    durable: bool
    as_lines: bool
    """Whether stderr gets one line of JSON for each event."""
    metrics: tuple[str, int] | None
    """The address and the port for Prometheus."""
    console: int | None
    """The port of the page about the run."""
    allow_control: bool
    """Whether that page may stop the run."""
    observers: tuple[Observer, ...] = ()
    """Further observers."""


def command_again(asked: Asked, compilation: Compilation, machine: Machine, wanted: Wanted) -> str:
    """`cd FOLDER && dagkit launch APP …`, with a mask for each secret, and without `--fresh` and `--take-over`."""
    words = ["dagkit", "launch", asked.target, *_configuring(asked, compilation), *_running(machine, wanted)]
    return without_credentials(f"cd {shlex.quote(str(Path.cwd()))} && {shlex.join(words)}")


def _configuring(asked: Asked, compilation: Compilation) -> Iterator[str]:
    """The options that configure the application."""
    lines = lines_of(compilation.conf, lambda key: compilation.secrets.get(key, False))
    secrets = {str(line.entry.value) for line in lines if line.secret} - {""}
    if asked.application is not None:
        yield from ("--app", asked.application)
    for key, value in asked.defines:
        is_secret = is_secret_name(key) or any(secret in value for secret in secrets)
        yield from ("-D", f"{key}={MASK if is_secret else value}")
    for file in asked.files:
        yield from ("-c", file)
    if asked.apconf is not None:
        yield from ("--apconf", asked.apconf)
    if asked.allow_unknown:
        yield "--allow-unknown"


def _running(machine: Machine, wanted: Wanted) -> Iterator[str]:
    """The options for where and how it runs."""
    yield from ("--reference",) if machine.backend == "reference" else ()
    yield from ("--master", machine.shown) if machine.master is not None else ()
    yield from ("--cores", str(machine.cores)) if machine.cores is not None else ()
    for key, value in machine.settings.items():
        yield from ("--spark", f"{key}={MASK if is_secret_name(key) else value}")
    yield from _UNTIL.get(wanted.until, ())
    yield from ("--path", wanted.path) if wanted.path is not None else ()
    yield from ("--windows", str(wanted.windows)) if wanted.windows is not None else ()
    if wanted.console is not None:
        yield f"--console={wanted.console}" if wanted.console else "--console"
    yield from ("--allow-control",) if wanted.allow_control else ()
    if wanted.metrics is not None:
        address, port = wanted.metrics
        yield from ("--metrics-address", address, "--metrics-port", str(port))
    yield from ("--log", "json") if wanted.as_lines else ()
    yield from () if wanted.durable else ("--no-sync",)
