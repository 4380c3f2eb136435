"""The tables of `docs/metrics.md` are the lists in the code."""

import re

from dagkit.observers.lines import EVENTS
from dagkit.observers.prometheus import ALL, USER
from tests.docs.fences import ROOT
from tests.observers.test_lines import HAPPENINGS

PAGE = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")


def rows_below(heading, table):
    """The cells of the table under a heading whose first column is called so."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = section.partition(f"| {table} |")[2].splitlines()[2:]
    end = next((number for number, line in enumerate(lines) if not line.startswith("|")), len(lines))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[:end]]


def test_the_table_of_series_lists_them_all_in_order():
    expected = [[f"`{each.name}`", each.kind, ", ".join(each.labels), each.meaning] for each in ALL]
    *written, user = rows_below("Prometheus", "Series")
    assert written == expected
    assert user[0] == f"`{USER}NAME`"


def test_the_table_of_events_lists_them_with_their_keys():
    written = {cells[0].strip("`"): re.findall(r"`(\w+)`", cells[2]) for cells in rows_below("Lines of JSON", "Event")}
    assert list(written)[: len(EVENTS)] == list(EVENTS.values())
    for event, (_, keys) in HAPPENINGS.items():
        named = list(keys)[:4] if event == "reshaped" else list(keys)
        assert written[event] == named
