"""The values of the options of `dagkit launch`, and the command line that launches in the same way."""

import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click import Context, Option
from click.core import ParameterSource

from dagkit.api.running import Until
from dagkit.api.secrets import MASK, without_credentials
from dagkit.compiler import Compilation
from dagkit.conf.sources.references import is_secret_name
from dagkit.engine.record.run_events import Observer
from dagkit.ground.urls import shown_master
from dagkit.plan.configuration_lines import lines_of

_ONLY_NOW = frozenset({"fresh", "take_over", "as_json", "quiet", "verbose"})
"""Options that mean only this launch, or the terminal of its user."""


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


def command_again(launch: Context, compilation: Compilation) -> str:
    """`cd FOLDER && dagkit launch APP …`, with the options of this launch, and a mask for each secret."""
    lines = lines_of(compilation.conf, lambda key: compilation.secrets.get(key, False))
    secrets = {str(line.entry.value) for line in lines if line.secret} - {""}
    words = ["dagkit", "launch", launch.params["target"]]
    for option in launch.command.params:
        name = str(option.name)
        is_given = launch.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if isinstance(option, Option) and is_given and name not in _ONLY_NOW:
            value = launch.params[name]
            for part in value if option.multiple else [value]:
                words += _words(option, part, secrets)
    return without_credentials(f"cd {shlex.quote(str(Path.cwd()))} && {shlex.join(words)}")


def _words(option: Option, value: Any, secrets: Collection[str]) -> Iterator[str]:
    """An option with one value, as it is typed."""
    name = option.opts[0]
    if option.is_flag:
        yield name
    elif name == "--console":
        yield f"{name}={value}" if value else name
    elif isinstance(value, tuple):
        key, text = value
        is_secret = is_secret_name(key) or any(secret in text for secret in secrets)
        yield from (name, f"{key}={MASK if is_secret else text}")
    else:
        yield from (name, shown_master(value) if name == "--master" else str(value))
