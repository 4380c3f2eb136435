"""Requests of `dagkit work`: give work up for good, or retry work that was set aside."""

import getpass
import os
import re
from datetime import UTC, datetime
from typing import Any

import rich_click as click

from dagkit.cli.application.answer_wait import waiting
from dagkit.cli.application.located import Located, of_application
from dagkit.cli.terminal.output import Output
from dagkit.engine.parts.asking import answered
from dagkit.engine.parts.requests import GiveUp, OnWork, Retry, ask
from dagkit.errors import printable
from dagkit.ground.urls import absolute
from dagkit.ledger import Ledger

_RANGE = re.compile(r"(?P<name>.+)\[(?P<start>[0-9]+), ?(?P<end>inf|[0-9]+)\)", re.DOTALL)
_SHARES = re.compile(r".+\[[0-9.]+ %, (?:inf|[0-9.]+ %)\)", re.DOTALL)
_AT_LAUNCH = click.option(
    "--at-launch", is_flag=True, help="Do not wait for an answer: if no driver runs, the next launch does it."
)
of_operator = click.option("--operator", metavar="NAME", help="Only the work of this operator.")


@click.command(name="give-up")
@of_application
@click.argument("place", metavar="PLACE")
@of_operator
@click.option("--reason", metavar="TEXT", default="", help="Why, for the ledger.")
@_AT_LAUNCH
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
    asks = GiveUp(**_asked(place), operator=operator, reason=reason, by=this_user())
    _request(there, output, asks, f"{place} is given up", at_launch=at_launch, seconds=seconds)


@click.command()
@of_application
@click.argument("place", metavar="[PLACE]", required=False)
@of_operator
@_AT_LAUNCH
@waiting
def retry(
    *, there: Located, output: Output, place: str | None, operator: str | None, at_launch: bool, seconds: float
) -> None:
    """Put work that was set aside back into the queue: all of it, or only the work at PLACE."""
    asks = Retry(**({} if place is None else _asked(place)), operator=operator, by=this_user())
    done = f"{'all work that was set aside' if place is None else place} waits again"
    _request(there, output, asks, done, at_launch=at_launch, seconds=seconds)


def _request(there: Located, output: Output, asks: OnWork, done: str, *, at_launch: bool, seconds: float) -> None:
    body: dict[str, Any] = {"ask": asks.ask, "names": list(asks.names), "start": asks.start, "end": asks.end}
    if at_launch:
        request = ask(Ledger.open(there.place).store, asks, datetime.now(UTC))
        body["request"] = request.id
        done = f"{done} between two windows, or when the next launch begins"
    else:
        body["window"] = answered(there.place, asks, seconds).window
    if output.as_json:
        output.document("dagkit.work-request/1", body)
    else:
        output.result(printable(done))


def this_user() -> str:
    """The name of the user, or the number of one without a name, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def _asked(place: str) -> dict[str, Any]:
    """The names that an element may have in the ledger, and the range; a path is also named as an absolute one."""
    if _SHARES.fullmatch(place):
        raise click.UsageError("work that is listed in percent has no positions: leave out the range")
    found = _RANGE.fullmatch(place)
    name, start, end = (place, "0", "inf") if found is None else (found["name"], found["start"], found["end"])
    names = tuple(dict.fromkeys((name, absolute(name))))
    return {"names": names, "start": int(start), "end": None if end == "inf" else int(end)}
