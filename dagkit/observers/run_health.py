"""Remarks on a run, or on how it ended, in sentences for terminals and the console."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dagkit.api.operators import DROPPED, REJECTED
from dagkit.engine.record.snapshot import InputActivity, OperatorFigures, Rejections, RunningWindow, RunSnapshot
from dagkit.errors import printable
from dagkit.ground.amounts import in_time, in_units

_SPREAD = 0.2
_LONG_SECONDS = 60.0
"""Pending work that takes less time is no backlog that grows, and an input that had nothing for less is not silent."""
_FEW = 0.01
"""A smaller share of rejected records needs no one at once: they are kept."""
_UNUSUAL = 3
"""An input is unusually silent for so many times its longest pause."""
_UNSENT = {REJECTED: "rejected", DROPPED: "dropped"}
"""What became of records that were not sent, by the output or metric that counts them."""
_SAFE = "no record is lost: input stays where it is until the window that reads it is committed"


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence without its end, since when it holds, and its details."""

    text: str
    since: datetime | None = None
    details: str = ""
    warns: bool = True
    view: str = ""
    """The view of the console that shows more."""

    def __str__(self) -> str:
        since = "" if self.since is None else f", since {self.since.astimezone():%Y-%m-%d %H:%M:%S}"
        return f"{self.text}{since}{f'; {self.details}' if self.details else ''}"


def remarks(now: RunSnapshot, *, runs: bool) -> Iterator[Remark]:
    """What the figures of a run show: a backlog that grows, silent inputs, records that are missing in the output."""
    if runs and now.status.state == "draining":
        yield from (_last_window(window, now) for window in now.windows.in_flight)
    # A launch that starts has no rates yet, and its inputs have not looked.
    if runs and now.status.state != "starting":
        yield from _speed(now)
        if now.expected.waits_for or _is_slow(now):
            yield Remark(_SAFE, warns=False)
        yield from (_silence(each, now) for each in now.expected.inputs if _silent_seconds(each, now) >= _LONG_SECONDS)
    if now.backlog.set_aside:
        count, last = now.backlog.set_aside, printable(now.backlog.last_aside)
        which = f"last: {last}; `dagkit work` lists all" if last else "`dagkit work` shows why"
        yield Remark(f"{count:,} set aside, and not processed", details=which, view="work")
    rejections, metrics = {each.name: each.rejections for each in now.operators}, now.metrics
    for name, counts in metrics.left_out.items():
        unsent = (f"{count:,} {_UNSENT.get(metric, f'left out ({metric})')}" for metric, count in counts.items())
        more = (_lately if runs else _last)(rejections.get(name)) if REJECTED in counts else {}
        if len(counts) > 1:  # what was left out besides is in no other place
            more = {**more, "warns": True}
        yield Remark(f"{printable(name)}: {', '.join(unsent)}", **more, view="work" if REJECTED in counts else "")
    for name, counts in metrics.read_again.items():
        again = (f"{count:,} read again as a whole ({metric})" for metric, count in counts.items())
        yield Remark(f"{printable(name)}: {', '.join(again)}")


def _is_slow(now: RunSnapshot) -> bool:
    windows = now.windows
    return windows.slow_millis is not None or windows.overdue(now.status.at) is not None


def _usual(now: RunSnapshot) -> str:
    """How long windows took before one that is slow."""
    seconds = (now.windows.usual_millis or 0.0) / 1000
    return f"windows took {in_time(seconds) if seconds >= 1 else f'{seconds:.1g} s'} before; " if seconds else ""


def _speed(now: RunSnapshot) -> Iterator[Remark]:
    """Whether the backlog grows, and the operator that takes most of the time while work waits."""
    windows = now.windows
    if window := windows.overdue(now.status.at):
        ran = in_time((now.status.at - window.since).total_seconds())
        # Figures come with the report of a window: those of an operator that became slow in it are not there yet.
        stale = "until it ends, rates and the busiest operator are those of the window before"
        if window.shares:
            operator, share = max(window.shares.items(), key=lambda item: item[1])
            stale = f"{printable(operator)} takes {share:.0%} of its time; {stale}"
        elif now.busiest is not None:
            stale = f"busiest in the window before: {busiest(now.busiest)}"
        text = f"window {window.window:,} has run for {ran}"
        yield Remark(text, window.since, f"{_usual(now)}{stale}", view="windows")
        return
    if windows.slow_millis is not None:
        took = f"window {windows.window:,} took {in_time(windows.slow_millis / 1000)}"
        worked = "" if now.busiest is None else f"busiest: {busiest(now.busiest)}"
        yield Remark(took, None, f"{_usual(now)}{worked}".removesuffix("; "), view="windows")
        return
    most = "" if now.busiest is None else f"busiest: {busiest(now.busiest)}"
    backlog, seconds = now.backlog, now.backlog.eta_seconds or 0.0
    # A run looks for input when little waits, so its backlog falls to nothing between two finds while it doubles from
    # find to find: only `grows_since` shows that it falls behind.
    if backlog.grows_since is not None and seconds >= _LONG_SECONDS:
        waits = f"{in_units(now.to_do)} wait, about {in_time(seconds)} of work"
        details = f"{waits}, and more each time{f'; {most}' if most else ''}"
        yield Remark("falling behind", backlog.grows_since, details, view="graph")
    elif most:
        yield Remark(most, warns=False, view="graph")


def _last_window(window: RunningWindow, now: RunSnapshot) -> Remark:
    """What a run that was asked to stop waits for."""
    ran = in_time((now.status.at - window.since).total_seconds())
    at_once = "a second signal ends it at once, and the next launch runs it again"
    return Remark(f"stops after window {window.window:,}, which has run for {ran}", None, at_once, warns=False)


def busiest(operator: OperatorFigures) -> str:
    """How busy an operator is: `Parse 41%, partition 3 for 1.8 times the mean`."""
    rates = operator.rates
    skewed = rates.skew is not None and rates.skew > 1 + _SPREAD
    leads = f", partition {rates.by_partition[0].partition} for {rates.skew:.1f} times the mean" if skewed else ""
    return f"{printable(operator.name)} {rates.busy:.0%}{leads}"


def _silent_seconds(activity: InputActivity, now: RunSnapshot) -> float:
    """For how long an input has had nothing. While a window runs, inputs need not look, so its time does not count."""
    until = min((window.since for window in now.windows.in_flight), default=now.status.at)
    return (until - (activity.at or now.launch.since)).total_seconds()


def _silence(activity: InputActivity, now: RunSnapshot) -> Remark:
    name, seconds, longest = (
        printable(activity.operator),
        _silent_seconds(activity, now),
        activity.longest_pause_seconds,
    )
    if activity.at is None:
        return Remark(f"nothing from {name} in this launch, for {in_time(seconds)}", now.launch.since, warns=False)
    usual = f"the longest pause before was {in_time(longest)}" if longest else ""
    unusual = bool(longest) and seconds > _UNUSUAL * longest
    return Remark(f"nothing new from {name} for {in_time(seconds)}", activity.at, usual, warns=unusual)


def _last(rejections: Rejections | None) -> dict[str, Any]:
    """The record that an operator rejected last, with the reason: all of them may have the same one."""
    if rejections is None or not rejections.rejected_records:
        return {}
    last = rejections.rejected_records[-1]
    return {"details": f"last: {f'{last.place}: ' if last.place else ''}{last.record}"}


def _lately(rejections: Rejections | None) -> dict[str, Any]:
    """Since when an operator rejects records, and how many of the last ones."""
    if rejections is None:
        return {}
    share = rejections.rejected_share
    shown = "none" if not share else f"{share:.0%}" if share >= _FEW else f"less than {_FEW:.0%}"
    details = f"{shown} of the last records {'is' if share and share < _FEW else 'are'} rejected"
    return {"since": rejections.rejects_since, "details": details, "warns": share >= _FEW}
