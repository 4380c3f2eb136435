"""Sends a request to a running application through its folder, and waits for the driver's answer."""

import time
from datetime import UTC, datetime

from dagkit.engine.parts.requests import Asks, NotRunning, Refused, Reply, Unanswered, ask, reply_to, withdraw
from dagkit.engine.record.status_file import SeenRun
from dagkit.ledger import Ledger

_PAUSE_SECONDS = 0.1


def answered(place: str, asks: Asks, seconds: float) -> Reply:
    """Send the request and return the driver's answer; raise if it does not come in time or is a refusal.

    Raise NotRunning at once if the status of the last launch shows that its driver does not run.
    """
    store = Ledger.open(place).store
    seen = SeenRun.of(store)
    if seen is not None and not seen.runs:
        raise NotRunning(
            seen.launch.application, seen.state, "launch it and ask again, or change the property file that it reads"
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
