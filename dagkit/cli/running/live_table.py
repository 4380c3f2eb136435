"""The figures of a launch on a terminal, renewed in place below its messages until it ends."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dagkit.cli.terminal.output import Output, is_terminal
from dagkit.engine.record.snapshot import RunSnapshot
from dagkit.errors import printable
from dagkit.observers.run_text import own_picture

if TYPE_CHECKING:
    from rich.text import Text


def has_live_table(output: Output, backend: str) -> bool:
    """Whether a launch shows it: not if asked for lines, nor on the reference, where operators may be debugged."""
    shows = output.report is None and output.verbosity == 0 and not output.as_json
    return shows and backend != "reference" and is_terminal(sys.stderr) and os.environ.get("TERM", "dumb") != "dumb"


@contextmanager
def live_table(snapshot: Callable[[], RunSnapshot]) -> Iterator[None]:
    """Show the figures, those of `dagkit top`, while this lasts; what is printed meanwhile appears above them."""
    from rich.console import Console  # noqa: PLC0415 - only on terminals, and while Spark starts
    from rich.live import Live  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    def drawn() -> "Text":
        return Text(printable(own_picture(snapshot()), keep="\n"), no_wrap=True)

    with Live(
        get_renderable=drawn,
        console=Console(stderr=True),
        refresh_per_second=1,
        transient=True,
        redirect_stdout=is_terminal(sys.stdout),
    ):
        yield
