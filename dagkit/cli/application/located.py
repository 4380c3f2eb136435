"""The folder of the application that a command works on, given as an application or as its folder."""

import functools
import os
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rich_click as click
from click.shell_completion import CompletionItem

from dagkit.api.application import HOME
from dagkit.cli.application.finding import holds_a_ledger
from dagkit.cli.application.opening import compiled
from dagkit.cli.application.options import Asked, Command, configured, spoken
from dagkit.cli.terminal.output import Output
from dagkit.compiler import Compilation
from dagkit.compiler.steps import application_path
from dagkit.engine.run.launch_record import last_launch
from dagkit.engine.run.restart_mark import unfinished_restart
from dagkit.errors import ApplicationNotFound, did_you_mean, printable
from dagkit.ground.urls import absolute
from dagkit.ledger import ChainNotFound, Ledger
from dagkit.ledger.stores.memory import MemoryStore
from dagkit.runs.inventory.applications import folders_in, launched_in, name_of

Decorator = Callable[[Command], Command]


@dataclass(frozen=True, slots=True)
class Located:
    """An application's folder, and the application if it was given."""

    place: str
    compilation: Compilation | None = None


def located(target: str, path: str | None, configuring: Callable[[str], Asked], output: Output) -> Located:
    """Take the target as a folder if it holds a ledger, else as an application, whose folder may be at `path`.

    Raise ApplicationNotFound if the folder is missing since a restart was killed.
    """
    there = perhaps_restarting(target, path, configuring, output)
    if unfinished_restart(there.place) is not None and not Path(there.place).exists():
        raise ApplicationNotFound(
            f"{printable(target)} is being restarted, or a restart of it was killed between its steps",
            f"`dagkit restart {shlex.quote(target)} --from WINDOW`, or the next launch, takes the steps that are left",
        )
    return there


def perhaps_restarting(target: str, path: str | None, configuring: Callable[[str], Asked], output: Output) -> Located:
    """As `located`, but also if the folder is missing since a restart was killed."""
    if path is None and (holds_a_ledger(target) or unfinished_restart(absolute(target)) is not None):
        return Located(absolute(target))
    try:
        compilation = compiled(configuring(target), output)
    except ApplicationNotFound as missing:
        usual = f"{HOME}/{target}"
        instead = f"{missing.help}; or give the folder that it runs in, which holds a ledger"
        if holds_a_ledger(usual):
            instead = f"did you mean {printable(usual)}?"
        raise ApplicationNotFound(missing.problem, instead) from missing
    place = path or application_path(compilation)
    # A launch resolves a relative path from its working directory, which is often the folder of the application's file.
    beside = Path(target if Path(target).is_dir() else Path(target).parent) / place
    if not holds_a_ledger(place) and holds_a_ledger(str(beside)):
        raise ApplicationNotFound(
            f"{compilation.application} was launched in another folder: {printable(place)} does not exist here",
            f"did you mean {shlex.quote(str(beside))}?",
        )
    return Located(absolute(place), compilation)


def launched_here(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the beginning of an application's name, or of its folder below `HOME`; else that of a file's name.

    A shell inserts what it gets as it is, so a folder whose name needs quotes is left to the completion of files.
    """
    places = [place for place in folders_in(HOME) if shlex.quote(place) == place]
    matching = [place for place in places if place.startswith(incomplete)]
    matching += [place for place in places if incomplete and name_of(place).startswith(incomplete)]
    return list(map(CompletionItem, matching)) or [CompletionItem(incomplete, type="file")]


app_or_path = click.argument("target", metavar="APP|PATH", shell_complete=launched_here)
"""Add APP|PATH, which the command receives as `target`."""


def holds_applications(target: str) -> bool:
    """Whether the target is a folder that holds the folders of applications, and is not an application's itself."""
    is_folder = os.path.isdir(target)  # noqa: PTH112 - unlike Path, accepts names that no file can have
    return is_folder and not holds_a_ledger(target) and bool(launched_in(target))


def only_here(_: click.Context, parameter: click.Parameter, given: str | None) -> str:
    """The target, or the only application that was launched here if none is given."""
    if given is not None:
        return given
    found = launched_in(HOME)
    missing = f"Missing argument '{(parameter.metavar or '').strip('[]')}'"
    if not found:
        raise click.UsageError(f"{missing}: no application was launched here, below {HOME}.")
    if len(found) > 1:
        raise click.UsageError(f"{missing}; launched here: {', '.join(map(printable, found))}.")
    return found[0]


def _all_here(context: click.Context, parameter: click.Parameter, given: str | None) -> str:
    """As `only_here`, but the folder of all applications if several were launched here."""
    return HOME if given is None and len(launched_in(HOME)) > 1 else only_here(context, parameter, given)


def _one_or_several(target: str, path: str | None, configuring: Callable[[str], Asked], output: Output) -> Located:
    """As `located`, but take the target as it is if it is a folder that holds the folders of applications."""
    if path is None and holds_applications(target):
        return Located(absolute(target))
    return located(target, path, configuring, output)


def _argument_or(default: Callable[..., str]) -> Decorator:
    """APP|PATH, with the target that `default` returns if none is given."""
    return click.argument(
        "target", metavar="[APP|PATH]", required=False, callback=default, shell_complete=launched_here
    )


def _of(argument: Decorator, command: Command, locate: Callable[..., Located] = located) -> Command:
    @functools.wraps(command)
    def wrapped(
        *args: Any, target: str, path: str | None, configuring: Callable[[str], Asked], output: Output, **kwargs: Any
    ) -> Any:
        return command(*args, there=locate(target, path, configuring, output), output=output, **kwargs)

    option = click.option("--path", metavar="FOLDER", help="The application's folder, if APP is launched with --path.")
    return argument(option(configured(spoken(wrapped))))


def of_application(command: Command) -> Command:
    """Add APP|PATH and the options of an application; the command receives them as `there`."""
    return _of(app_or_path, command)


def of_application_or_only(command: Command) -> Command:
    """As `of_application`; without APP|PATH, the command works on the only application that was launched here."""
    return _of(_argument_or(only_here), command)


def of_one_or_several(command: Command) -> Command:
    """As `of_application`; the target may be a folder of applications, and without it, all launched here are meant."""
    return _of(_argument_or(_all_here), command, _one_or_several)


def ledger_of(there: Located) -> Ledger:
    """The ledger; an empty one if the application was never launched."""
    try:
        return Ledger.open(there.place)
    except ChainNotFound:
        if there.compilation is None:
            raise
        return Ledger(MemoryStore())


def refuse_unknown_operator(there: Located, operator: str | None, others: Iterable[str]) -> None:
    """Raise ApplicationNotFound unless the application, its last launch or `others` have the operator: it is misspelt.

    A list of what it has would be empty, as if nothing waited or was set aside.
    """
    if operator is None:
        return
    record = last_launch(ledger_of(there).store)
    plans = [record and record.authored, there.compilation and there.compilation.plan]
    known = {*others, *(planned.name for plan in plans if plan for planned in plan.operators)}
    if operator not in known:
        raise ApplicationNotFound(f"there is no operator {operator!r}", did_you_mean(operator, sorted(known)))
