"""The options that commands share, as decorators, and their values; groups of commands with a default."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import rich_click as click

from dagkit.cli.terminal.output import Output
from dagkit.errors import near

Command = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """The requested application, with its configuration from the command line."""

    target: str
    application: str | None = None
    defines: tuple[tuple[str, str], ...] = ()
    files: tuple[str, ...] = ()
    apconf: str | None = None
    allow_unknown: bool = False


def definitions(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Each `key=value`; the value may hold further equals signs, and may be empty."""
    pairs = []
    for text in given:
        key, equals, value = text.partition("=")
        if not key.strip() or not equals:
            raise click.BadParameter(f"{text!r} does not have the form key=value")
        pairs.append((key.strip(), value))
    return tuple(pairs)


def _spark_pairs(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Each `key=value`, where each key is one of Spark's."""
    pairs = definitions(ctx, parameter, given)
    foreign = [name for name, _ in pairs if not name.startswith("spark.")]
    if foreign:
        raise click.UsageError(f"--spark {foreign[0]}: the names of Spark's settings begin with 'spark.'")
    return pairs


def spark_settings(command: Command) -> Command:
    """Decorate a command with `--spark KEY=VALUE`: it gets the pairs as `settings`."""
    option = click.option(
        "--spark",
        "settings",
        metavar="KEY=VALUE",
        callback=_spark_pairs,
        multiple=True,
        help="A setting of Spark; overrides `spark-defaults.conf`.",
    )
    return option(command)


_CONFIGURING = (
    click.option(
        "--app",
        "application",
        metavar="NAME",
        help="Which application to use, if the file defines several (name or part of it).",
    ),
    click.option(
        "-D",
        "defines",
        metavar="KEY=VALUE",
        callback=definitions,
        multiple=True,
        help="Set a key; overrides every file.",
    ),
    click.option(
        "-c",
        "--conf",
        "files",
        metavar="FILE",
        type=click.Path(),
        multiple=True,
        help="Read a property file; later files override earlier ones.",
    ),
    click.option("--apconf", metavar="NAME", help="Read this file of the application's own `conf` folder."),
    click.option("--allow-unknown", is_flag=True, help="Ignore keys that match nothing."),
)

_SPEAKING = (
    click.option("--json", "as_json", is_flag=True, help="Print the result as a JSON document with its schema."),
    click.option("-q", "--quiet", is_flag=True, help="Print only results and errors."),
    click.option("-v", "--verbose", is_flag=True, help="Print more."),
)


def configured(command: Command) -> Command:
    """Add the options that configure; the command receives them as `configuring`, a function of the target."""

    @functools.wraps(command)
    def wrapped(
        *args: Any,
        application: str | None,
        defines: tuple[tuple[str, str], ...],
        files: tuple[str, ...],
        apconf: str | None,
        allow_unknown: bool,
        **kwargs: Any,
    ) -> Any:
        def configuring(target: str) -> Asked:
            return Asked(target, application, defines, files, apconf, allow_unknown)

        return command(*args, configuring=configuring, **kwargs)

    return _decorated(wrapped, _CONFIGURING)


def application(command: Command) -> Command:
    """Add APP and the options that configure; the command receives them as one value `asked`."""

    @functools.wraps(command)
    def wrapped(*args: Any, target: str, configuring: Callable[[str], Asked], **kwargs: Any) -> Any:
        return command(*args, asked=configuring(target), **kwargs)

    return click.argument("target", metavar="APP", type=click.Path())(configured(wrapped))


def spoken(command: Command) -> Command:
    """Add `--json`, `-q` and `-v`; the command receives them as one value `output`."""

    @click.pass_context
    @functools.wraps(command)
    def wrapped(ctx: click.Context, /, *args: Any, as_json: bool, quiet: bool, verbose: bool, **kwargs: Any) -> Any:
        output = Output(as_json, int(verbose) - int(quiet))
        # The group prints the failures of this command, in the form that its options request.
        ctx.find_root().obj = output
        return command(*args, output=output, **kwargs)

    return _decorated(wrapped, _SPEAKING)


def _decorated(command: Command, options: tuple[Callable[[Command], Command], ...]) -> Command:
    # Reversed, because click lists the option that was added last first.
    return functools.reduce(lambda decorated, option: option(decorated), reversed(options), command)


class WholeNumber(click.IntRange):
    """A whole number within bounds. Click calls it an integer range in its message about another value."""

    name = "whole number"


class DefaultGroup(click.RichGroup):
    """Calls the command `default` if the first argument is no command and no misspelling of one."""

    def __init__(self, *args: Any, default: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = args[0] if args else ""
        if first and not first.startswith("-") and first not in self.commands and near(first, self.commands) is None:
            args = [self.default, *args]
        return super().parse_args(ctx, args)
