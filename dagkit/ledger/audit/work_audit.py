"""The proof that every position was consumed exactly as often as it was found, from what windows recorded."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dagkit.ledger.format.recorded_work import InputWork, Span, WaitingSum, Work, WorkBlock
from dagkit.ledger.format.span_sets import (
    covered,
    in_shares,
    joined,
    merged,
    more,
    normal,
    overlaps,
    positions_in,
    shares_in,
    span_between,
    without,
)
from dagkit.ranges.coverage import Bounds, surplus


@dataclass(frozen=True, slots=True)
class Flaw:
    """A range that was lost, consumed twice, or not yet read."""

    kind: Literal["missing", "doubled", "unread"]
    span: Span | str
    """The range; of a sum, what it is of."""
    why: str


class DiscoveredWork:
    """Checks the ranges that one input operator discovered; stores one merged range for each unbroken run."""

    def __init__(self) -> None:
        self._known: dict[str, list[Bounds]] = {}
        self._sizes: dict[str, int] = {}

    def add(self, block: WorkBlock) -> list[Flaw]:
        """The flaws of the next block."""
        if block.size is not None:
            self._sizes[block.source] = block.size
        if block.end == block.start:
            # Recorded as a range, an empty one would make the bytes before it look skipped.
            return []
        known = self._known.get(block.source, [])
        twice = covered(block.span, known)
        end = float("inf") if block.end is None else block.end
        if known and known[-1][1] == block.start and not twice:
            known[-1] = (known[-1][0], end)
        else:
            self._known[block.source] = merged(sorted([*known, (block.start, end)]))
        return [Flaw("doubled", span, "was discovered twice") for span in twice]

    def end(self) -> list[Flaw]:
        """Ranges that were skipped, and tails that are not discovered yet."""
        flaws = []
        # A source may have only an empty range, of which nothing but its size is known.
        for source in sorted({*self._known, *self._sizes}):
            reached: float = 0
            for start, end in self._known.get(source, []):
                if start > reached:
                    why = "was never discovered, but later bytes were"
                    flaws.append(Flaw("missing", span_between(source, reached, start), why))
                reached = end
            size = self._sizes.get(source)
            if size is not None and reached < size:
                flaws.append(Flaw("unread", span_between(source, reached, size), "is not discovered yet"))
        return flaws


class Left:
    """Work of one input that waits. A window that records a sum costs only what it settles, and what came."""

    def __init__(self) -> None:
        self._ranges: dict[str, list[Bounds]] = {}
        self._shared: set[str] = set()
        """The sources of which shares wait."""
        self._sums = {False: 0, True: 0}
        """The ends without the starts, of positions and of shares."""
        self._endless = 0

    @property
    def spans(self) -> list[Span]:
        """The ranges that wait."""
        shared = frozenset(self._shared)
        return [span_between(source, *range_, shared) for source, ranges in self._ranges.items() for range_ in ranges]

    def follow(self, work: InputWork) -> list[Flaw]:
        """Take over a window, and return its flaws: first what it lost, then what it had twice."""
        had, settled = normal(work.had), normal([*work.settled, *work.pending])
        self._share(in_shares((*work.had, *work.settled, *work.pending)))
        lost, twice, shared = list[Span](), list[Span](), frozenset(self._shared)
        # Listing 100,000 pending blocks in each window took 1.3 s, so large windows record a sum of what waits. Then
        # only the sources in which something came or was settled are compared.
        for source in sorted({*had, *settled} if work.waits is not None else {*had, *settled, *self._ranges}):
            there, gone = [*self._ranges.get(source, ()), *had.get(source, ())], settled.get(source, [])
            left = surplus(there, gone)
            twice += [span_between(source, *range_, shared) for range_ in surplus(gone, there)]
            lost += [span_between(source, *range_, shared) for range_ in left] if work.waits is None else []
            self._set(source, left)
        flaws = [Flaw("missing", span, f"is neither consumed by {work.input} nor pending") for span in lost]
        flaws += [Flaw("doubled", span, f"is consumed by {work.input} or pending, and was not") for span in twice]
        if work.waits is not None:
            return flaws + self._unequal(work.input, work.waits)
        pending = normal(work.pending)
        for source in {*self._ranges, *pending}:
            self._set(source, pending.get(source, []))
        return flaws

    def _share(self, sources: Iterable[str]) -> None:
        """Note that shares of these sources wait; earlier windows may not have recorded that."""
        # `_set` keeps the sums of positions and of shares apart, so the ranges leave one sum and enter the other.
        for source in {*sources} - self._shared:
            before = self._ranges.get(source, [])
            self._set(source, [])
            self._shared.add(source)
            self._set(source, before)

    def _set(self, source: str, ranges: list[Bounds]) -> None:
        """Make these the ranges of a source that wait."""
        is_shares = source in self._shared
        for sign, bounds in ((-1, self._ranges.pop(source, [])), (1, ranges)):
            ends = [int(end) for _, end in bounds if end != float("inf")]
            self._sums[is_shares] += sign * (sum(ends) - sum(int(start) for start, _ in bounds))
            self._endless += sign * (len(bounds) - len(ends))
        if ranges:
            self._ranges[source] = ranges

    def _unequal(self, name: str, waits: WaitingSum) -> list[Flaw]:
        """The flaw of a window whose sum differs from the sum of the ranges that wait."""
        mine = WaitingSum(positions=self._sums[False], shares=self._sums[True], endless=self._endless)
        if waits == mine:
            return []
        is_less = (waits.endless, waits.positions, waits.shares) < (mine.endless, mine.positions, mine.shares)
        kind: Literal["missing", "doubled"] = "missing" if is_less else "doubled"
        return [Flaw(kind, f"what waits for {name}", f"adds up to {waits}, and its windows left {mine}")]


@dataclass(slots=True)
class Proven:
    """The proven work of one operator's input."""

    input: str
    sources: set[str] = field(default_factory=set)
    elements: int = 0
    """Elements that are recorded as a sum, without their sources."""
    positions: int = 0
    """Positions that were read, each as often as it was found."""
    shares: int = 0
    """Shares of elements that were done, each as often as it was found."""
    left: "Left" = field(default_factory=Left)
    """Work that was found and waits."""
    aside: tuple[Span, ...] = ()
    """Ranges that were set aside and not retried since."""
    given_up: tuple[Span, ...] = ()
    """Ranges that a user gave up."""
    skipped: tuple[Span, ...] = ()
    """Ranges that were gone before they were read."""

    @property
    def waiting(self) -> int:
        """Positions that were found and wait, without ranges that have no end."""
        return positions_in(self.left.spans)

    @property
    def waiting_shares(self) -> int:
        """Shares that were found and wait, without ranges that have no end."""
        return shares_in(self.left.spans)

    @property
    def endless(self) -> int:
        """The number of ranges without an end that wait."""
        return sum(span.end is None for span in self.left.spans)

    def note(self, work: InputWork) -> None:
        """Add one window."""
        if work.aside or work.retried:
            self.aside = tuple(joined(more((*self.aside, *(work.aside or ())), work.retried or ())))
        if work.given_up:
            self.given_up = tuple(joined((*self.given_up, *work.given_up)))
        if work.skipped:
            self.skipped = tuple(joined((*self.skipped, *work.skipped)))
        self.sources.update(span.source for span in (*work.given, *work.found))
        self.positions += positions_in(work.consumed)
        self.shares += shares_in(work.consumed)
        if work.folded is not None:
            self.elements += work.folded.elements
            self.positions += work.folded.positions


class Audit:
    """Checks the windows of one application; finds every position that was lost or consumed twice."""

    def __init__(self) -> None:
        self.proven: dict[str, Proven] = {}
        """The proven work by input, from the windows that recorded it by input."""
        self._pending: list[Span] = []
        """Ranges that wait for all inputs together, as windows up to November 2026 recorded them."""
        self._waiting: dict[str, Left] | None = None
        """Work that waits, by input; None before the first window that recorded it by input."""
        self._consumed: dict[str, list[Bounds]] = {}

    @property
    def pending(self) -> list[Span]:
        """The ranges that wait."""
        if self._waiting is None:
            return self._pending
        return [span for left in self._waiting.values() for span in left.spans]

    def window(self, given: Sequence[Span], work: Work | None) -> list[Flaw]:
        """The flaws of the next window, to which the blocks in `given` were new.

        `work` is the entry of its checkpoint; without one, the window consumed all that it was given.
        """
        if work is not None and work.inputs is not None:
            return [*self._given(given, work.inputs), *self._by_input(work.by_input)]
        return self._together(given, work)

    def unchanged(self, given: Sequence[Span]) -> Work:
        """The work of a window that left its checkpoint as it was: it consumed what it was given, and nothing else."""
        if self._waiting is None:
            return Work(consumed=tuple(given), pending=tuple(self._pending))
        waiting = tuple(InputWork(input=name, pending=tuple(left.spans)) for name, left in self._waiting.items())
        return Work(inputs=waiting)

    def _given(self, given: Sequence[Span], inputs: Sequence[InputWork]) -> list[Flaw]:
        """The flaws of how ranges of root chains came to operators: each must come to one of them, and to each once."""
        taken = [span for part in inputs for span in part.given]
        flaws = [Flaw("doubled", span, "was given twice") for span in overlaps(given)]
        flaws += [Flaw("missing", span, "was given to no operator") for span in without(given, taken)]
        flaws += [Flaw("doubled", span, "was not the window's to take") for span in without(taken, given)]
        for part in inputs:
            flaws += [Flaw("doubled", span, f"was given to {part.input} twice") for span in overlaps(part.given)]
        return flaws

    def _by_input(self, inputs: Mapping[str, InputWork]) -> list[Flaw]:
        """The flaws of each input, which must have consumed or keep each range as often as it came."""
        flaws: list[Flaw] = []
        waited: list[Span] = []
        """Ranges that must have waited before the first window that recorded work by input."""
        before, after = self._waiting or {}, dict[str, Left]()
        for name in sorted({*inputs, *before}):
            work = inputs.get(name) or InputWork(input=name)
            left = before.get(name) or Left()
            found = left.follow(work)
            if self._waiting is None:
                waited += [flaw.span for flaw in found if flaw.kind == "doubled" and isinstance(flaw.span, Span)]
                found = [flaw for flaw in found if flaw.kind == "missing"]
            flaws += found
            after[name] = left
            proven = self.proven.setdefault(name, Proven(name))
            flaws += [
                Flaw("doubled", s, f"is retried by {name}, and was not set aside")
                for s in more(work.retried or (), proven.aside)
            ]
            proven.note(work)
            proven.left = left
        if self._waiting is None:
            flaws += [Flaw("missing", s, "is neither consumed nor pending") for s in without(self._pending, waited)]
            flaws += [Flaw("doubled", s, "was not the window's to consume") for s in without(waited, self._pending)]
        self._waiting = after
        return flaws

    def _together(self, given: Sequence[Span], recorded: Work | None) -> list[Flaw]:
        """The flaws of a window that recorded its work for all inputs together."""
        before = [*self.pending, *given]
        work = recorded or Work(consumed=tuple(before))
        flaws = [Flaw("doubled", span, "was given twice") for span in overlaps(before)]
        after = [*work.consumed, *work.pending]
        flaws += [Flaw("doubled", s, "is consumed and pending, or twice") for s in overlaps(after)]
        flaws += [Flaw("missing", s, "is neither consumed nor pending") for s in without(before, after)]
        flaws += [Flaw("doubled", s, "was not given to the window") for s in without(after, before)]
        flaws += [Flaw("doubled", s, "was consumed before") for s in self._again(work.consumed)]
        self._note(work.consumed)
        self._pending, self._waiting = list(work.pending), None
        return flaws

    def _again(self, spans: Iterable[Span]) -> list[Span]:
        return [again for span in spans for again in covered(span, self._consumed.get(span.source, []))]

    def _note(self, spans: Iterable[Span]) -> None:
        for source, bounds in normal(spans).items():
            self._consumed[source] = merged(sorted([*self._consumed.get(source, []), *bounds]))
