"""The flow of watermarks through a program, from the operators that estimate them to all operators below. Pure.

In each window, an operator sees the watermarks after the last committed window, and nothing that it receives is earlier
unless it is late. So an operator that acts on watermarks passes on the watermark that it has seen. Every other operator
passes on the watermark that reaches it now.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import chain

from dagkit.api.operators import DelayOperator, InputOperator, Operator
from dagkit.api.work import SplittableOperator, work_port
from dagkit.engine.inputs.event_times import (
    Estimate,
    EventTimes,
    Progress,
    Watermark,
    idle_instants,
    is_idle,
    later,
    of_elements,
    of_partitions,
)
from dagkit.engine.program.address import Address
from dagkit.engine.program.program import Program, SeenWatermarks, Sliding
from dagkit.engine.work.item import WorkItem
from dagkit.ranges import END_OF_TIME


@dataclass(frozen=True)
class WatermarkFlow:
    """The operators of a program that watermarks come from and reach."""

    program: Program
    sources: frozenset[str]
    """The operators that estimate watermarks."""
    timed: frozenset[str]
    """The sources and all operators below them."""
    users: tuple[str, ...]
    """The operators that act on watermarks."""

    @classmethod
    def of(cls, program: Program) -> "WatermarkFlow | None":
        """The flow of a program; None if no operator estimates a watermark, so that there is nothing to compute."""
        operators = {name: slots[0] for name, slots in program.operators.items()}
        sources = frozenset(name for name, operator in operators.items() if operator.estimates_watermark)
        if not sources:
            return None
        above = {name: frozenset(_above(program, name)) for name in operators}
        timed = frozenset(name for name in operators if name in sources or above[name] & sources)
        users = tuple(name for name in sorted(timed) if operators[name].uses_watermark)
        return cls(program, sources, timed, users)

    def operator(self, name: str) -> Operator:
        """One partition of an operator."""
        return self.program.operators[name][0]

    @cached_property
    def feeders(self) -> Mapping[str, Mapping[str, str]]:
        """The inputs of each operator below a source that bring a watermark, and the operators that feed them."""
        found: dict[str, dict[str, str]] = {}
        feeders = self.program.feeders
        for (name, port), feeder in sorted(feeders.items()):
            if feeder in self.timed:
                found.setdefault(name, {})[port] = feeder
        return found

    @cached_property
    def holding(self) -> Mapping[str, tuple[str, ...]]:
        """The operators whose watermarks hold back an operator. Those that it feeds itself in a loop do not."""
        # The watermark of such a feeder follows that of the operator, so both would stay where they are for ever.
        found = {}
        for name, ports in self.feeders.items():
            outside = [feeder for feeder in ports.values() if name not in _above(self.program, feeder)]
            found[name] = tuple(outside or ports.values())
        return found

    @cached_property
    def sliding(self) -> Mapping[str, Sliding]:
        """The operators whose windows slide."""
        sliders = self.program.sliders
        return {name: sliding for (name, _), sliding in sliders.items()}

    @cached_property
    def pending_above(self) -> Mapping[str, frozenset[str]]:
        """The operators above each source whose pending work holds it back.

        The watermark of a source above a splittable one holds it back instead of its pending work.
        """
        stops = {
            name: self.sources if isinstance(self.operator(name), SplittableOperator) else frozenset()
            for name in self.sources
        }
        return {name: frozenset(_above(self.program, name, until)) for name, until in stops.items()}

    @cached_property
    def all_above(self) -> Mapping[str, frozenset[str]]:
        """All operators above each source."""
        return {name: frozenset(_above(self.program, name)) for name in self.sources}

    def after(self, before: EventTimes, progress: Progress) -> EventTimes:
        """Return the event times after a window; without its reports, those between two windows."""
        return _Computation(self, before, progress).result()

    def seen(self, times: EventTimes) -> dict[str, SeenWatermarks]:
        """Return what the operators on the workers see in the next window."""
        return {
            name: ({port: times.sent.get(feeder) for port, feeder in ports.items()}, times.arrived.get(name))
            for name, ports in self.feeders.items()
        }

    def next_idle(self, times: EventTimes, progress: Progress) -> datetime | None:
        """When the next part of a source becomes idle; None if no operator acts on watermarks, or nothing can."""
        instants: list[datetime] = []
        for name in self.sources if self.users else ():
            since = [item.deferral.idle_since for item in progress.waiting if item.into.operator == name]
            since += [estimate.since for estimate in times.estimates.get(name, ()) if estimate is not None]
            since += [estimate.since for estimate in times.growing.get(name, {}).values()]
            since += [times.quiet_since.get(name)]
            instants += idle_instants(since, self.operator(name).idle_after, progress.now)
        return min(instants, default=None)


class _Computation:
    """The event times after one window, while they are computed."""

    def __init__(self, flow: WatermarkFlow, before: EventTimes, progress: Progress) -> None:
        self._flow = flow
        self._before = before
        self._progress = progress
        self._items: dict[str, list[WorkItem]] = {}
        for item in progress.waiting:
            self._items.setdefault(item.into.operator, []).append(item)
        self._found: dict[str, Watermark] = {}
        self._arrived: dict[str, datetime] = {}
        self._estimates: dict[str, tuple[Estimate | None, ...]] = {}
        self._latest: dict[str, datetime] = {}
        self._growing: dict[str, Mapping[str, Estimate]] = {}
        self._quiet_since: dict[str, datetime] = {}
        self._slid: dict[str, tuple[datetime | None, ...]] = {}

    def result(self) -> EventTimes:
        flow, before = self._flow, self._before
        sent = {name: self._sent(name) for name in sorted(flow.timed)}
        return EventTimes(
            sent={name: watermark.at for name, watermark in sent.items()},
            arrived=self._arrived,
            idle=tuple(name for name, watermark in sent.items() if watermark.is_idle),
            estimates=self._estimates,
            latest=self._latest,
            growing=self._growing,
            quiet_since=self._quiet_since,
            slid=self._slid,
            advanced=any(self._arrived.get(name) != before.arrived.get(name) for name in flow.users),
        )

    def _sent(self, name: str) -> Watermark:
        """The watermark of what an operator sends. It never goes back."""
        if name not in self._found:
            now = self._estimated(name) if name in self._flow.sources else self._passed(name)
            before = self._before
            self._found[name] = Watermark(later(before.sent.get(name), now.at), now.is_idle)
        return self._found[name]

    # ---- operators that pass on watermarks

    def _passed(self, name: str) -> Watermark:
        flow, operator, before = self._flow, self._flow.operator(name), self._before
        if isinstance(operator, DelayOperator):  # sends in the next window what it receives in this one
            return Watermark(before.sent.get(flow.feeders[name]["input"]))
        arrived = self._combined(name)
        if arrived.at is not None:
            self._arrived[name] = arrived.at
        passed = self._passed_once(name, arrived)
        return self._slides(name, passed, flow.sliding[name]) if name in flow.sliding else passed

    def _passed_once(self, name: str, arrived: Watermark) -> Watermark:
        """What an operator passes on of the watermark of its inputs, unless it sends earlier items again."""
        flow, operator, before = self._flow, self._flow.operator(name), self._before
        if self._progress.window_id % flow.program.windows[name]:
            return Watermark(is_idle=arrived.is_idle)  # holds items until its application window ends
        if operator.uses_watermark:
            return Watermark(before.arrived.get(name), arrived.is_idle)
        held = of_elements(self._items.get(name, ()), None, None, self._progress.now)
        if not self._items.get(name):
            return arrived
        return _lowest([arrived, held])

    def _slides(self, name: str, passed: Watermark, sliding: Sliding) -> Watermark:
        """The watermark of an operator with sliding windows: the one before the items that it sends next time.

        The next time is after a multiple of `step` windows. It then sends the items of the last `length` windows.
        """
        before = self._before
        kept = before.slid.get(name, ())
        kept = (*kept, later(kept[-1] if kept else None, passed.at))[-sliding.length :]
        self._slid[name] = kept
        until_next = sliding.step - self._progress.window_id % sliding.step
        before_first = len(kept) - 1 - (sliding.length - until_next)
        return Watermark(kept[before_first] if before_first >= 0 else None, passed.is_idle)

    def _combined(self, name: str) -> Watermark:
        """The watermark of all inputs together, which never goes back."""
        combined = _combined([self._sent(feeder) for feeder in self._flow.holding[name]])
        before = self._before
        return combined._replace(at=later(before.arrived.get(name), combined.at))

    # ---- sources of watermarks

    def _estimated(self, name: str) -> Watermark:
        operator = self._flow.operator(name)
        if isinstance(operator, InputOperator):
            sources = self._progress.sources
            watermark = Watermark(sources.get(name))
        elif isinstance(operator, SplittableOperator):
            watermark = self._of_elements(name, operator)
        else:
            watermark = self._of_partitions(name, operator)
        if self._has_ended(name):
            return Watermark(END_OF_TIME)
        return Watermark(is_idle=watermark.is_idle) if self._is_behind(name) else watermark

    def _of_elements(self, name: str, operator: SplittableOperator[object, object]) -> Watermark:
        port, before, flow = work_port(operator), self._before, self._flow
        into, items = Address.of(name, port), self._items.get(name, ())
        done = [report.done[into] for report in self._progress.reports if into in report.done]
        reported = [each.reached for each in done if each.reached]
        latest = later(before.latest.get(name), max((max(each.values()) for each in reported), default=None))
        if latest is not None:
            self._latest[name] = latest
        growing = self._of_growing(name, reported) if operator.sources_grow else {}
        now, idle_after = self._progress.now, operator.idle_after
        watermark = of_elements(items, latest, idle_after, now)
        if growing:
            left = of_partitions(growing.values(), idle_after, now)
            watermark = _combined([watermark, left]) if items else left
        elif idle_after is not None and not items:
            since = now if reported else before.quiet_since.get(name, now)
            self._quiet_since[name] = since
            watermark = watermark._replace(is_idle=is_idle(since, idle_after, now))
        feeder = flow.feeders.get(name, {}).get(port)
        if feeder is None:
            return watermark
        return _lowest([watermark, self._sent(feeder)])._replace(is_idle=watermark.is_idle)

    def _of_growing(self, name: str, reported: Iterable[Mapping[str, datetime]]) -> Mapping[str, Estimate]:
        """The latest watermark of each source that grows."""
        before = self._before
        growing = dict(before.growing.get(name, {}))
        for source, at in chain.from_iterable(each.items() for each in reported):
            last = growing.get(source)
            growing[source] = Estimate(at=at if last is None else max(last.at, at), since=self._progress.now)
        if growing:
            self._growing[name] = growing
        return growing

    def _of_partitions(self, name: str, operator: Operator) -> Watermark:
        program, before = self._flow.program, self._before
        count = len(program.operators[name])
        kept = before.estimates.get(name, ())
        estimates: list[Estimate | None] = list(kept) if len(kept) == count else [None] * count
        for report in self._progress.reports:
            if name in report.estimated:
                last = estimates[report.slot]
                at = later(None if last is None else last.at, report.estimated[name])
                assert at is not None, "one of both is known"
                estimates[report.slot] = Estimate(at=at, since=self._progress.now)
        if any(estimates):
            self._estimates[name] = tuple(estimates)
        return of_partitions(estimates, operator.idle_after, self._progress.now)

    def _is_behind(self, name: str) -> bool:
        """Whether work that was found above a source, or by it, is not done. Endless work counts until it is begun."""
        above = self._flow.pending_above[name]
        pending = (item for each in above for item in self._items.get(each, ()))
        # Endless work holds the watermark only until it is begun: otherwise there would never be one.
        is_waiting = any(item.has_end or not item.done.turn for item in pending)
        return is_waiting or not {name, *above}.isdisjoint(self._progress.behind)

    def _has_ended(self, name: str) -> bool:
        """Whether nothing more can come from a source: all inputs have ended, and all work is done."""
        all_of_it = {name, *self._flow.all_above[name]}
        inputs = [each for each in all_of_it if isinstance(self._flow.operator(each), InputOperator)]
        if not all(each in self._progress.ended for each in inputs):
            return False
        return all_of_it.isdisjoint(self._items) and not self._progress.has_delayed_items


def _combined(watermarks: list[Watermark]) -> Watermark:
    """Return the lowest watermark of those that are not idle; if all are idle, the latest."""
    active = [watermark for watermark in watermarks if not watermark.is_idle]
    if active:
        return _lowest(active)
    return Watermark(max((each.at for each in watermarks if each.at is not None), default=None), is_idle=True)


def _lowest(watermarks: list[Watermark]) -> Watermark:
    """Return the lowest watermark, which is unknown if one of them is."""
    known = [watermark.at for watermark in watermarks if watermark.at is not None]
    return Watermark(min(known) if len(known) == len(watermarks) else None, any(each.is_idle for each in watermarks))


def _above(program: Program, name: str, until: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield the operators above an operator, but not those in `until` nor beyond them."""
    found: set[str] = set()
    follow = [name]
    while follow:
        to = follow.pop()
        for (sink, _), feeder in program.feeders.items():
            if sink == to and feeder not in found and feeder not in until:
                found.add(feeder)
                follow.append(feeder)
                yield feeder
