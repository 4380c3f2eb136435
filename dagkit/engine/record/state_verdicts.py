"""The fate of each operator's state in a ledger at the next launch. Nothing is changed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from dagkit.api.state import declared_state
from dagkit.engine.program.address import operator_of_state
from dagkit.engine.program.program import Program
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.compatibility import refuse_renamed, refuse_stranded
from dagkit.engine.record.history import newest_checkpoint
from dagkit.engine.record.journal import chain_name, refuse_another, refuse_lost_inputs, stored_in
from dagkit.engine.record.redistribute import redistribute_state, restored
from dagkit.engine.worker.instances import SavedState
from dagkit.errors import RunFailure
from dagkit.ledger import DatasetKind, Ledger


class Fate(StrEnum):
    """Whether a launch keeps the state of an operator."""

    CARRIED = "carried over"
    DROPPED = "dropped"
    NEW = "new"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The fate of the state of one operator, with the reason."""

    operator: str
    fate: Fate
    detail: str
    code: str | None = None
    """The code of the failure with which a launch ends, if it is refused."""


def verdicts(program: Program, ledger: Ledger) -> list[Verdict]:
    """The fates of the state of the last window in a launch of this program; refusals first."""
    checkpoint = newest_checkpoint(ledger)
    kept = {name: states for name, states in checkpoint.operators.state.items() if any(states)}
    found = [
        *_refusals(program, ledger, checkpoint),
        *_progress(program, ledger),
        *(verdict for name, states in kept.items() for verdict in _of_state(program, name, states)),
        *(Verdict(name, Fate.NEW, "it begins without state") for name in _beginning(program, ledger, checkpoint)),
    ]
    refused = {each.operator for each in found if each.fate is Fate.REFUSED}
    lasting = [each for each in found if each.fate is Fate.REFUSED or each.operator not in refused]
    return sorted(lasting, key=lambda each: (each.fate is not Fate.REFUSED, each.operator))


def _refusals(program: Program, ledger: Ledger, checkpoint: Checkpoint) -> Iterator[Verdict]:
    """The failures with which a launch ends before its first window."""
    checks: Sequence[Callable[[], object]] = (
        lambda: refuse_another(ledger, chain_name(program)),
        lambda: refuse_lost_inputs(ledger, program),
        lambda: refuse_stranded(program, checkpoint, ()),
        lambda: refuse_renamed(program, checkpoint.operators.state),
        lambda: restored(program, checkpoint.operators.held),
    )
    for check in checks:
        try:
            check()
        except RunFailure as failure:
            yield Verdict(failure.scene.operator or program.application, Fate.REFUSED, failure.problem, failure.code)
            return  # later checks rely on earlier ones


def _progress(program: Program, ledger: Ledger) -> Iterator[Verdict]:
    """The fates of the state of input operators."""
    for name in ledger.names():
        chain = ledger.chain(name)
        if chain.kind is not DatasetKind.ROOT:
            continue
        if name not in program.sources:
            yield Verdict(name, Fate.DROPPED, "the application has no such input operator")
        elif stored_in(chain)[1]:
            yield Verdict(name, Fate.CARRIED, "what it found so far")


def _of_state(program: Program, name: str, states: Sequence[SavedState]) -> Iterator[Verdict]:
    """The fate of the state of an operator, or of the sliding windows of one of its outputs."""
    operator, names = operator_of_state(name), sorted({each for state in states for each in state})
    if operator not in program.stage_of:
        yield Verdict(operator, Fate.DROPPED, f"{', '.join(names)}: the application has no such operator")
        return
    try:
        redistribute_state(program, {name: states})
    except RunFailure as failure:
        yield Verdict(operator, Fate.REFUSED, failure.problem, failure.code)
        return
    if name != operator:
        yield Verdict(operator, Fate.CARRIED, "its sliding windows")
        return
    partitions = program.operators[operator]
    declared = declared_state(type(partitions[0]))
    gone, left = [each for each in names if each not in declared], [each for each in names if each in declared]
    count = "" if len(states) == len(partitions) else f", from {len(states)} to {len(partitions)} partitions"
    if left:
        yield Verdict(operator, Fate.CARRIED, ", ".join(left) + count)
    if gone:
        yield Verdict(operator, Fate.DROPPED, f"{', '.join(gone)}: it declares no such state")


def _beginning(program: Program, ledger: Ledger, checkpoint: Checkpoint) -> Iterator[str]:
    """The operators that declare state and have none in the ledger."""
    known: Mapping[str, object] = {**checkpoint.operators.state, **dict.fromkeys(ledger.names())}
    for name, operators in program.operators.items():
        if name not in known and declared_state(type(operators[0])):
            yield name
