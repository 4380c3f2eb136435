"""Rows between two levels in files: each slot reads its own, and nothing stays behind."""

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dagkit.backends.spark.shipping.level_files import read_rows, write_rows
from dagkit.backends.spark.shipping.rows import Kind, Row, batch_of, rows_in


def contents(batches: Any) -> list[tuple[int, int, Kind, bytes]]:
    return [(*row[:3], row.payload.to_pybytes()) for batch in batches for row in rows_in(batch)]


SLOTS = 3
ROWS = st.builds(Row, st.integers(-1, 2), st.integers(0, 8), st.sampled_from(Kind), st.binary(max_size=200))


@given(st.lists(st.lists(st.lists(ROWS, min_size=1, max_size=6), max_size=4), max_size=3))
def test_each_slot_reads_its_rows_in_their_order(tmp_path_factory, tasks):
    folder = tmp_path_factory.mktemp("rows")
    paths = [write_rows((batch_of(rows, SLOTS) for rows in batches), str(folder)) for batches in tasks]
    for slot in range(SLOTS):
        expected = [row for batches in tasks for rows in batches for row in rows if row.to % SLOTS == slot]
        assert contents(read_rows(paths, slot)) == [tuple(row) for row in expected]


def test_rows_outlive_their_file(tmp_path):
    path = write_rows([batch_of([Row(1, 0, Kind.ITEMS, b"row" * 100_000)], 1)], str(tmp_path))
    batches = list(read_rows([path], 0))
    Path(path).unlink()
    assert contents(batches) == [(1, 0, Kind.ITEMS, b"row" * 100_000)]
