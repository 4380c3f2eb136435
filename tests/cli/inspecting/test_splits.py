"""`dagkit splits`: every split in a ledger, and the pending work."""

import pytest

from dagkit.api.running import Until
from dagkit.engine.program.facts import Split
from dagkit.engine.record.history import history
from dagkit.ledger import Ledger
from tests.engine.cast import Desk, Hurried, numbers_collected
from tests.engine.restriction_cast import CountFn, ShardReader, TableReader
from tests.engine.work_cast import numbers_of_names

RANGES = ((40, 3), (20,))


@pytest.fixture
def place(tmp_path):
    """The folder of an application whose windows were over as soon as they began, and with one slot to deal to."""
    desk = Desk(tmp_path, numbers_collected(RANGES, readers=1, waits_every=5), backend=Hurried)
    desk.run()
    return desk.place


def test_every_split_is_reported_with_its_window_its_place_and_its_reason(dagkit, place):
    """A slot stops where the next one begins: the splits of a block follow one another."""
    document = dagkit("splits", place, "--json").document
    splits = document["splits"]
    kept = [fact for entry in history(Ledger.open(place)) for fact in entry.checkpoint.facts if isinstance(fact, Split)]
    assert document["schema"] == "dagkit.splits/1"
    assert len(splits) == len(kept) >= 4
    first = splits[0]
    assert (first["window"], first["slot"], first["block"], first["source"]) == (1, 0, 0, "numbers")
    assert first["start"] < first["at"] < first["end"] == 40
    # on a slow machine the scheduler splits blocks too, by the time that it measured, for a reason of its own
    assert first["why"] == "its window was over"
    assert all(split["why"] for split in splits)
    of_first = [split for split in splits if split["block"] == 0]
    assert [split["start"] for split in of_first] == [0, *(split["at"] for split in of_first[:-1])]
    header, *rows = dagkit("splits", place).out.splitlines()
    assert header.split() == ["window", "slot", "block", "from", "split", "at", "to", "why", "source"]
    assert all(split["why"] in row for split, row in zip(splits, rows, strict=True))


def test_where_nothing_was_split_or_waits_or_there_is_no_ledger_it_says_so(dagkit, place, tmp_path):
    assert dagkit("splits", place, "--source", "letters").out == "nothing was split\n"
    assert dagkit("splits", place, "--waiting").out == "no pending work\n"
    assert dagkit("splits", str(tmp_path / "nowhere")).code == 6


def test_what_waits_is_reported_with_what_it_is_expected_to_take(dagkit, tmp_path):
    desk = Desk(tmp_path, numbers_collected(RANGES, readers=1, waits_every=5), backend=Hurried)
    desk.run(windows=1)
    document = dagkit("splits", desk.place, "--waiting", "--json").document
    rest, *others = document["waiting"]
    assert document["schema"] == "dagkit.waiting/1"
    assert all(each["element"] for each in document["waiting"]), "the ledger has no name for it"
    assert (rest["start"] + rest["positions"], rest["end"], rest["done_positions"]) == (40, 40, rest["start"])
    rate = rest["done_millis"] / rest["done_positions"]
    assert rest["expected_millis"] == pytest.approx(rate * rest["positions"], rel=0.01)
    assert [(each["start"], each["end"], each["done_positions"]) for each in others[:1]] == [(40, 43, 0)]
    header, first, *_ = dagkit("splits", desk.place, "--waiting").out.splitlines()
    assert header.split() == ["from", "to", "done", "before", "it", "expected", "source"]
    assert f"{rest['done_positions']} in " in first


def shards(home, *, windows, kind=ShardReader):
    """The folder of an application that reads four rows one by one, each in a window, and two other rows."""
    desk = Desk(home, numbers_of_names(((("x", 4),), (("y", 2),)), kind=kind), until=Until.IDLE, backend=Hurried)
    desk.run(windows=windows)
    return desk.place


def test_shares_that_were_split_and_that_wait_are_printed_in_percent(dagkit, tmp_path):
    place = shards(tmp_path, windows=1)
    assert dagkit("splits", place).out.splitlines()[1].split()[3:9] == ["0.0", "%", "25.0", "%", "100.0", "%"]
    (split,) = dagkit("splits", place, "--json").document["splits"]
    assert (split["start_share"], split["at_share"], split["end_share"]) == (0.0, 0.25, 1.0)
    assert dagkit("splits", place, "--waiting").out.splitlines()[1].startswith("25.0 %  100.0 %  25.0 % in ")
    (row,) = dagkit("splits", place, "--waiting", "--json").document["waiting"]
    shares = [row[name] for name in ("start_share", "end_share", "share", "done_share", "positions")]
    assert shares == [0.25, 1.0, 0.75, 0.25, None]
    assert '["x",4][25.0 %, 100.0 %) is pending' in dagkit("ledger", "verify", place, "--complete").err


def test_positions_have_no_shares(dagkit, tmp_path):
    place = shards(tmp_path, windows=1, kind=CountFn)
    (split,) = dagkit("splits", place, "--json").document["splits"]
    assert (split["at"], split["at_share"]) == (1, None)
    (row,) = dagkit("splits", place, "--waiting", "--json").document["waiting"]
    assert (row["positions"], row["share"]) == (3, None)


@pytest.mark.parametrize(
    ("kind", "windows", "done", "waiting", "count"),
    [
        (ShardReader, 1, 0.25, 0.75, "0.25 elements, every one read once, 0.75 elements wait"),
        (ShardReader, None, 2.0, 0.0, "2 elements, every one read once"),
        (TableReader, None, 2.0, 0.0, "2 elements, every one read once"),
        (CountFn, None, 0.0, 0.0, "6 positions, every one read once"),
        (CountFn, 1, 0.0, 0.0, "1 position, every one read once"),
    ],
)
def test_shares_are_verified_as_elements(dagkit, tmp_path, *, kind, windows, done, waiting, count):
    place = shards(tmp_path, windows=windows, kind=kind)
    assert count in dagkit("ledger", "verify", place).out.splitlines()[-1]
    (proven,) = dagkit("ledger", "verify", place, "--json").document["proven"]
    assert (proven["elements"], proven["waiting_elements"]) == (done, waiting)
    assert (proven["positions"] > 0) is (kind is CountFn)
