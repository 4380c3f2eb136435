"""Sets of spans: what they cover, how often, and what one has more than another."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice

from dagkit.ledger.format.recorded_work import Span
from dagkit.ranges.coverage import Bounds, surplus

Stretch = Bounds


def more(spans: Iterable[Span], others: Iterable[Span]) -> list[Span]:
    """What the spans cover more often than the others do."""
    spans, others = list(spans), list(others)
    removed, shared = normal(others), in_shares((*spans, *others))
    return [
        span_between(source, *stretch, shared)
        for source, stretches in normal(spans).items()
        for stretch in surplus(stretches, removed.get(source, ()))
    ]


def normal(spans: Iterable[Span]) -> dict[str, list[Stretch]]:
    """The ranges of each source, in order; an open end is infinite."""
    found: dict[str, list[Stretch]] = defaultdict(list)
    for span in spans:
        if span.end is None or span.end > span.start:
            found[span.source].append((span.start, float("inf") if span.end is None else span.end))
    return {source: sorted(stretches) for source, stretches in sorted(found.items())}


def overlaps(spans: Iterable[Span]) -> list[Span]:
    """The ranges that more than one of the spans cover."""
    found = []
    for source, stretches in normal(spans).items():
        reached: float = 0
        for start, end in stretches:
            if start < reached:
                found.append(span_between(source, start, min(end, reached)))
            reached = max(reached, end)
    return found


def without(spans: Iterable[Span], removed: Iterable[Span]) -> list[Span]:
    """The spans minus the removed ones."""
    holes, found = normal(removed), []
    for source, stretches in normal(spans).items():
        for start, end in merged(stretches):
            at: float = start
            for low, high in merged(holes.get(source, [])):
                if high <= at or low >= end:
                    continue
                if low > at:
                    found.append(span_between(source, at, low))
                at = max(at, high)
            if at < end:
                found.append(span_between(source, at, end))
    return found


def merged(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Merge ranges that touch or overlap."""
    found: list[Stretch] = []
    for start, end in stretches:
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def joined(spans: Iterable[Span]) -> list[Span]:
    """Merge spans that touch or overlap."""
    spans = list(spans)
    shared = in_shares(spans)
    return [
        span_between(source, *stretch, shared) for source, found in normal(spans).items() for stretch in merged(found)
    ]


def in_shares(spans: Iterable[Span]) -> frozenset[str]:
    """The sources of spans that are shares. Coverage ignores that: earlier windows did not record it."""
    return frozenset(span.source for span in spans if span.shares)


def span_between(source: str, start: float, end: float, shared: frozenset[str] = frozenset()) -> Span:
    stop = None if end == float("inf") else int(end)
    return Span(source=source, start=int(start), end=stop, shares=True if source in shared else None)


def covered(spans: Iterable[Span], known: Sequence[Stretch]) -> list[Span]:
    """The parts of one source's spans that lie in known ranges."""
    found = []
    for span in spans:
        end = float("inf") if span.end is None else span.end
        first = max(0, bisect_left(known, (span.start, -1.0)) - 1)
        for low, high in islice(known, first, bisect_left(known, (end, -1.0))):
            if max(low, span.start) < min(high, end):
                found.append(span_between(span.source, max(low, span.start), min(high, end)))
    return found


def positions_in(spans: Iterable[Span]) -> int:
    """How many positions of sources the spans have; shares are none, and what has no end counts as 0."""
    return sum(map(length_of, (span for span in spans if not span.shares)))


def shares_in(spans: Iterable[Span]) -> int:
    return sum(map(length_of, (span for span in spans if span.shares)))


def length_of(span: Span) -> int:
    """Its length in its own unit; of what has no end, 0."""
    return 0 if span.end is None else span.end - span.start
