"""The ledger: append-only, hash-linked chains that record what was discovered, consumed and produced."""

from dagkit.ledger.application_ledger import Ledger, transform_of
from dagkit.ledger.chain.chain import Chain
from dagkit.ledger.chain.contents import checkpoint_of, lines_of, slice_of
from dagkit.ledger.chain.transaction import Transaction
from dagkit.ledger.format.block import MetadataBlock, Pointer, Record
from dagkit.ledger.format.events import AddData, DatasetKind, ExecuteTransform, Seed, SetDataSchema, SetTransform
from dagkit.ledger.format.faults import (
    LEDGER_CODES,
    BlockNotFound,
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
from dagkit.ledger.format.recorded_work import EmittedItem, Span, Work, WorkBlock

__all__ = [
    "LEDGER_CODES",
    "AddData",
    "BlockNotFound",
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
