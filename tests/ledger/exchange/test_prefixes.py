"""A copy of the beginning of a chain is the chain as it was, and can be continued."""

from datetime import UTC, datetime

import pytest

from dagkit.ledger import Ledger
from dagkit.ledger.stores import MemoryStore
from dagkit.runs.restarting import copy_chain
from tests.ledger.chain.test_log import long_chain

pytestmark = pytest.mark.slow

LATER = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.mark.gate(3)
@pytest.mark.parametrize("last", [0, 700, 999, 1000, 1003])
def test_a_copy_ends_within_packed_blocks_or_after_them(last):
    chain, store = long_chain(1004).root, MemoryStore()
    Ledger.create(store)
    copy_chain(chain, store, last)
    ledger = Ledger.open(store)
    copy = ledger.chain(chain.name)
    assert [record.hash for record in copy.records()] == [record.hash for record in chain.records(0, last)]
    assert bool(copy.log.sealed()) is (last >= 1000)
    assert copy.append(copy.plan_next().add_data(watermark=LATER)).seq == last + 1
