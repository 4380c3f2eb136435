"""The figures of a run as text, for terminals and notebooks."""

import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from importlib import import_module
from typing import Any

from dagkit.api.stats import by_unit
from dagkit.engine.record.run_events import Ended, Failed, RunEvent, SlotAtWork
from dagkit.engine.record.run_picture import RunPicture
from dagkit.engine.record.snapshot import Backlog, OperatorFigures, RunError, RunSnapshot
from dagkit.engine.record.status_file import SeenRun
from dagkit.errors import printable
from dagkit.ground.amounts import (
    aligned,
    counted,
    in_time,
    in_units,
    part_done,
    what_was_read,
    what_was_written,
    with_amounts,
)
from dagkit.observers.run_health import remarks

_HEADER = ("operator", "partitions", "received/s", "sent/s", "read/s", "received", "sent", "pending", "busy", "skew")
_MOST_NAMED = 3
_SPREAD = 0.2
"""An estimate shows its bounds if they differ by more than this share of it."""


def picture(seen: SeenRun, *, partitions: bool = False) -> str:
    """All figures as text, and those of partitions if asked; after a restart, what the next launch does."""
    if seen.state == "restarted":
        return _restarted(seen.snapshot)
    shares = _partitions(seen.snapshot) if partitions else ""
    return "\n\n".join([f"{_headline(seen)}\n{_figures(seen)}", *([shares] if shares else [])])


def own_picture(now: RunSnapshot) -> str:
    """The same for the terminal or notebook that launched it: without its process; at the start, only the step."""
    status, launch = now.status, now.launch
    if status.state == "starting":
        ago = in_time((status.at - launch.since).total_seconds())
        return f"{launch.application}: {status.step or status.state}, launched {ago} ago"
    return _figures(SeenRun(now, "here", status.at))


def _figures(seen: SeenRun) -> str:
    return "\n".join([*_summary(seen), "", aligned([_HEADER, *map(_row, seen.snapshot.operators)], to_right=True)])


def _partitions(now: RunSnapshot) -> str:
    """The busiest partitions of each operator as a table; empty if no operator has more than one."""
    rows = [
        (printable(each.name), str(share.partition), f"{share.busy:.0%}", f"{share.taken:.0%}")
        for each in now.operators
        for share in each.rates.by_partition
    ]
    header = ("operator", "partition", "of its busy time", "of what it received or read")
    return aligned([header, *rows], to_right=True) if rows else ""


def _restarted(now: RunSnapshot) -> str:
    launch, status = now.launch, now.status
    return (
        f"{launch.application}: restarted {status.at.astimezone():%Y-%m-%d %H:%M:%S}, and not launched since; "
        f"the next launch resumes after window {now.windows.window}"
    )


def _headline(seen: SeenRun) -> str:
    """The process, its host, and when it was launched."""
    launch, driver = seen.launch, seen.launch.driver
    return (
        f"{launch.application}: {seen.step}; process {driver.pid} of {driver.user} on {driver.host}, {launch.master}, "
        f"launched {launch.since.astimezone():%Y-%m-%d %H:%M:%S}"
    )


def _summary(seen: SeenRun) -> Iterator[str]:
    """The lines above the table."""
    now = seen.snapshot
    yield _windows(seen)
    yield f"this launch: {figures_of(now)}"
    if seen.runs and now.to_do:
        yield f"reading: {reading(now)}"
    elif now.backlog.pending_elements:
        yield f"pending: {with_amounts(counted(now.backlog.pending_elements, 'element'), now.pending)}"
    if seen.runs or now.status.is_over:
        yield from (f"waiting: {printable(sentence)}" for sentence in now.expected.waits_for)
    yield from _work(seen)
    yield from map(str, remarks(now, runs=seen.runs))
    if seen.presence in ("gone", "silent"):
        yield from _departure(seen)
    if now.expected.visible_at is not None and seen.runs:
        yield visibility(now.expected.visible_at, seen.at)
    if now.error is not None:
        yield _last_error(now.error)
        yield from (f"help: {printable(line)}" for line in now.error.help.splitlines()[:1])
    if seen.launch.command and seen.state in ("failed", "killed"):
        yield f"to launch it again: {printable(seen.launch.command)}"


def _last_error(error: RunError) -> str:
    """The first line of the last error, with its window unless it names that, and the author's line."""
    first, _, rest = error.message.partition("\n")
    within = f"in window {error.window}"
    window = "" if error.window is None or within in first else f" {within}"
    raised = f", raised at {printable(error.raised_at)}" if error.raised_at else ""
    more = "; `dagkit logs` prints the rest" if rest else ""
    return f"last error, {error.at.astimezone():%H:%M:%S}{window}: {printable(first)}{raised}{more}"


def _work(seen: SeenRun) -> Iterator[str]:
    """The elements that slots process, or that the last window did not finish."""
    now = seen.snapshot
    if seen.runs:
        yield from (f"at work: {text}" for text in slots_at_work(now.windows.working, seen.at))
    for operator in () if seen.runs and now.windows.working else now.operators:
        for work in operator.backlog.underway[:_MOST_NAMED]:
            share = "" if work.fraction is None else f" {part_done(work.fraction)}"
            yield f"under way: {operator.name} {printable(work.source)}{share}"


def reading(now: RunSnapshot) -> str:
    """How far a launch has come: `212.4 MB of 495.0 MB (43%), 9.3 MB/s, about 20 s left (16 s to 25 s)`."""
    done = now.done
    whole = by_unit((*now.read.items(), *now.to_do.items()))
    text = f"{in_units(done or dict.fromkeys(whole, 0))} of {in_units(whole)}"
    if now.unsent:
        return f"{text}, and {counted(now.unsent, 'element')} more found"
    if len(whole) == 1:  # amounts of several units have no sum
        text += f" ({part_done(sum(done.values()) / sum(whole.values()))})"
        rate = now.backlog.positions_per_second
        text += f", {in_units(dict.fromkeys(whole, rate))}/s" if rate else ""
    return text + time_left(now.backlog)


def time_left(backlog: Backlog) -> str:
    """How long all pending work takes: `, about 20 s left (16 s to 25 s)`; empty if that is unknown."""
    seconds, least, most = backlog.eta_seconds, backlog.eta_least_seconds, backlog.eta_most_seconds
    if seconds is None or least is None or most is None:
        return ""
    spread = f" ({in_time(least)} to {in_time(most)})" if most - least > max(1.0, _SPREAD * seconds) else ""
    return f", about {in_time(seconds)} left{spread}"


def slots_at_work(working: Sequence[SlotAtWork], at: datetime) -> Iterator[str]:
    """A text for each operator, as of `at`: `Reader a.txt 40% for 12 s, b.txt for 3 s`, what takes longest first."""
    for operator in dict.fromkeys(work.operator for work in working):
        its = [work for work in working if work.operator == operator]
        named = ", ".join(_at_work(work, at) for work in its[:_MOST_NAMED])
        yield f"{printable(operator)} {named}{', and more' if len(its) > _MOST_NAMED else ''}"


def _at_work(work: SlotAtWork, at: datetime) -> str:
    share = "" if work.fraction is None else f" {part_done(work.fraction)}"
    return f"{printable(work.source):.60}{share} for {in_time((at - work.since).total_seconds())}"


def _departure(seen: SeenRun) -> Iterator[str]:
    """Since when a driver that did not write its end is gone, and what to do."""
    launch, driver = seen.launch, seen.launch.driver
    after = f"resumes after window {seen.window}" if seen.window else "begins again"
    ago = in_time((seen.at - seen.last_sign).total_seconds())
    yield f"not running: its last sign of life is of {seen.last_sign.astimezone():%Y-%m-%d %H:%M:%S}, {ago} ago"
    if seen.presence == "gone":
        yield f"its process ended without stopping; the next launch {after}, and no record is lost"
        yield f"help: launch it again; `dagkit logs {shlex.quote(launch.application_path)}` prints what it logged last"
    else:
        yield f"process {driver.pid} may be cut off from the folder, and still run on {driver.host}"
        yield f"help: end it there if it runs, and launch again: the next launch {after}, and no record is lost"


def visibility(visible: datetime, now: datetime) -> str:
    """When the next file becomes visible: a driver looks at the time between windows, and one may last longer."""
    if visible <= now:
        return "the next file becomes visible with the next window"
    return f"the next file becomes visible at {visible.astimezone():%H:%M:%S}"


def incomplete_files(count: int, once: str) -> str:
    """That so many output files are not complete; empty for none. `once` asks a launch to process all input."""
    if not count:
        return ""
    are, them = ("is", "it") if count == 1 else ("are", "them")
    return (
        f"{counted(count, 'file')} {are} not complete, so not visible; the next launch continues {them}, and one with "
        f"{once} completes {them}"
    )


def figures_of(now: RunSnapshot) -> str:
    """What a launch has done so far, in a part of a sentence."""
    totals = now.totals
    if now.status.state == "stopped" and not totals.windows:
        known = "no input found" if not now.expected.waits_for else "no input read"
        return f"no new input since window {now.windows.window}" if now.windows.window else known
    rate = f", {in_units(now.read_per_second)}/s" if now.read_per_second else ""
    written = what_was_written(totals.written, totals.files)
    return f"{counted(totals.windows, 'window')}, {what_was_read(now.read, totals.items_found)}{rate}, {written}"


def _windows(seen: SeenRun) -> str:
    windows = seen.snapshot.windows
    if seen.last is not None and seen.last.window > windows.window:
        done = f"window {seen.window} committed {in_time((seen.at - seen.last.committed).total_seconds())} ago"
    elif windows.committed_at is None:
        after = windows.resumed_after
        done = f"resumed after window {after}" if after else "no window is committed yet"
    else:
        ago = in_time((seen.at - windows.committed_at).total_seconds())
        done = f"window {windows.window} committed {ago} ago (block {windows.block} of the ledger)"
    running = [
        f"window {window.window} runs for {in_time((seen.at - window.since).total_seconds())}"
        for window in windows.in_flight
        if seen.runs
    ]
    return "; ".join([done, *running])


def _row(operator: OperatorFigures) -> tuple[str, ...]:
    wanted = "" if operator.wanted == operator.partitions else f" → {operator.wanted}"
    rates, backlog = operator.rates, operator.backlog
    return (
        printable(operator.name),
        f"{operator.partitions}{wanted}",
        _rate(rates.received_per_second),
        _rate(rates.sent_per_second),
        in_units({operator.unit: rates.positions_per_second}) if operator.positions else "-",
        f"{operator.received:,}",
        f"{operator.sent:,}",
        f"{backlog.elements:,}" if backlog.pending else "-",
        f"{rates.busy:.0%}",
        "-" if rates.skew is None else f"{rates.skew:.1f} ({rates.by_partition[0].partition})",
    )


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}" if per_second >= 10 or per_second == 0 else f"{per_second:.1f}"


_SECONDS_BETWEEN = 1.0
"""The shortest time between two updates."""


class LiveFigures:
    """An observer that shows the figures of its run: those of `dagkit top`."""

    def __init__(
        self, run: RunPicture, show: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._run = run
        self._show = show
        self._clock = clock
        self._due = clock()

    def __call__(self, event: RunEvent) -> None:
        now = self._clock()
        if now >= self._due or isinstance(event, Ended | Failed):
            self._due = now + _SECONDS_BETWEEN
            self._show(own_picture(self._run.snapshot()))


def in_notebook(run: RunPicture) -> Iterator[LiveFigures]:
    """Yield an observer if this is the kernel of a notebook. IPython is not imported unless it runs."""
    # the thread that starts Spark may be importing IPython now, which then has not got this function yet
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = None if get_ipython is None else get_ipython()
    if getattr(shell, "kernel", None) is None:
        return
    display = import_module("IPython.display").display
    shown: list[Any] = []

    def show(text: str) -> None:
        if shown:
            shown[0].update({"text/plain": text}, raw=True)
        else:
            shown.append(display({"text/plain": text}, raw=True, display_id=True))

    yield LiveFigures(run, show)
