"""Readers of columns are measured on files that are made for it, and judged beside those of Spark."""

import pyarrow.compute as pc
import pytest

from bench import formats
from dagkit import Block
from dagkit.testing import Alone
from dagkit_operators import value


@pytest.mark.parametrize("name", formats.READERS)
def test_the_files_of_all_formats_hold_the_same_rows(name, tmp_path):
    path = formats.write_files(tmp_path, 50)[name]
    context = {"columns": formats.TAKEN, "where": value.field("price") >= formats.LEAST_PRICE}
    types = {} if name == "parquet" else {"types": formats.TYPES}
    reader = Alone(formats.READERS[name](reader_context={**context, **types}))
    length = path.stat().st_size
    reader.work(Block(0, str(path), 0, length, facts={"length": length}))
    kept = formats.table_of(50).filter(pc.field("price") >= formats.LEAST_PRICE).select(formats.TAKEN)
    assert [record.value for record in reader.sent()] == kept.to_pylist()


def test_the_page_says_whether_the_bound_holds():
    page = formats.in_words(
        [formats.Reading("csv", 10, [30, 31, 20], [20]), formats.Reading("json", 10, [20], [20])], 5, 1
    )
    assert "| csv | 10 | 30 (20 to 31) | 20 (20 to 20) | 1.50 | 1.5 | holds |" in page
    assert "| json | 10 | 20 (20 to 20) | 20 (20 to 20) | 1.00 | 1.5 | falls short |" in page
