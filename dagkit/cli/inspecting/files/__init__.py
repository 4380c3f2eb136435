"""`dagkit files`: the input files of an application, and what becomes of each."""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import rich_click as click

from dagkit.api.files import READ_BEFORE
from dagkit.cli.application.answer_wait import at_launch_allowed, left_or_answered, waiting
from dagkit.cli.application.located import (
    Located,
    ledger_of,
    of_application,
    of_application_or_only,
    refuse_unknown_operator,
)
from dagkit.cli.application.options import DefaultGroup, WholeNumber
from dagkit.cli.terminal.output import Output
from dagkit.engine.parts.requests import ForgetFile
from dagkit.errors import printable
from dagkit.ground.amounts import counted
from dagkit.ground.patterns import is_whole, refusal
from dagkit.ground.urls import absolute, as_text, shown
from dagkit.ledger import Ledger
from dagkit.runs.inventory.listing import ListedFile, State, listed, recorded, states, states_at
from dagkit.runs.inventory.readings import Reading, WindowRead, readings, readings_of

_STATES: tuple[State, ...] = get_args(State)
_AT_ONCE = 1000
"""The lines that are printed at once."""
_NAMED = 5
"""The most files that a message names."""
_MOST = 1000
"""The most files in a list for people: after these, no further files are examined."""


@click.group(cls=DefaultGroup, default="ls")
def files() -> None:
    """List the input files of an application, explain one, or let it be read again.

    With APP, its operators decide what they would do with each file that exists; with its folder, only the records of
    the ledger are known. The application may be running.
    """


# A second argument is accepted here, so that the message can name the command that was meant.
@files.command(context_settings={"allow_extra_args": True})
@of_application_or_only
@click.option("--state", "wanted", type=click.Choice(_STATES), multiple=True, help="Only this state; repeatable.")
@click.option("--operator", metavar="NAME", help="Only the files of this operator.")
@click.option("--like", metavar="PATTERN", help="Only paths that this pattern matches whole.")
@click.option(
    "--limit",
    metavar="N",
    type=WholeNumber(min=0),
    help=f"At most N files; 0: all. Default: {_MOST}, and all with --json.",
)
def ls(
    *,
    there: Located,
    output: Output,
    wanted: tuple[State, ...],
    operator: str | None,
    like: str | None,
    limit: int | None,
) -> None:
    """List input files with their states: new, pending, waiting, read, quarantined, given-up, ignored or gone."""
    context: Any = click.get_current_context()
    if extra := context.args:
        instead = f"`dagkit files explain APP|PATH {extra[0]}` shows what became of a file, and --like lists some"
        raise click.UsageError(f"it lists the files of one application, and got {printable(extra[0])!r} too: {instead}")
    why_not = None if like is None else refusal(like)
    if why_not is not None:
        raise click.UsageError(f"--like is no regular expression: {why_not}")
    ledger = ledger_of(there)
    refuse_unknown_operator(there, operator, ledger.names())
    chosen = (
        file
        for file in _files_of(there, ledger)
        if (not wanted or file.state in wanted)
        and operator in (None, file.finder)
        and (like is None or is_whole(like, file.path))
    )
    if output.as_json:
        output.long_document("dagkit.files/1", "files", map(asdict, islice(chosen, limit or None)))
        return
    count, changed, here = 0, 0, f"{Path.cwd()}/"
    most = _MOST if limit is None else limit
    listing = islice(chosen, most or None)
    while some := list(islice(listing, _AT_ONCE)):
        count += len(some)
        changed += sum(file.reason == READ_BEFORE for file in some)
        output.result("\n".join(_line(file, here) for file in some))
    again = f", {changed} of which were read before and are read again as a whole" if changed else ""
    output.message(counted(count, "file") + again)
    if count == most and next(chosen, None) is not None:
        output.message("there are more; --limit 0 lists all")
    if there.compilation is None:
        output.message("the ledger does not name files that were not read; give the application to list them, too")


@files.command()
@of_application
@click.argument("file", metavar="FILE")
def explain(*, there: Located, output: Output, file: str) -> None:
    """Show what became of a file: its state and rule, its blocks, the windows that read it, and their output files.

    FILE is a path, or the end of the path of one file that the application knows, such as its name.
    """
    path, ledger = as_text(absolute(file)), ledger_of(there)
    now, read = _known_of(there, ledger, path)
    if not (now or read):
        path = _only_path_ending_in(file, there, ledger) or path
        now, read = _known_of(there, ledger, path)
    if output.as_json:
        states_now = [{"finder": file.finder, "state": file.state, "reason": file.reason} for file in now]
        body = {"path": path, "now": states_now, "readings": [asdict(reading) for reading in read]}
        output.document("dagkit.file/1", body)
        return
    described = [f"{file.finder}: {file.state}{_because(file.reason)}" for file in now]
    if there.compilation is not None and not now:
        described = ["no operator finds a file there now"]
    if not read:
        described.append("the ledger does not name it")
    output.result("\n".join([_shown(path), *described, *_lines_of(read)]))


def _files_of(there: Located, ledger: Ledger) -> Iterator[ListedFile]:
    """All files with their present states, or those that the ledger names if the application is not given."""
    return recorded(ledger) if there.compilation is None else listed(there.compilation, ledger)


def _known_of(there: Located, ledger: Ledger, path: str) -> tuple[list[ListedFile], list[Reading]]:
    """The present states of a file, and all readings of it."""
    if there.compilation is None:
        return [], readings(ledger, path)
    return states_at(there.compilation, ledger, path), readings_of(there.compilation, ledger, path)


def _only_path_ending_in(file: str, there: Located, ledger: Ledger) -> str | None:
    """The path of the only known file that ends so; None if there is none. Raise UsageError if there are several."""
    ending = f"/{as_text(file).removeprefix('./')}"
    paths = list(dict.fromkeys(each.path for each in _files_of(there, ledger) if each.path.endswith(ending)))
    if len(paths) > 1:
        more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
        raise click.UsageError(
            f"{counted(len(paths), 'file')} end in {printable(ending)}: {', '.join(map(_shown, paths[:_NAMED]))}{more}"
        )
    return paths[0] if paths else None


def _line(file: ListedFile, here: str) -> str:
    place = shown(file.path).removeprefix(here)
    return f"{file.state:<11}  {printable(file.finder)}  {place}{_because(file.reason)}"


def _shown(path: str) -> str:
    """A path, relative to the working directory if it is below that."""
    return shown(path).removeprefix(f"{Path.cwd()}/")


def _because(reason: str) -> str:
    return f": {printable(reason)}" if reason else ""


def _lines_of(read: list[Reading]) -> Iterator[str]:
    for number, reading in enumerate(read, start=1):
        yield f"reading {number}: {printable(reading.source)}"
        if reading.found is not None:
            at = f"{reading.found:%Y-%m-%dT%H:%M:%SZ}"
            by = f" by {printable(reading.finder)}" if reading.finder else ""
            where = f"window {reading.found_in[0]}" if reading.found_in else f"entry {reading.found_by} of its chain"
            yield f"  found{by} at {at}, in {where}"
        yield (
            f"  given to window {reading.taken_by}"
            if reading.taken_by
            else "  no committed window has taken it yet; one that runs may read it"
        )
        for block in reading.blocks:
            yield f"  block {block.number}: bytes {block.start}-{'' if block.end is None else block.end}"
        for window in reading.windows:
            yield f"  window {window.window}: {_done(window)}"
            others = "" if window.bytes is None or window.items is not None else ", as for other files that it read"
            yield from (f"    which wrote to {_shown(output)}{others}" for output in window.outputs)
        if reading.pending is None:
            yield "  work without an end waits"
        elif reading.pending:
            yield f"  {counted(reading.pending, 'byte')} {'waits' if reading.pending == 1 else 'wait'}"
        if reading.unread:
            yield f"  {counted(reading.unread, 'byte')} set aside or given up, and not read"


def _done(window: WindowRead) -> str:
    if window.bytes is None:
        return f"{window.operator} passed it on"
    sent = "" if window.items is None else f" and sent {counted(window.items, 'item')}"
    return f"{window.operator} read {counted(window.bytes, 'byte')}{sent}"


@files.command()
@of_application
@click.argument("file", metavar="FILE")
@click.option("--operator", metavar="NAME", help="Which operator is to forget it, if several know it.")
@at_launch_allowed
@waiting
def forget(*, there: Located, output: Output, file: str, operator: str | None, at_launch: bool, seconds: float) -> None:
    """Let a file be read again by the next scan, whole and on purpose: its records are in the output twice then.

    The driver of the running application does it between two windows; without one, use --at-launch.
    """
    path = as_text(absolute(file))
    asks = ForgetFile(operator=operator or _finder_of(there, Ledger.open(there.place), path), path=path)
    reply = left_or_answered(there.place, asks, seconds, at_launch=at_launch)
    if output.as_json:
        # "window" is a text in this document, unlike in others
        fields = {name: str(value) for name, value in reply.items()}
        output.document("dagkit.forget/1", {"operator": asks.operator, "path": path, **fields})
    elif at_launch:
        output.result(f"{asks.operator} forgets {shown(path)} between two windows, or when the next launch begins")
    else:
        done = f"{asks.operator} has forgotten {shown(path)}"
        output.result(f"{done}: its next scan finds it, and its records are read again")


def _finder_of(there: Located, ledger: Ledger, path: str) -> str:
    """The only operator that knows a file."""
    finders = {reading.finder for reading in readings(ledger, path) if reading.finder}
    if there.compilation is not None:
        finders = {name for name, state in states(there.compilation, ledger, path=path) if state.state == "seen"}
    if len(finders) != 1:
        known = f"{' and '.join(sorted(finders))} know" if finders else "no operator is known to know"
        raise click.UsageError(f"{known} {shown(path)}; name one with --operator")
    return finders.pop()
