"""DuckDB: a table of one column whose separator never occurs."""

from pathlib import Path

import duckdb  # type: ignore[import-not-found, unused-ignore]

_COPY = """
COPY (
    SELECT line FROM read_csv('{source}', columns = {{'line': 'VARCHAR'}}, auto_detect = false, header = false,
                              delim = '\x01', quote = '', escape = '', new_line = '\\n')
    WHERE NOT starts_with(line, '.')
) TO '{target}' (FORMAT csv, HEADER false, DELIM '\x01', QUOTE '', ESCAPE '', PER_THREAD_OUTPUT)
"""


def copy(source: Path, target: Path) -> None:
    """`COPY (SELECT … WHERE …) TO`, a file for each thread, in any order: DuckDB's fastest way from lines to lines."""
    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(_COPY.format(source=source, target=target / "kept"))
