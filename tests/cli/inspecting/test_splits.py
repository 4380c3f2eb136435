"""`dagkit splits`: every split in a ledger, and the pending work."""

from pathlib import Path

import pytest

from dagkit.engine.facts import Split
from dagkit.engine.history.history import history
from dagkit.ledger import Ledger
from tests.engine.cast import Desk, Hurried, numbers_collected

RANGES = ((40, 3), (20,))


@pytest.fixture
def place(tmp_path: Path) -> str:
    """The folder of an application whose windows were over as soon as they began, and with one slot to deal to."""
    desk = Desk(tmp_path, numbers_collected(RANGES, readers=1, waits_every=5), backend=Hurried)
    desk.run()
    return desk.place


def test_every_split_is_reported_with_its_window_its_place_and_its_reason(dagkit, place: str) -> None:
    document = dagkit("splits", place, "--json").document
    assert document["schema"] == "dagkit.splits/1"
    splits = document["splits"]
    kept = [fact for entry in history(Ledger.open(place)) for fact in entry.checkpoint.facts if isinstance(fact, Split)]
    assert len(splits) == len(kept) >= 4
    first = splits[0]
    assert (first["window"], first["slot"], first["block"], first["source"]) == (1, 0, 0, "numbers")
    assert first["start"] < first["at"] < first["end"] == 40
    assert {split["why"] for split in splits} == {"its window was over"}


def test_what_was_split_off_is_what_is_split_next(dagkit, place: str) -> None:
    """A slot stops where the next one begins: the splits of a block follow one another."""
    of_first = [split for split in dagkit("splits", place, "--json").document["splits"] if split["block"] == 0]
    assert [split["start"] for split in of_first] == [0, *(split["at"] for split in of_first[:-1])]


def test_splits_for_people(dagkit, place: str) -> None:
    header, *rows = dagkit("splits", place).out.splitlines()
    assert header.split() == ["window", "slot", "block", "from", "split", "at", "to", "why", "source"]
    assert all("its window was over" in row for row in rows)
    assert dagkit("splits", place, "--source", "letters").out == "nothing was split\n"


def test_what_waits_is_reported_with_what_it_is_expected_to_take(dagkit, tmp_path: Path) -> None:
    desk = Desk(tmp_path, numbers_collected(RANGES, readers=1, waits_every=5), backend=Hurried)
    desk.run(windows=1)
    document = dagkit("splits", desk.place, "--waiting", "--json").document
    rest, *others = document["waiting"]
    assert document["schema"] == "dagkit.waiting/1"
    assert (rest["start"] + rest["positions"], rest["end"], rest["done_positions"]) == (40, 40, rest["start"])
    rate = rest["done_millis"] / rest["done_positions"]
    assert rest["expected_millis"] == pytest.approx(rate * rest["positions"], rel=0.01)
    assert [(each["start"], each["end"], each["done_positions"]) for each in others[:1]] == [(40, 43, 0)]
    header, first, *_ = dagkit("splits", desk.place, "--waiting").out.splitlines()
    assert header.split() == ["from", "to", "done", "before", "it", "expected", "source"]
    assert f"{rest['done_positions']} in " in first


def test_an_element_that_waits_is_reported_by_itself_where_the_ledger_has_no_name_for_it(
    dagkit, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, numbers_collected(RANGES, readers=1, waits_every=5), backend=Hurried)
    desk.run(windows=1)
    document = dagkit("splits", desk.place, "--waiting", "--json").document
    assert all(each["element"] for each in document["waiting"])


def test_nothing_waits_at_the_end(dagkit, place: str) -> None:
    assert dagkit("splits", place, "--waiting").out == "no pending work\n"


def test_where_there_is_no_ledger_it_says_so(dagkit, tmp_path: Path) -> None:
    assert dagkit("splits", str(tmp_path / "nowhere")).code == 6
