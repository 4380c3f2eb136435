"""Asking an application that runs elsewhere: a request is left in its folder, and its driver's answer is waited for."""

import math
import time
from datetime import UTC, datetime
from typing import Any

import rich_click as click

from dagkit.engine.changes.requests import (
    KEPT_FOR,
    Refused,
    Reply,
    SetCount,
    SetValue,
    Unanswered,
    ask,
    reply_to,
    withdraw,
)
from dagkit.ledger import Ledger

_PAUSE_SECONDS = 0.1
WAIT_SECONDS = 30.0
"""How long an answer is waited for where nobody says otherwise: a window takes up to ten seconds."""

LONGEST_WAIT_SECONDS = KEPT_FOR.total_seconds()
"""Answers are kept for as long as this: whoever waits longer may miss one."""


class Seconds(click.FloatRange):
    """A number of seconds in a range; "nan", which is below and above nothing, is in none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        seconds = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value!r} is not a number of seconds.", param, ctx)
        return seconds


waiting = click.option(
    "--wait",
    "seconds",
    metavar="SECONDS",
    type=Seconds(min=0, max=LONGEST_WAIT_SECONDS),
    default=WAIT_SECONDS,
    help=f"How long to wait for the driver's answer; {WAIT_SECONDS:g} by default, a day at most.",
)


def answered(place: str, asks: SetValue | SetCount, seconds: float) -> Reply:
    """What became of what is asked for. Raises where nobody answers in time, and where it was refused."""
    store = Ledger.open(place).store
    request = ask(store, asks, datetime.now(UTC))
    until = time.monotonic() + seconds
    while (reply := reply_to(store, request)) is None and time.monotonic() < until:
        time.sleep(_PAUSE_SECONDS)
    if reply is None:
        withdraw(store, request)
        reply = reply_to(store, request)  # it may have come in that very moment
    if reply is None:
        raise Unanswered(place, seconds)
    if not reply.done:
        raise Refused.because(reply.refused or "the driver refused, and gave no reason")
    return reply
