"""Reconstruct backlogs from a ledger: when blocks were found and read, and which decisions were made."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from dagkit.engine.program.address import Address
from dagkit.engine.program.facts import Scaled
from dagkit.engine.record.history import Window, history, own_windows, root_slices
from dagkit.errors import RunFailure, did_you_mean
from dagkit.ledger import Ledger, WorkBlock
from dagkit.ledger.chain.contents import rows_of
from dagkit.ledger.format.recorded_work import InputWork, row_of
from dagkit.ledger.format.span_sets import length_of
from dagkit.scaling import ScalingInputs, decide
from dagkit.scaling.policy import became, sentence


def _decision_missing(problem: str, remedy: str) -> RunFailure:
    """The ledger holds no decision about partitions that could be shown or simulated."""
    return RunFailure(problem, remedy, code="decision-missing")


_FOLLOW = "give an operator a scaling policy, and ask again once it has followed its backlog"


@dataclass(frozen=True, slots=True)
class Arrival:
    """Blocks of one length that were found at the same time."""

    at_millis: float
    blocks: int
    positions_each: float


@dataclass(frozen=True, slots=True)
class ScalingDecision:
    """One decision, and the window that committed it."""

    window: int
    fact: Scaled

    @property
    def inputs(self) -> ScalingInputs | None:
        """The inputs of the decision; None if no policy of dagkit made it."""
        try:
            return ScalingInputs.model_validate(self.fact.inputs)
        except ValidationError:
            return None

    @property
    def sentence(self) -> str:
        """What was considered, and the result."""
        fact, inputs = self.fact, self.inputs
        return became(fact.before, fact.after, fact.rule) if inputs is None else sentence(inputs, fact.after, fact.rule)

    def as_json(self) -> dict[str, Any]:
        """The decision as JSON, with what this version of dagkit would decide."""
        inputs = self.inputs
        return {
            "window": self.window,
            **self.fact.model_dump(mode="json", exclude={"fact"}),
            "sentence": self.sentence,
            "decided_again": None if inputs is None else decide(inputs).after,
        }


@dataclass(frozen=True, slots=True)
class Recorded:
    """The backlog of an operator and its decisions; times are in milliseconds since its first block was found."""

    operator: str
    began: datetime
    decisions: tuple[ScalingDecision, ...]
    arrivals: tuple[Arrival, ...]
    drained: tuple[float, ...]
    """Each time at which all found blocks had been read."""

    @property
    def inputs(self) -> list[ScalingInputs]:
        return [inputs for decision in self.decisions if (inputs := decision.inputs) is not None]

    def positions_per_second(self) -> float:
        """Positions that a partition read per second while there was a backlog."""
        millis = backlog_millis(self.arrivals, self.drained)
        if not millis:
            raise _decision_missing(f"nothing of what {self.operator} was given has been read yet", "ask again later")
        most = max(decided.fact.after for decided in self.decisions)
        return sum(arrival.blocks * arrival.positions_each for arrival in self.arrivals) * 1000 / millis / most


def decisions(ledger: Ledger, operator: str | None = None) -> list[ScalingDecision]:
    """Return the decisions about the partitions of all operators, or of one, in order."""
    made = _made(own_windows(ledger, b'"scaled"'))
    return made if operator is None or not made else _decided_for(operator, made)


def _decided_for(operator: str, made: Sequence[ScalingDecision]) -> list[ScalingDecision]:
    mine = [decided for decided in made if decided.fact.operator == operator]
    if not mine:
        names = sorted({decided.fact.operator for decided in made})
        raise _decision_missing(f"no decision was recorded for {operator!r}", did_you_mean(operator, names))
    return mine


def recorded(ledger: Ledger, operator: str | None = None) -> Recorded:
    """Return the backlog and the decisions of an operator; without a name, of the only one with decisions."""
    entries = list(history(ledger))
    made = _made(entries)
    names = sorted({decided.fact.operator for decided in made})
    if not names:
        raise _decision_missing("no operator of this application has looked at its backlog yet", _FOLLOW)
    if operator is None and len(names) > 1:
        raise _decision_missing(f"{' and '.join(names)} follow their backlogs", "choose one with --operator")
    chosen = names[0] if operator is None else operator
    mine = tuple(_decided_for(chosen, made))
    if all(decided.inputs is None for decided in mine):
        raise _decision_missing(
            f"no decision for {chosen} kept the inputs that a policy needs",
            "let a policy decide, as `drain` does: its inputs are kept with each decision",
        )
    # a root chain does not name the operator that reads its blocks, so those that only others had are left out
    foreign = _sources_of_others(entries, chosen)
    listed = [(at, row) for at, row in _found(ledger) if row.source not in foreign and row.end is not None]
    found = sorted([*((at, length_of(row)) for at, row in listed), *_found_elsewhere(entries, chosen)])
    if not found:
        raise _decision_missing(
            f"{chosen} was never given work that has an end", "simulate an operator that reads files"
        )
    began = found[0][0]
    return Recorded(chosen, began, mine, _arrivals(found, began), _drained(found, entries, chosen, foreign, began))


def backlog_millis(arrivals: Iterable[Arrival], drained: Iterable[float]) -> float:
    """The total time with a backlog, up to the last time without one."""
    left, total = sorted(arrival.at_millis for arrival in arrivals), 0.0
    for end in drained:
        begun = [at for at in left if at < end]
        total += end - begun[0] if begun else 0.0
        left = [at for at in left if at >= end]
    return total


def _made(entries: Iterable[Window]) -> list[ScalingDecision]:
    return [
        ScalingDecision(entry.checkpoint.window, fact)
        for entry in entries
        for fact in entry.checkpoint.facts
        if isinstance(fact, Scaled)
    ]


def _sources_of_others(entries: Iterable[Window], operator: str) -> set[str]:
    """The sources that only other operators were given or had in their queues."""
    seen: dict[str, set[str]] = {}
    for entry in entries:
        for item in entry.checkpoint.queue:
            if item.source is not None:
                seen.setdefault(item.into.operator, set()).add(item.source)
        for work in entry.work:
            seen.setdefault(Address(work.input).operator, set()).update(span.source for span in work.given)
    mine = seen.pop(operator, set())
    return {source for sources in seen.values() for source in sources} - mine


def _found_elsewhere(entries: Iterable[Window], operator: str) -> Iterator[tuple[datetime, int]]:
    """The arrival times and lengths of the elements of an operator that no root chain lists."""
    for entry in entries:
        for work in _work_of(entry, operator):
            yield from ((entry.committed, length_of(span)) for span in work.found if span.end is not None)
            if work.folded is not None and work.folded.positions:
                yield entry.committed, work.folded.positions


def _work_of(entry: Window, operator: str) -> list[InputWork]:
    return [work for work in entry.work if Address(work.input).operator == operator]


def _found(ledger: Ledger) -> list[tuple[datetime, WorkBlock]]:
    """Every block that was found and its time, in order of time."""
    found: list[tuple[datetime, WorkBlock]] = []
    for _, chain, record in root_slices(ledger):
        rows = map(row_of, rows_of(chain.data(record) or b""))
        found += [(record.block.system_time, row) for row in rows if isinstance(row, WorkBlock)]
    return sorted(found, key=lambda pair: pair[0])


def _arrivals(found: Iterable[tuple[datetime, int]], began: datetime) -> tuple[Arrival, ...]:
    """The arrivals; blocks that were found at the same time count with their average length."""
    lengths: dict[datetime, list[int]] = {}
    for at, length in found:
        lengths.setdefault(at, []).append(length)
    return tuple(
        Arrival(_millis(at, began), len(positions), sum(positions) / len(positions))
        for at, positions in lengths.items()
    )


def _drained(
    coming: Sequence[tuple[datetime, int]],
    entries: Iterable[Window],
    operator: str,
    foreign: set[str],
    began: datetime,
) -> tuple[float, ...]:
    """The times at which all blocks found by then had been read, and more than the previous time."""
    ends: list[float] = []
    arrived = read = index = reported = 0
    for entry in entries:
        read += _read_in(entry, operator, foreign)
        while index < len(coming) and coming[index][0] <= entry.committed:
            arrived += coming[index][1]
            index += 1
        if arrived <= read and read > reported:
            ends.append(_millis(entry.committed, began))
            reported = read
    return tuple(ends)


def _read_in(entry: Window, operator: str, foreign: set[str]) -> int:
    """Positions that an operator read in a window."""
    work_of_all = entry.checkpoint.work
    together = sum(length_of(span) for span in work_of_all.consumed if span.source not in foreign)
    of_input = _work_of(entry, operator)
    folded = sum(work.folded.positions for work in of_input if work.folded is not None)
    return together + folded + sum(length_of(span) for work in of_input for span in work.consumed)


def _millis(at: datetime, began: datetime) -> float:
    return (at - began).total_seconds() * 1000
