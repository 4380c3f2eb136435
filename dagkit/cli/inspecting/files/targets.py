"""The application whose files a command is about, and its ledger."""

import functools
from collections.abc import Callable
from typing import Any

import rich_click as click

from dagkit.cli.application.located import Located, located
from dagkit.cli.application.options import Asked, configured, spoken
from dagkit.cli.terminal.output import Output
from dagkit.ledger import ChainNotFound, Ledger
from dagkit.ledger.stores.memory import MemoryStore


def of_application(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add APP|FOLDER and its options; the command receives them as `there`."""

    @functools.wraps(command)
    def wrapped(
        *args: Any, target: str, path: str | None, configuring: Callable[[str], Asked], output: Output, **kwargs: Any
    ) -> Any:
        return command(*args, there=located(target, path, configuring, output), output=output, **kwargs)

    option = click.option("--path", metavar="FOLDER", help="The application's folder, if APP is launched with --path.")
    return click.argument("target", metavar="APP|FOLDER")(option(configured(spoken(wrapped))))


def ledger_of(there: Located) -> Ledger:
    """The ledger; an empty one if the application was never launched."""
    try:
        return Ledger.open(there.place)
    except ChainNotFound:
        if there.compilation is None:
            raise
        return Ledger(MemoryStore())
