"""The benchmark of tables judges each kind by its own bound."""

import pyarrow.parquet as pa_parquet

from bench import tables


def test_the_rows_are_those_of_the_record_type(tmp_path):
    tables.write_rows(tmp_path / "rows.parquet", 20)
    rows = pa_parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    assert [tables.Row(**row).id for row in rows] == list(range(20))


def test_the_page_says_whether_each_bound_holds():
    page = tables.in_words([tables.Writing("PostgreSQL", [90], [100]), tables.Writing("Delta", [90], [100])], 5, 1)
    assert "| PostgreSQL | 90 (90 to 90) | 100 (100 to 100) | 0.90 | 1.0 | falls short |" in page
    assert "| Delta | 90 (90 to 90) | 100 (100 to 100) | 0.90 | 0.8 | holds |" in page
