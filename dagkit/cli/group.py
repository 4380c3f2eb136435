"""Every verb, in the order in which `dagkit --help` lists them, and the group that imports only the one asked for."""

import contextlib
import errno
import importlib
import importlib.util
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import rich_click as click
from click.exceptions import Exit

from dagkit.cli.terminal.output import Interrupted, LastResort, Output, let_go, unwritable
from dagkit.errors import DagkitError, did_you_mean


@dataclass(frozen=True, slots=True)
class Panel:
    """Commands that `dagkit --help` lists together, and the package that holds their modules."""

    title: str
    package: str


RUNNING = Panel("Run an application", "running")
COMPILING = Panel("Compile an application", "compiling")
INSPECTING = Panel("Inspect what ran", "inspecting")
REFERENCE = Panel("Look things up", "reference")


@dataclass(frozen=True, slots=True)
class Verb:
    """A command by its name, what it is for in one line, and the module that holds it."""

    name: str
    purpose: str
    panel: Panel

    @property
    def module(self) -> str:
        return f"dagkit.cli.{self.panel.package}.{self.name}"

    @property
    def exists(self) -> bool:
        return importlib.util.find_spec(self.module) is not None

    def load(self) -> click.Command:
        command = getattr(importlib.import_module(self.module), self.name)
        assert isinstance(command, click.Command), f"{self.module} holds no command {self.name}"
        return command


VERBS: tuple[Verb, ...] = (
    Verb("launch", "Run an application, from where its ledger says that it stopped.", RUNNING),
    Verb("set", "Give a property another value while its application runs.", RUNNING),
    Verb("validate", "Check an application and its configuration, and report every fault.", COMPILING),
    Verb("plan", "Show how an application will run, and why so.", COMPILING),
    Verb("explain", "Show the steps from what the author drew to the plan.", COMPILING),
    Verb("graph", "Draw an application.", COMPILING),
    Verb("diff", "Say what changes between two applications or plans.", COMPILING),
    Verb("ledger", "Read and verify the ledger of an application.", INSPECTING),
    Verb("scale", "Explain how many partitions operators have, and try other settings.", INSPECTING),
    Verb("splits", "Show where work was divided while it was read, and why.", INSPECTING),
    Verb("config", "Show the configuration that an application gets, and where it comes from.", REFERENCE),
    Verb("describe", "Show an operator's ports and properties, or list what there is.", REFERENCE),
    Verb("completion", "Print the script that lets a shell complete dagkit's words.", REFERENCE),
)


class VerbGroup(click.RichGroup):
    """Imports a verb's module when the verb is called, and answers a `DagkitError` with its own exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [verb.name for verb in VERBS if verb.exists]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = next((verb for verb in VERBS if verb.name == cmd_name and verb.exists), None)
        if verb is None:
            return None
        return click.Command(verb.name, help=verb.purpose) if _is_listing(ctx) else verb.load()

    def format_help(self, ctx: Any, formatter: Any) -> None:
        ctx.meta[_LISTING] = True  # the list of verbs needs their names and purposes, not their modules
        super().format_help(ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"there is no verb {name!r}; {did_you_mean(name, known)}")
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _written():  # here the list of verbs and the version are printed
            return super().make_context(*args, **kwargs)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[_AS_JSON] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _written():
                return super().invoke(ctx)
        except DagkitError as failure:
            assert isinstance(ctx.obj, Output), "the group makes an Output before any verb runs"
            ctx.exit(ctx.obj.failure(failure))
        except KeyboardInterrupt:
            # there is no Output yet while the verb is imported
            ctx.exit((ctx.obj or Output(as_json=ctx.meta[_AS_JSON])).failure(Interrupted()))
        except click.UsageError as wrong:
            if ctx.meta[_AS_JSON]:
                Output(as_json=True).usage(wrong)
            raise


_LISTING = "dagkit.listing"
_AS_JSON = "dagkit.as_json"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextlib.contextmanager
def _written() -> Iterator[None]:
    """What click prints itself, such as help, meets a full disk and a closed pipe as results do."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as refused:
        if refused.errno not in _FULL and refused.errno != errno.EPIPE:
            raise
        let_go(sys.stdout)
        code = 0 if refused.errno == errno.EPIPE else Output().failure(unwritable(refused))
        raise Exit(code) from refused


def _is_listing(ctx: click.Context | None) -> bool:
    return ctx is not None and bool(ctx.meta.get(_LISTING))


def _panels() -> list[dict[str, Any]]:
    names = dict.fromkeys(verb.panel for verb in VERBS)
    return [{"name": panel.title, "commands": [verb.name for verb in VERBS if verb.panel == panel]} for panel in names]


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click's signature
    if wanted and not ctx.resilient_parsing:
        from dagkit.cli.application.about import about  # noqa: PLC0415 - it looks for libraries, and nobody else waits for that

        for line in about():
            click.echo(line)
        ctx.exit()


_STYLE = {
    "theme": "cargo-slim",
    "style_errors_panel_box": "BLANK",
    "command_groups": {"dagkit": _panels()},
    "text_markup": "markdown",
}


@click.group(cls=VerbGroup, context_settings={"help_option_names": ["-h", "--help"], "rich_help_config": _STYLE})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show what is installed."
)
@click.pass_context
def main(ctx: click.Context) -> None:
    """Check, plan, draw, compare and run streaming applications.

    APP is a file, a folder with `app.py`, `module:Class` or `file.py:Class`; a `.json` or `.properties` file may
    declare one, too. Results go to stdout, messages to stderr.
    """
    ctx.obj = Output()
    logging.lastResort = LastResort()
