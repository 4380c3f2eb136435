"""The progress of a launch, as lines or as a table, and its summary, as `dagkit launch` prints them."""

import os
import shlex
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dagkit.api.stats import WorkProgress, by_unit
from dagkit.cli.terminal.output import Output, is_terminal, shown_place, shown_value
from dagkit.engine.program.facts import Changed, Scaled
from dagkit.engine.record.run_events import (
    Committed,
    Draining,
    Ended,
    Found,
    Measured,
    PlanDiffers,
    Reshaped,
    Resumed,
    RunEvent,
    SlotAtWork,
    Started,
    Starting,
    Working,
)
from dagkit.engine.record.snapshot import RunSnapshot
from dagkit.errors import printable
from dagkit.ground.amounts import (
    counted,
    in_bytes,
    in_units,
    part_done,
    some_of,
    what_was_read,
    what_was_written,
    with_amounts,
)
from dagkit.ground.urls import is_url, local_path, shown
from dagkit.launching import Launched
from dagkit.observers.run_health import busiest, remarks
from dagkit.observers.run_text import (
    incomplete_files,
    own_picture,
    reading,
    slots_at_work,
    time_left,
    visibility,
)

if TYPE_CHECKING:
    from rich.text import Text


MOST_PRINTED = 3
"""How much a line of progress or of the summary names."""
MOST_CHANGES = 8
"""How many differences from the last launch are printed."""
_SECONDS_BETWEEN = 2.0
"""The shortest time between two lines of progress."""
_SECONDS_WITHOUT_WINDOW = 10.0
"""After this time without a committed window, a line names what slots process."""


@dataclass
class Totals:
    """Totals over all windows of a launch."""

    windows: int = 0
    has_begun: bool = False
    """Whether a window began, which may have been abandoned."""
    read: int = 0
    amounts: Mapping[str, int] = field(default_factory=dict)
    """The positions that were read, by their unit."""
    items: int = 0
    """How many items input operators sent."""
    written: int = 0
    files: int = 0
    millis: float = 0.0
    underway: Mapping[str, Sequence[WorkProgress]] = field(default_factory=dict)
    """The work that the last window began and did not finish, by operator."""


class Progress:
    """Prints the progress of a launch, at most one window in two seconds."""

    def __init__(
        self,
        output: Output,
        searched: Mapping[str, Sequence[str]],
        receivers: Mapping[str, Collection[str]],
        *,
        has_table: bool = False,
    ) -> None:
        """Take what each operator searches for files, and the operators to which it sends items.

        If the terminal has a table of the run, no lines are printed about what it shows.
        """
        self._has_table = has_table
        self._receivers = receivers
        self.output = output
        self.totals = Totals()
        self._without_files = dict(searched)
        """The operators that have found no file yet, with what they search."""
        self._began = time.monotonic()
        self._printed = self._began
        self._visible: datetime | None = None
        """When the next file becomes visible, as last printed."""
        self._snapshot: Callable[[], RunSnapshot] | None = None
        """The figures of the run, while it is watched."""

    @contextmanager
    def watch(self, snapshot: Callable[[], RunSnapshot]) -> Iterator[None]:
        """Within the block, print the estimates of these figures."""
        self._snapshot = snapshot
        yield

    def __call__(self, event: RunEvent) -> None:
        match event:
            case Starting() | PlanDiffers() | Resumed() | Started():
                self._note_start(event)
            case Found():
                self._note_found(event)
            case Measured():
                self._note_sent(event)
            case Reshaped(fact=Scaled() as fact):
                self.output.message(f"{fact.operator}: {counted(fact.after, 'partition')} (before: {fact.before})")
            case Reshaped(fact=Changed() as fact):
                after, before = shown_value(fact.after), shown_value(fact.before)
                self.output.message(f"{fact.operator}.{fact.name} is {after} (before: {before})")
            case Committed(visible=visible):
                self._count(event)
                self._announce(visible)
            case Working(work=work) if not self._has_table:
                self._note_work(work)
            case Draining():
                self.output.message("stopping: the windows in flight end first; a second interrupt stops at once")
            case Ended():
                self.totals.millis = (time.monotonic() - self._began) * 1000

    def summary(self, launched: Launched) -> str:
        """The summary of the launch: two lines, and lines for operators that found no file, left out input or wrote.

        One more states that files are not complete.
        """
        totals, seconds = self.totals, self.totals.millis / 1000
        status = launched.status
        left = () if status is None else status.expected.waits_for
        if not totals.windows:
            known = "no window was committed" if totals.has_begun else "no input read" if left else "no input found"
            done = (
                f"no new input since window {launched.window_id}"
                if launched.window_id and not totals.has_begun
                else known
            )
        else:
            speed = {unit: count / seconds for unit, count in totals.amounts.items()} if seconds else {}
            rate = f", {in_units(speed)}/s" if speed else ""
            done = (
                f"{counted(totals.windows, 'window')}, {what_was_read(totals.amounts, totals.items)}, "
                f"{what_was_written(totals.written, totals.files)} in {seconds:.1f} s{rate}{_underway(totals.underway)}"
            )
        place = shlex.quote(shown_place(launched.application_path))
        nothing = [
            _found_nothing(name, searched)
            for name, searched in self._without_files.items()
            if not any(reason.startswith(f"{name}: ") for reason in left)
        ]
        things = [] if status is None else map(str, remarks(status, runs=False))
        written = _written(launched.outputs) if totals.files or launched.incomplete else []
        if launched.incomplete:
            written.append(incomplete_files(launched.incomplete, "--once"))
        return "\n".join(
            [
                f"{launched.application}: {done}",
                *nothing,
                *things,
                *(f"left to the next launch: {printable(reason)}" for reason in left),
                *written,
                f"ledger: dagkit ledger show {place}",
            ]
        )

    def _note_start(self, event: Starting | PlanDiffers | Resumed | Started) -> None:
        """Print a step of the start, or note that a window has begun."""
        match event:
            case Starting(step=step):
                self.output.message(step)
            case Started():
                self.totals.has_begun = True
            case PlanDiffers():
                self.output.message(_differences(event))
            case Resumed(window_id=0, application=application):
                self.output.message(f"{application}: starting")
            case Resumed(application=application, window_id=window_id, waiting=waiting):
                self._without_files.clear()  # an earlier launch may have found files
                pending = f"; {counted(waiting, 'element')} pending" if waiting else ""
                self.output.message(f"{application}: resuming after window {window_id}{pending}")

    def _note_found(self, found: Found) -> None:
        """Note what an input operator found."""
        self.totals.items += found.items
        if found.blocks or found.items:
            self._without_files.pop(found.operator, None)
        if found.blocks:
            self.output.detail(f"{found.operator}: found {counted(found.blocks, 'block')}, {in_units(found.amounts)}")

    def _note_sent(self, measured: Measured) -> None:
        """Note which operators in the graph found files: those whose receivers got items.

        Spark does not count what a splittable operator sends to another one in its stage.
        """
        for name in list(self._without_files):
            got = [
                stats for receiver in self._receivers.get(name, ()) for stats in measured.operators.get(receiver, ())
            ]
            if any(port.tuple_count for stats in got for port in stats.input_ports):
                del self._without_files[name]

    def _announce(self, visible: datetime | None) -> None:
        """Print when the next file becomes visible; not again before that time, unless no file was open meanwhile."""
        now = datetime.now(UTC)
        if visible is None or self._visible is None or self._visible <= now:
            self._visible = visible
            if visible is not None and not self._has_table:
                self.output.message(visibility(visible, now))

    def _note_work(self, working: Sequence[SlotAtWork]) -> None:
        """Print what slots process, if no line came for a long time: a window may take long, and it prints none."""
        if self.output.verbose or time.monotonic() - self._printed >= _SECONDS_WITHOUT_WINDOW:
            self._printed = time.monotonic()
            now = None if self._snapshot is None else self._snapshot()
            if now is not None and now.to_do:
                self.output.message(f"reading: {reading(now)}")
            if working:
                self.output.message(f"at work: {'; '.join(slots_at_work(working, datetime.now(UTC)))}")

    def _count(self, committed: Committed) -> None:
        totals, now = self.totals, time.monotonic()
        totals.windows += 1
        totals.read += committed.positions
        totals.amounts = by_unit((*totals.amounts.items(), *committed.read.items()))
        totals.written += committed.written
        totals.files += committed.files
        totals.underway = committed.underway
        if self._has_table:
            return
        waiting = with_amounts(f"{counted(committed.waiting, 'element')} pending", committed.pending)
        snapshot = None if self._snapshot is None else self._snapshot()
        left = "" if snapshot is None else time_left(snapshot.backlog)
        busy = f"; busiest: {busiest(snapshot.busiest)}" if snapshot is not None and snapshot.busiest else ""
        pending = f"; {waiting}{left}"
        line = (
            f"window {committed.window_id}: {_done(committed)} in {committed.millis / 1000:.1f} s"
            f"{pending if committed.waiting else ''}{_underway(committed.underway)}{busy}"
        )
        if self.output.verbose or now - self._printed >= _SECONDS_BETWEEN:
            self._printed = now
            self.output.message(line)


def _differences(event: PlanDiffers) -> str:
    """How the application differs from its last launch, and what that means."""
    lines = [printable(change) for change in event.changes[:MOST_CHANGES]]
    if len(event.changes) > MOST_CHANGES:
        lines.append(f"and {counted(len(event.changes) - MOST_CHANGES, 'more change')}")
    return "\n  ".join(
        [
            f"the application differs from its last launch, {event.last_launch.astimezone():%Y-%m-%d %H:%M:%S}:",
            *lines,
            f"it resumes after window {event.window_id}: input that was processed is not processed again",
            (
                "help: --fresh processes all input again and keeps the earlier run; for another application set "
                "APPLICATION_NAME or --path"
            ),
        ]
    )


def _done(committed: Committed) -> str:
    """What a window did. One without input runs for what is due: a file, a watermark, or deferred work."""
    if committed.received == 0 and not committed.positions and not committed.written:
        due = f"{counted(committed.files, 'file')} completed" if committed.files else "only work that was due"
        return f"no input, {due}"
    read = what_was_read(committed.read, committed.received or 0, of_items="handled")
    return f"{read}, {in_bytes(committed.written)} written"


def _underway(underway: Mapping[str, Sequence[WorkProgress]]) -> str:
    """How far unfinished work has come: `; under way: Count a 40%`. Work without an end is left out."""
    works = [
        f"{name} {printable(work.source):.60} {part_done(work.fraction)}"
        for name, of_operator in underway.items()
        for work in of_operator
        if work.fraction is not None
    ]
    return f"; under way: {', '.join(some_of(works, MOST_PRINTED))}" if works else ""


def _written(outputs: Mapping[str, Sequence[str]]) -> list[str]:
    """A line for each operator that writes files, with their place."""
    named = [
        f"{shown_place(place)} ({name}){'' if is_url(place) or Path(local_path(place)).exists() else ', no file yet'}"
        for name, places in outputs.items()
        for place in places
    ]
    return [f"output: {line}" for line in some_of(named, MOST_PRINTED, more="more folders")]


def _found_nothing(operator: str, searched: Sequence[str]) -> str:
    """A line about an operator that found no file. The patterns that other operators send are not known here."""
    places = ", ".join(some_of(searched, MOST_PRINTED, text=shown))
    return f"{operator}: found no file to read{f' in {places}' if places else ''}"


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
        # rich would print on stderr, above the table, what operators print into a file or a pipe
        redirect_stdout=is_terminal(sys.stdout),
    ):
        yield
