"""The option that says how long a command waits for the driver's answer."""

import math
from typing import Any

import rich_click as click

from dagkit.engine.parts.requests import KEPT_FOR
from dagkit.ground.clock import patient

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
