"""The parts of a page: headings, and tables without lines, which stay readable in a pipe."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dagkit.errors import printable


def heading(title: str, beside: str = "") -> Text:
    """A title with text beside it."""
    return Text.assemble((printable(title), "bold"), (f"  {printable(beside)}" if beside else "", "dim"))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Padding:
    """A table; a column whose name begins with # is aligned to the right."""
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    for column in columns:
        drawn.add_column(
            column.removeprefix("#"),
            justify="right" if column.startswith("#") else "left",
            overflow="fold",
            no_wrap=False,
        )
    for row in rows:
        drawn.add_row(*(cell if isinstance(cell, Text) else printable(str(cell)) for cell in row))
    return Padding(drawn, (0, 0, 0, 2), expand=False)


def section(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[Any]:
    """A heading with a table; empty if there are no rows."""
    return ["", heading(title), table(columns, rows)] if rows else []


def entry(name: str, beside: str, text: str) -> Padding:
    """A name with what is known of it, and text below."""
    below = [Padding(Text(printable(text)), (0, 0, 0, 2))] if text else []
    return Padding(Group(heading(name, beside), *below), (0, 0, 0, 2), expand=False)


def paragraph(text: str) -> Padding:
    """Indented text."""
    return Padding(Text(text), (0, 0, 0, 2), expand=False)


def as_json(value: object) -> str:
    """A value in one line, in the JSON form of plans."""
    return json.dumps(value, ensure_ascii=False, default=str)
