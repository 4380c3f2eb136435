"""The options of commands that send a request to the driver, and the request itself."""

import math
from datetime import UTC, datetime
from typing import Any

import rich_click as click

from dagkit.engine.parts.asking import answered
from dagkit.engine.parts.requests import KEPT_FOR, Asks, ask
from dagkit.ground.clock import patient
from dagkit.ledger import Ledger

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

at_launch_allowed = click.option(
    "--at-launch", is_flag=True, help="Do not wait for an answer: if no driver runs, the next launch does it."
)


def left_or_answered(place: str, asks: Asks, seconds: float, *, at_launch: bool) -> dict[str, Any]:
    """Leave the request in the application's folder, or also wait for the answer; return the ID, or the window."""
    if at_launch:
        return {"request": ask(Ledger.open(place).store, asks, datetime.now(UTC)).id}
    return {"window": answered(place, asks, seconds).window}
