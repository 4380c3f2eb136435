"""`dagkit tap`: show items that pass on a stream of a running application."""

from collections.abc import Sequence

import rich_click as click

from dagkit.cli.application.located import Located, of_application
from dagkit.cli.application.options import WholeNumber
from dagkit.cli.operating.run_views import seen_at
from dagkit.cli.terminal.output import Output
from dagkit.engine.parts.asking import answered
from dagkit.engine.parts.requests import NotRunning, ShownItem, TapStream, Unanswered
from dagkit.errors import printable
from dagkit.ground.clock import patient

_WAIT_SECONDS = 20.0
"""How long to wait for a window with items before the request is renewed."""
_AT_ONCE = 10
"""How many items a window shows at most."""


@click.command()
@of_application
@click.argument("stream", metavar="STREAM")
@click.option("--limit", metavar="N", type=WholeNumber(min=1), help="End after N items.")
@click.option(
    "--sample", metavar="N", type=WholeNumber(min=1), default=1, help="Only every Nth item; default: each one."
)
def tap(
    *,
    there: Located,
    stream: str,
    limit: int | None,
    sample: int,
    output: Output,
) -> None:
    """Show items that pass on STREAM: the name of a stream, or the operator or `operator.port` that feeds it.

    Each window shows its first items, once it is committed. An interrupt ends this command, not the application, which
    takes samples only while this command runs.
    """
    place, left = there.place, limit
    seen = seen_at(place)
    if not seen.runs:
        instead = "launch it, and ask again; `dagkit ledger show` and `dagkit items` show what earlier launches did"
        raise NotRunning(seen.launch.application, seen.state, instead)
    try:
        while left is None or left > 0:
            most = _AT_ONCE if left is None else min(left, _AT_ONCE)
            try:
                reply = answered(place, TapStream(stream=stream, most=most, every=sample), patient(_WAIT_SECONDS))
            except NotRunning:
                output.message("the application has ended")
                return
            # No window with items came in time, and `answered` has withdrawn the request: make another one.
            except Unanswered:
                continue
            _show(reply.window or 0, reply.items, output)
            left = None if left is None else left - len(reply.items)
    except KeyboardInterrupt:
        return


def _show(window: int, items: Sequence[ShownItem], output: Output) -> None:
    if output.as_json:
        output.document("dagkit.tap/1", {"window": window, "items": [item.model_dump() for item in items]})
        return
    for item in items:
        at = f" from {item.place}" if item.place else ""
        output.result(printable(f"window {window}, {item.operator}: {item.item}{at}"))
