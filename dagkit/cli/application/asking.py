"""Sends a request to a running application through its folder, and waits for the driver's answer."""

import math
import time
from datetime import UTC, datetime
from typing import Any

import rich_click as click

from dagkit.engine.parts.requests import (
    KEPT_FOR,
    Asks,
    NotRunning,
    Refused,
    Reply,
    Unanswered,
    ask,
    reply_to,
    withdraw,
)
from dagkit.engine.record.status_file import SeenRun
from dagkit.ground.clock import patient
from dagkit.ledger import Ledger

_PAUSE_SECONDS = 0.1
WAIT_SECONDS = 30.0
"""How long to wait for an answer by default: a window takes up to ten seconds."""

LONGEST_WAIT_SECONDS = KEPT_FOR.total_seconds()
"""The longest allowed wait: answers are deleted after this time."""


class Seconds(click.FloatRange):
    """A number of seconds in a range; refuses "nan", which every comparison with a bound would let pass."""

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
    default=lambda: patient(WAIT_SECONDS),
    help=f"How long to wait for the driver's answer; default {WAIT_SECONDS:g}, at most a day.",
)


def answered(place: str, asks: Asks, seconds: float) -> Reply:
    """Send the request and return the driver's answer; raise if it does not come in time or is a refusal.

    Raise NotRunning at once if the status of the last launch shows that its driver does not run.
    """
    store = Ledger.open(place).store
    seen = SeenRun.of(store)
    if seen is not None and not seen.runs:
        raise NotRunning(
            seen.snapshot.application, seen.state, "launch it and ask again, or change the property file that it reads"
        )
    request = ask(store, asks, datetime.now(UTC))
    until = time.monotonic() + seconds
    try:
        while (reply := reply_to(store, request)) is None and time.monotonic() < until:
            time.sleep(_PAUSE_SECONDS)
    except KeyboardInterrupt:
        withdraw(store, request)
        raise
    if reply is None:
        withdraw(store, request)
        reply = reply_to(store, request)  # the answer may have come in this moment
    if reply is None:
        raise Unanswered(place, seconds)
    if not reply.done:
        raise Refused.because(reply.refused or "the driver refused without a reason")
    return reply
