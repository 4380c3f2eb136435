"""`dagkit work`: the work of an application that is not done, and requests to give it up or to retry it."""

import re
from collections.abc import Sequence
from typing import Any

import rich_click as click

from dagkit.cli.application.answer_wait import at_launch_allowed, left_or_answered, waiting
from dagkit.cli.application.located import (
    Located,
    ledger_of,
    of_application,
    of_application_or_only,
    refuse_unknown_operator,
)
from dagkit.cli.application.options import DefaultGroup
from dagkit.cli.terminal.output import Output
from dagkit.engine.parts.requests import GiveUp, OnWork, Retry
from dagkit.engine.record.status_file import this_process
from dagkit.engine.record.work_history import ListedWork, listed_work
from dagkit.errors import printable
from dagkit.ground.amounts import counted
from dagkit.ground.urls import absolute, as_text

_RANGE = re.compile(r"(?P<name>.+)\[(?P<start>[0-9]+), ?(?P<end>inf|[0-9]+)\)", re.DOTALL)
_SHARES = re.compile(r".+\[[0-9.]+ %, (?:inf|[0-9.]+ %)\)", re.DOTALL)
of_operator = click.option("--operator", metavar="NAME", help="Only the work of this operator.")


@click.group(cls=DefaultGroup, default="ls")
def work() -> None:
    """List the work of an application that is not done; give it up, or retry what was set aside.

    PLACE is an element as `dagkit work ls` lists it: a name, such as a path, for all of its work, or a name with a
    range, as in 'in/a.txt[0, 100)'.
    """


@work.command()
@of_application_or_only
@of_operator
def ls(*, there: Located, output: Output, operator: str | None) -> None:
    """List work that waits, that was set aside, and that was given up. The application may be running."""
    found = list(listed_work(ledger_of(there)))
    refuse_unknown_operator(there, operator, (item.operator for item in found))
    listed = [item for item in found if operator in (None, item.operator)]
    if output.as_json:
        output.document("dagkit.work/1", {"work": [item.as_json() for item in listed]})
        return
    if listed:
        output.result("\n".join(map(_line, listed)))
    output.message(counted(len(listed), "range") if listed else "no work waits, was set aside or was given up")


@work.command(name="give-up")
@of_application
@click.argument("place", metavar="PLACE")
@of_operator
@click.option("--reason", metavar="TEXT", default="", help="Why, for the ledger.")
@at_launch_allowed
@waiting
def give_up(
    *,
    there: Located,
    output: Output,
    place: str,
    operator: str | None,
    reason: str,
    at_launch: bool,
    seconds: float,
) -> None:
    """Give up work for good: no launch reads it again, and the ledger records the decision, its reason and the user.

    The driver of the running application does it between two windows. If every launch stops at this work, use
    --at-launch, then launch.
    """
    asks = GiveUp(**_asked(place), operator=operator, reason=reason, by=this_process().user)
    _request(there, output, asks, f"{place} is given up", at_launch=at_launch, seconds=seconds)


@work.command()
@of_application
@click.argument("place", metavar="[PLACE]", required=False)
@of_operator
@at_launch_allowed
@waiting
def retry(
    *, there: Located, output: Output, place: str | None, operator: str | None, at_launch: bool, seconds: float
) -> None:
    """Put work that was set aside back into the queue: all of it, or only the work at PLACE."""
    asks = Retry(**({} if place is None else _asked(place)), operator=operator, by=this_process().user)
    done = f"{'all work that was set aside' if place is None else place} waits again"
    _request(there, output, asks, done, at_launch=at_launch, seconds=seconds)


def _request(there: Located, output: Output, asks: OnWork, done: str, *, at_launch: bool, seconds: float) -> None:
    reply = left_or_answered(there.place, asks, seconds, at_launch=at_launch)
    if output.as_json:
        body = {"ask": asks.ask, "names": list(asks.names), "start": asks.start, "end": asks.end}
        output.document("dagkit.work-request/1", body | reply)
    else:
        output.result(printable(f"{done} between two windows, or when the next launch begins" if at_launch else done))


def _asked(place: str) -> dict[str, Any]:
    """The names that an element may have in the ledger, and the range; a path is also named as an absolute one."""
    if _SHARES.fullmatch(place):
        raise click.UsageError("work that is listed in percent has no positions: leave out the range")
    ranged = _RANGE.fullmatch(place)
    name, start, end = (place, "0", "inf") if ranged is None else (ranged["name"], ranged["start"], ranged["end"])
    names = tuple(dict.fromkeys(map(as_text, (name, absolute(name)))))
    return {"names": names, "start": int(start), "end": None if end == "inf" else int(end)}


def _line(item: ListedWork) -> str:
    notes: Sequence[str] = [
        *([f"in window {item.window}"] if item.window is not None else []),
        *([f"by {item.by}"] if item.by else []),
        *([item.reason] if item.reason else []),
    ]
    noted = f": {printable(', '.join(notes))}" if notes else ""
    return f"{item.state:<9}  {printable(item.operator)}  {printable(str(item.place))}{noted}"
