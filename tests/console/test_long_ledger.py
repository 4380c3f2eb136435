"""A long ledger opens as fast as a short one: what an answer reads does not grow with the chain."""

from dataclasses import replace

import pytest

from bench.console import grow
from dagkit.console.tables import Asked
from dagkit.console.window_answers import POINTS, Series, overview, table_of_all
from dagkit.engine.record.history import application_chain, block_of, stride, window_at
from dagkit.ledger import Ledger, Pointer
from dagkit.runs.inventory.arrivals import Noted

pytestmark = pytest.mark.slow


def blocks_read(folder):
    with folder.windows() as chain:
        return chain.log.blocks_read


def test_what_the_page_shows_first_reads_few_blocks(long):
    before = blocks_read(long)
    overview(long, allows_control=False)
    assert len(table_of_all(long).page(Asked(limit=10))["rows"]) == 10
    assert POINTS / 2 < len(Series(long).answer()["at"]) <= POINTS + 1
    assert blocks_read(long) - before <= POINTS + 110


def test_a_series_reads_only_what_is_new(long):
    series = Series(long)
    known = series.answer()["window"]
    before = blocks_read(long)
    grow(Ledger.open(long.place, durable=False).chain("Copying"), 3)
    again = series.answer()["window"]
    assert set(known[:-1]) <= set(again)
    assert again[-1] == known[-1] + 3
    assert blocks_read(long) - before < 10


def test_what_windows_record_of_files_is_read_once(long):
    ledger = Ledger.open(long.place)
    chain = application_chain(ledger)
    known, before = Noted.of(ledger), chain.log.blocks_read
    assert Noted.of(ledger, known) == known
    assert chain.log.blocks_read - before < 5
    of_other_blocks = Pointer(seq=known.head.seq, hash=chain.read(0).hash)
    assert Noted.of(ledger, replace(known, receivers={"a": "b"}, head=of_other_blocks)) == known


def test_a_window_is_found_with_few_reads(long):
    with long.windows() as chain:
        for window in (1, 2, 1000):
            before, seq = chain.log.blocks_read, block_of(chain, window)
            assert chain.log.blocks_read - before < 60
            assert window_at(chain, seq).checkpoint.window == window
        assert block_of(chain, 10**6) is None


def test_a_sample_stays_one_while_the_chain_grows():
    assert [stride(blocks, 4) for blocks in (1, 4, 5, 8, 9, 100)] == [1, 1, 2, 2, 4, 32]
