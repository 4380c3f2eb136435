"""`dagkit top`: the figures of a running application, renewed each second."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import rich_click as click

from dagkit.cli.application.located import Located, of_application_or_only
from dagkit.cli.application.options import WholeNumber
from dagkit.cli.operating.run_views import document, seen_at, with_partitions
from dagkit.cli.terminal.output import Output, is_terminal
from dagkit.engine.record.status_file import SeenRun
from dagkit.errors import printable
from dagkit.observers.run_text import picture


@click.command()
@of_application_or_only
@click.option("--every", metavar="SECONDS", type=click.FloatRange(min=0.2), default=1.0, help="Default 1.")
@click.option("--count", metavar="N", type=WholeNumber(min=1), help="End after showing the figures N times.")
@with_partitions
def top(
    *,
    there: Located,
    every: float,
    count: int | None,
    partitions: bool,
    output: Output,
) -> None:
    """Show the figures of a running application until it ends, renewed in place on a terminal.

    Elsewhere, print them again and again, below each other. An interrupt ends this command, not the application.
    """
    place = there.place
    shown = 0
    with _showing(output, partial(picture, partitions=partitions)) as show:
        while True:
            seen = seen_at(place)
            show(seen)
            shown += 1
            if shown == count or not seen.runs:
                return
            time.sleep(every)


@contextmanager
def _showing(output: Output, text: Callable[[SeenRun], str]) -> Iterator[Callable[[SeenRun], None]]:
    """A function that shows the figures: in place on a terminal, else as blocks of text, or as documents."""
    if output.as_json:
        yield lambda seen: output.document("dagkit.status/1", document(seen))
    elif not is_terminal(sys.stdout):
        yield lambda seen: output.result(f"{text(seen)}\n")
    else:
        from rich.live import Live  # noqa: PLC0415 - only on terminals
        from rich.text import Text  # noqa: PLC0415 - as above

        with Live(auto_refresh=False) as live:
            yield lambda seen: live.update(Text(printable(text(seen), keep="\n"), no_wrap=True), refresh=True)
