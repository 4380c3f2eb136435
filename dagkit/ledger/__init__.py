"""The ledger: append-only, hash-linked chains that remember what was discovered, consumed and made."""

from dagkit.ledger.block import MetadataBlock, Pointer, Record
from dagkit.ledger.chain import Chain
from dagkit.ledger.events import AddData, DatasetKind, ExecuteTransform, Seed, SetDataSchema, SetTransform
from dagkit.ledger.faults import (
    LEDGER_CODES,
    BlockRefused,
    ChainBroken,
    ChainNotFound,
    Fault,
    LedgerCode,
    LedgerError,
    SequenceTaken,
    StoreError,
    VersionUnreadable,
)
from dagkit.ledger.ledger import Ledger, transform_of
from dagkit.ledger.objects import checkpoint_of, lines_of, slice_of
from dagkit.ledger.transaction import Transaction
from dagkit.ledger.work import EmittedItem, Span, Work, WorkBlock

__all__ = [
    "LEDGER_CODES",
    "AddData",
    "BlockRefused",
    "Chain",
    "ChainBroken",
    "ChainNotFound",
    "DatasetKind",
    "EmittedItem",
    "ExecuteTransform",
    "Fault",
    "Ledger",
    "LedgerCode",
    "LedgerError",
    "MetadataBlock",
    "Pointer",
    "Record",
    "Seed",
    "SequenceTaken",
    "SetDataSchema",
    "SetTransform",
    "Span",
    "StoreError",
    "Transaction",
    "VersionUnreadable",
    "Work",
    "WorkBlock",
    "checkpoint_of",
    "lines_of",
    "slice_of",
    "transform_of",
]
