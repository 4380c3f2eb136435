"""The errors of a ledger, each with its own code.

A `Fault` is a value: the rules and the verifier collect them. An exception carries at least one.

    LedgerError
    ├── BlockRefused           a rule forbids the block; nothing was written
    ├── SequenceTaken          another writer has appended; nothing was changed, this writer stops
    ├── ChainBroken            what is stored is missing, damaged or forged
    ├── VersionUnreadable      a later dagkit wrote it, or it follows an older specification
    ├── ChainNotFound          there is no ledger, or no such chain
    └── StoreError             the storage fails: full, read-only, unable to create exclusively
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from dagkit.errors import DagkitError, printable

LedgerCode = Literal[
    # the order of blocks
    "seed-misplaced",
    "seed-missing",
    "previous-missing",
    "head-moved",
    "sequence-broken",
    "time-reversed",
    "hash-mismatch",
    "event-misplaced",
    "sequence-taken",
    # data, watermark, checkpoint, source state
    "event-empty",
    "data-unmoved",
    "transform-unmoved",
    "schema-missing",
    "interval-reversed",
    "offsets-broken",
    "offset-mismatch",
    "offset-unfounded",
    "watermark-reversed",
    "checkpoint-mismatch",
    "checkpoint-vanished",
    "state-vanished",
    "data-missing",
    "checkpoint-missing",
    # inputs of a transform
    "transform-missing",
    "inputs-mismatch",
    "input-unmoved",
    "input-mismatch",
    "input-unfounded",
    "input-blockless",
    "input-reversed",
    "input-block-missing",
    "input-offset-mismatch",
    # declarations
    "transform-inputless",
    "input-duplicated",
    "input-unresolved",
    "query-malformed",
    "schema-unchanged",
    "schema-incompatible",
    # what is stored
    "chain-missing",
    "chain-lost",
    "chain-swapped",
    "chain-exists",
    "chain-name-malformed",
    "block-missing",
    "block-unknown",
    "block-damaged",
    "block-torn",
    "block-misplaced",
    "link-broken",
    "carry-forged",
    "head-forged",
    "head-lost",
    "head-differs",
    "segment-damaged",
    "data-damaged",
    "checkpoint-damaged",
    "version-unreadable",
    "version-outdated",
    "field-unknown",
    "manifest-unreadable",
    "value-unwritable",
    # completeness
    "bytes-missing",
    "bytes-doubled",
    "bytes-unread",
    "work-unreadable",
    # places
    "store-full",
    "store-readonly",
    "store-unfenced",
    "store-unreachable",
    "promise-taken",
    "promise-damaged",
]

LEDGER_CODES: tuple[LedgerCode, ...] = get_args(LedgerCode)

WARNINGS: frozenset[LedgerCode] = frozenset({"bytes-unread"})
"""Faults that are reported but do not fail a check."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One problem, its place, and what to do about it."""

    code: LedgerCode
    problem: str
    help: str
    chain: str | None = None
    block: int | None = None

    @property
    def is_warning(self) -> bool:
        return self.code in WARNINGS

    def __str__(self) -> str:
        place = "" if self.chain is None else f"{self.chain}: "
        block = "" if self.block is None else f"block {self.block}: "
        return f"{place}{block}{printable(self.problem)} [{self.code}]\n  help: {self.help}"


class LedgerError(DagkitError):
    """The base of all errors that a ledger raises; `code` is that of its first fault."""

    exit_code = 1

    def __init__(self, *faults: Fault) -> None:
        assert faults, "an error has at least one fault"
        self.faults: Sequence[Fault] = faults
        super().__init__("\n".join(str(fault) for fault in faults))

    @property
    def fault(self) -> Fault:
        return self.faults[0]

    @property
    def explained(self) -> Fault:
        return self.fault

    @property
    def code(self) -> LedgerCode:
        return self.fault.code

    def __reduce__(self) -> tuple[type["LedgerError"], tuple[Fault, ...]]:
        return type(self), tuple(self.faults)


class BlockRefused(LedgerError):
    """A rule forbids the block; nothing was written."""


class SequenceTaken(LedgerError):
    """Another writer has appended to the chain; nothing was changed, and this writer must stop."""


class ChainBroken(LedgerError):
    """What is stored is missing, damaged or forged."""


class VersionUnreadable(LedgerError):
    """A dagkit of another version wrote it, or it follows an older specification."""

    exit_code = 6


class ChainNotFound(LedgerError):
    """There is no ledger, or no such chain, at the given place."""

    exit_code = 6


class BlockNotFound(LedgerError):
    """No chain has the block that a user asks for."""

    exit_code = 6


class StoreError(LedgerError):
    """The storage fails: it is full, read-only, unreachable, or cannot create exclusively."""

    exit_code = 5
