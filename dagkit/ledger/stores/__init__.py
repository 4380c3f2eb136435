"""Storage for ledgers, behind one small protocol."""

from dagkit.ledger.stores.addresses import Place, open_store
from dagkit.ledger.stores.local import LocalStore
from dagkit.ledger.stores.memory import MemoryStore
from dagkit.ledger.stores.store import KeyMissing, KeyTaken, Store

__all__ = ["KeyMissing", "KeyTaken", "LocalStore", "MemoryStore", "Place", "Store", "open_store"]
