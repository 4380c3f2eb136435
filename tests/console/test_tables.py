"""Tables are filtered, sorted and paged by the server, however many rows they have."""

import json

import pytest

from dagkit.console import tables
from dagkit.console.operator_answers import operators
from dagkit.console.tables import Asked, page_of
from dagkit.engine.record.status_file import read_status
from dagkit.ledger import Ledger
from tests.console.conftest import MANY, Served

expect = pytest.importorskip("playwright.sync_api", reason="no browser driver: pip install 'dagkit[dev]'").expect
MOST_BYTES = 20_000
"""The size of a page of a table, of 40 rows."""

ROWS = [
    {"window": 3, "seconds": 2.0, "read": {"byte": 5, "row": 1}, "why": None},
    {"window": 12345, "seconds": None, "read": {"byte": 9}, "why": "Read is slow"},
    {"window": 12, "seconds": 0.5, "read": {}, "why": "Write is slow"},
]


@pytest.mark.parametrize(
    ("asked", "windows"),
    [
        ({}, [3, 12345, 12]),
        ({"like": "SLOW"}, [12345, 12]),
        ({"like": "slow write"}, [12]),
        ({"like": '"is slow" "slow write"'}, []),
        ({"like": 'why="read is slow"'}, [12345]),
        ({"like": "12,345"}, [12345]),
        ({"like": "window"}, []),
        ({"like": "seconds>0.5"}, [3]),
        ({"like": "seconds<1 slow"}, [12]),
        ({"like": "window=12"}, [12]),
        ({"sort": "seconds"}, [12, 3, 12345]),
        ({"sort": "-seconds"}, [3, 12, 12345]),
        ({"sort": "-read"}, [12345, 3, 12]),
        ({"sort": "why"}, [12345, 12, 3]),
        ({"sort": "window", "after": 1, "limit": 1}, [12]),
    ],
    ids=[
        "as they are found",
        "text in any value, in any case",
        "every word",
        "words in quotes, which follow each other",
        "a condition with words in quotes",
        "a number as the page shows it",
        "names of columns are not searched",
        "a condition",
        "a condition and a word",
        "an exact value",
        "what is unknown comes last",
        "in both directions",
        "amounts by their sum",
        "text",
        "a page of the sorted rows",
    ],
)
def test_a_table_has_the_rows_that_are_asked_for(asked, windows):
    assert [row["window"] for row in page_of(ROWS, Asked(**asked))["rows"]] == windows


def test_a_page_names_the_next_one_and_how_many_rows_there_are_if_it_saw_all():
    pages = [page_of(iter(ROWS), Asked(after=after, limit=2)) for after in (0, 2)]
    assert [(len(page["rows"]), page["next"], page["total"]) for page in pages] == [(2, 2, None), (1, None, 3)]
    assert page_of(ROWS, Asked(sort="window", limit=1))["total"] == 3


@pytest.mark.slow
def test_a_sort_over_more_windows_than_one_answer_reads_continues_until_all_were_looked_at(long, monkeypatch):
    monkeypatch.setattr(tables, "LOOK_SECONDS", 0.0)
    table = tables.table_of_windows(long, lambda window: [{"window": window.checkpoint.window}])
    pages = [table.page(Asked(limit=3))]
    assert (pages[0]["looked"]["blocks"], pages[0]["continues"]) == (0, True)
    monkeypatch.setattr(tables, "LOOK_SECONDS", 0.01)
    while pages[-1]["continues"]:
        pages.append(table.page(Asked(sort="window", limit=3)))
    assert [row["window"] for row in pages[-1]["rows"]] == [1, 2, 3]
    assert len(pages) > 2
    looked = [page["looked"]["blocks"] for page in pages]
    assert looked == sorted(looked)
    assert pages[-1]["total"] == table.page(Asked(limit=1))["rows"][0]["window"]


@pytest.mark.slow
def test_a_page_of_a_table_is_small_however_many_windows_and_operators_there_are(long, finished, serve):
    with serve(long.place) as url:
        for name in ("windows", "blocks?chain=Copying&x=", "windows?sort=-seconds"):
            answer = Served(url).request(f"/api/v1/{name}{'&' if '?' in name else '?'}limit=40")
            assert (len(answer.document["rows"]), len(answer.body) < MOST_BYTES) == (40, True), name
    status = read_status(Ledger.open(finished).store)
    each = status.operators[1].model_copy(update={"received": 123_456_789, "sent_per_second": 12345.678901234567})
    many = [each.model_copy(update={"name": f"Clean-{number}"}) for number in range(1000)]
    page = page_of(list(operators(status.model_copy(update={"operators": tuple(many)}))), Asked(limit=40))
    assert (page["total"], len(json.dumps(page, separators=(",", ":"))) < MOST_BYTES) == (1000, True)


@pytest.mark.slow
def test_a_table_is_filtered_sorted_and_paged_in_the_page_and_the_address_keeps_that(long, serve, open_page):
    with serve(long.place) as url:
        page = open_page(url)
        page.evaluate("location.hash = '#/windows'")
        first, told = page.locator("td a").first, page.locator(".listing [role=status]")
        first.wait_for()
        newest = first.inner_text()
        page.get_by_role("button", name="Next page").click()
        expect(told).to_have_text("41\N{EN DASH}80")
        page.get_by_role("button", name="Window").click()
        expect(told).to_have_text(f"1\N{EN DASH}40 of {MANY + 4:,}")
        page.get_by_role("button", name="Window").click()
        expect(first).to_have_text("1")
        assert page.locator("th[aria-sort=ascending]").inner_text().startswith("Window")
        page.get_by_role("searchbox").fill(f"window={newest}")
        expect(told).to_have_text("1\N{EN DASH}1 of 1")
        page.reload()
        expect(first).to_have_text(newest)
        assert page.get_by_role("searchbox").input_value() == f"window={newest}"
        first.click()
        page.get_by_role("heading", name=f"Window {newest.replace(',', '')}", exact=True).wait_for()
        page.go_back()
        expect(told).to_have_text("1\N{EN DASH}1 of 1")
