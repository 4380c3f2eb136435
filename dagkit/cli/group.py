"""All commands, in the order of `dagkit --help`, and the group that imports only the called one."""

import contextlib
import errno
import importlib
import logging
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import rich_click as click
from click.exceptions import Exit

from dagkit.cli.terminal.output import Interrupted, LastResort, Output, let_go, open_closed_streams, unwritable
from dagkit.errors import DagkitError, did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@dataclass(frozen=True, slots=True)
class Panel:
    """A heading of `dagkit --help`, and the package with its commands."""

    title: str
    package: str


RUNNING = Panel("Run an application", "running")
OPERATING = Panel("Follow a running application", "operating")
COMPILING = Panel("Compile an application", "compiling")
INSPECTING = Panel("Inspect what ran", "inspecting")
REFERENCE = Panel("Look things up", "reference")


@dataclass(frozen=True, slots=True)
class Command:
    """The name of a command, its purpose in one line, and its panel."""

    name: str
    purpose: str
    panel: Panel

    def load(self) -> click.Command:
        module = importlib.import_module(f"dagkit.cli.{self.panel.package}.{self.name}")
        command = getattr(module, self.name)
        assert isinstance(command, click.Command), f"{module.__name__} holds no command {self.name}"
        return command


COMMANDS: tuple[Command, ...] = (
    Command("launch", "Run an application; resume after the last window in its ledger.", RUNNING),
    Command("restart", "Make an application resume after an earlier window than its last.", RUNNING),
    Command("serve", "Keep Spark running, so that launches from this directory start at once.", RUNNING),
    Command("console", "Serve a page about an application, running or finished.", RUNNING),
    Command("new", "Make an application that reads what you have, or an example.", RUNNING),
    Command("set", "Change a property while its application runs.", RUNNING),
    Command("ls", "List the applications in a folder, with their states.", OPERATING),
    Command("status", "Show what an application does now, or how its last launch ended.", OPERATING),
    Command("top", "Show the figures of a running application, renewed each second.", OPERATING),
    Command("tap", "Show items that pass on a stream of a running application.", OPERATING),
    Command("logs", "Print the log of an application's drivers, and follow it.", OPERATING),
    Command("stop", "Stop a running application after its windows in flight.", OPERATING),
    Command("kill", "Kill the process of a running application.", OPERATING),
    Command("validate", "Check an application and its configuration, and report every fault.", COMPILING),
    Command("plan", "Show how an application will run, and why.", COMPILING),
    Command("explain", "Show the steps from the application to its plan.", COMPILING),
    Command("graph", "Draw an application.", COMPILING),
    Command("diff", "Show what changes between two applications or plans.", COMPILING),
    Command("ledger", "Read and verify the ledger of an application.", INSPECTING),
    Command("scale", "Explain how many partitions operators have, and try other settings.", INSPECTING),
    Command("splits", "Show where work was split while it was read, and why.", INSPECTING),
    Command("items", "Show how many items operators received and sent, and whether they add up.", INSPECTING),
    Command("files", "List the input files of an application, and explain what became of each.", INSPECTING),
    Command("work", "List the work that is not done; give it up, or retry what was set aside.", INSPECTING),
    Command("trace", "Find the input from which a line of an output file was made.", INSPECTING),
    Command("replay", "Run a window again with the present code, and compare what it writes.", INSPECTING),
    Command("doctor", "Check what dagkit needs on this machine, and say what to do.", REFERENCE),
    Command("config", "Show the configuration of an application, and where it comes from.", REFERENCE),
    Command("describe", "Show an operator's ports and properties, or list all operators.", REFERENCE),
    Command("completion", "Print the script for shell completion.", REFERENCE),
)


_OWN: Mapping[str, Command] = {command.name: command for command in COMMANDS}

ALIASES: Mapping[str, str] = {
    "run": "launch",
    "start": "launch",
    "list-apps": "ls",
    "get-app-info": "status",
    "shutdown-app": "stop",
    "kill-app": "kill",
    "set-operator-property": "set",
    "show-logical-plan": "graph",
    "show-physical-plan": "plan",
}
"""Other names of commands: the usual ones, and those of Apex."""


COMMAND_GROUP = "dagkit.commands"
"""The entry-point group in which other distributions name click commands. Those of dagkit go first."""


def _installed() -> "Mapping[str, EntryPoint]":
    """The commands of other distributions. Looking for them takes longer than importing a command of dagkit."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - see above

    return {point.name: point for point in entry_points(group=COMMAND_GROUP) if not _is_own(point.name)}


def _loaded(point: "EntryPoint") -> click.Command:
    command = point.load()
    if not isinstance(command, click.Command):
        raise click.ClickException(f"the entry point {point.name!r} names {point.value}, which is no command of click")
    return command


class CommandGroup(click.RichGroup):
    """Imports a command's module when the command is called, and exits on a `DagkitError` with its exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [*_OWN, *sorted(_installed())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = _OWN.get(ALIASES.get(cmd_name, cmd_name))
        if command is None:
            point = _installed().get(cmd_name)
            if point is None or not _is_listing(ctx):
                return None if point is None else _loaded(point)
            return click.Command(cmd_name, help=f"A command of {point.dist.name if point.dist else point.value}.")
        return click.Command(command.name, help=command.purpose) if _is_listing(ctx) else command.load()

    def format_help(self, ctx: Any, formatter: Any) -> None:
        ctx.meta[_LISTING] = True  # the list needs only names and purposes: import no module for it
        super().format_help(ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name == "help" and name not in _installed():
            if len(args) == 1:
                click.echo(self.get_help(ctx))
                ctx.exit()
            args, name = [*args[1:], "--help"], args[1]
        # Shell completion parses unfinished command lines, and must not fail at them.
        if not ctx.resilient_parsing and not name.startswith("-") and not _is_own(name) and name not in _installed():
            known = [*self.list_commands(ctx), *ALIASES]
            ctx.fail(f"there is no command {name!r}; {did_you_mean(name, known)}")
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        open_closed_streams()
        try:
            with _written():  # prints the list of commands and the version
                return super().make_context(*args, **kwargs)
        except click.UsageError as wrong:
            raise Exit(Output().usage(wrong)) from wrong

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # click finds wrong usage before the command has an Output
        ctx.meta[_AS_JSON] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _written():
                return super().invoke(ctx)
        except DagkitError as failure:
            assert isinstance(ctx.obj, Output), "the group makes an Output before any command runs"
            ctx.exit(ctx.obj.failure(failure))
        except KeyboardInterrupt:
            # there is no Output yet while the command is imported
            ctx.exit((ctx.obj or Output(as_json=ctx.meta[_AS_JSON])).failure(Interrupted()))
        except click.UsageError as wrong:
            ctx.exit(Output(as_json=ctx.meta[_AS_JSON]).usage(wrong))


_LISTING = "dagkit.listing"
_AS_JSON = "dagkit.as_json"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextlib.contextmanager
def _written() -> Iterator[None]:
    """Handle a full disk and a closed pipe for what click prints itself, such as help, as for results."""
    try:
        try:
            yield
        finally:
            # Python would flush at its end, where a failure becomes a traceback and the exit code 120.
            sys.stdout.flush()
    except OSError as refused:
        if refused.errno not in _FULL and refused.errno != errno.EPIPE:
            raise
        let_go(sys.stdout)
        code = 0 if refused.errno == errno.EPIPE else Output().failure(unwritable(refused))
        raise Exit(code) from refused


def _is_own(name: str) -> bool:
    """Whether dagkit itself has a command of this name."""
    return name in ALIASES or name in _OWN


def _is_listing(ctx: click.Context | None) -> bool:
    return ctx is not None and bool(ctx.meta.get(_LISTING))


def _panels() -> list[dict[str, Any]]:
    names = dict.fromkeys(command.panel for command in COMMANDS)
    return [
        {"name": panel.title, "commands": [command.name for command in COMMANDS if command.panel == panel]}
        for panel in names
    ]


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click's signature
    if wanted and not ctx.resilient_parsing:
        from dagkit.cli.application.about import about  # noqa: PLC0415 - it searches for libraries, which takes time

        for line in about():
            click.echo(line)
        ctx.exit()


_STYLE = {
    "theme": "cargo-slim",
    "style_errors_panel_box": "BLANK",
    "command_groups": {"dagkit": _panels()},
    "text_markup": "markdown",
}


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "rich_help_config": _STYLE})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show what is installed."
)
@click.pass_context
def main(ctx: click.Context) -> None:
    """Check, plan, draw, compare and run streaming applications.

    APP is a file, a folder with `app.py`, `module:Class` or `file.py:Class`, or a `.json` or `.properties` file that
    declares an application. Results go to stdout, messages to stderr.
    """
    ctx.obj = Output()
    logging.lastResort = LastResort()
