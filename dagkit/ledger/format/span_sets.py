"""Sets of spans: what they cover, how often, and what one has more than another."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice

from dagkit.ledger.format.recorded_work import Span
from dagkit.ranges.coverage import Bounds, surplus


def more(spans: Iterable[Span], others: Iterable[Span]) -> list[Span]:
    """What the spans cover more often than the others do."""
    spans, others = list(spans), list(others)
    removed, shared = normal(others), in_shares((*spans, *others))
    return [
        span_between(source, *rest, shared)
        for source, bounds in normal(spans).items()
        for rest in surplus(bounds, removed.get(source, ()))
    ]


def normal(spans: Iterable[Span]) -> dict[str, list[Bounds]]:
    """The ranges of each source, in order; an open end is infinite."""
    ranges: dict[str, list[Bounds]] = defaultdict(list)
    for span in spans:
        if span.end is None or span.end > span.start:
            ranges[span.source].append((span.start, float("inf") if span.end is None else span.end))
    return {source: sorted(bounds) for source, bounds in sorted(ranges.items())}


def overlaps(spans: Iterable[Span]) -> list[Span]:
    """The ranges that more than one of the spans cover."""
    return [
        span_between(source, *twice)
        for source, bounds in normal(spans).items()
        for twice in surplus(bounds, merged(bounds))
    ]


def without(spans: Iterable[Span], removed: Iterable[Span]) -> list[Span]:
    """The spans minus the removed ones, however often each is covered."""
    holes = normal(removed)
    return [
        span_between(source, *rest)
        for source, bounds in normal(spans).items()
        for rest in surplus(merged(bounds), merged(holes.get(source, [])))
    ]


def merged(bounds: Sequence[Bounds]) -> list[Bounds]:
    """Merge sorted ranges that touch or overlap."""
    result: list[Bounds] = []
    for start, end in bounds:
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((start, end))
    return result


def joined(spans: Iterable[Span]) -> list[Span]:
    """Merge spans that touch or overlap."""
    spans = list(spans)
    shared = in_shares(spans)
    return [
        span_between(source, *whole, shared) for source, bounds in normal(spans).items() for whole in merged(bounds)
    ]


def in_shares(spans: Iterable[Span]) -> frozenset[str]:
    """The sources of spans that are shares. Coverage ignores that: earlier windows did not record it."""
    return frozenset(span.source for span in spans if span.shares)


def span_between(source: str, start: float, end: float, shared: frozenset[str] = frozenset()) -> Span:
    stop = None if end == float("inf") else int(end)
    return Span(source=source, start=int(start), end=stop, shares=True if source in shared else None)


def covered(span: Span, known: Sequence[Bounds]) -> list[Span]:
    """The parts of a span that lie in known ranges, which are sorted and disjoint."""
    end = float("inf") if span.end is None else span.end
    # Each block asks this of all ranges known so far, so only those near it are compared.
    first = max(0, bisect_left(known, (span.start, -1.0)) - 1)
    near = islice(known, first, bisect_left(known, (end, -1.0)))
    common = ((max(low, span.start), min(high, end)) for low, high in near)
    return [span_between(span.source, low, high) for low, high in common if low < high]


def positions_in(spans: Iterable[Span]) -> int:
    """How many positions of sources the spans have, without shares; a span without an end counts as 0."""
    return sum(length_of(span) for span in spans if not span.shares)


def shares_in(spans: Iterable[Span]) -> int:
    """How many shares of elements the spans have; a span without an end counts as 0."""
    return sum(length_of(span) for span in spans if span.shares)


def length_of(span: Span) -> int:
    """The length of a span in its own unit; 0 without an end."""
    return 0 if span.end is None else span.end - span.start
