"""Every byte of every file exactly once, or the name of the gap or the overlap."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.ledger import EmittedItem, Span, Work, WorkBlock
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.audit.work_audit import Audit
from dagkit.ledger.format.recorded_work import InputWork
from dagkit.ledger.format.span_sets import joined, overlaps, without
from dagkit.ranges.progress import SHARES
from tests.cases import cases
from tests.ledger.desk import APPLICATION, SPLITTER, Desk, faults_in, is_complete


def found(*spans, **given):
    return lambda desk: desk.discover(*spans, **given)


def read(*consumed, rest=()):
    """A window reads these stretches and leaves the rest; or all that there is, without a checkpoint."""
    return lambda desk: desk.window(1, consumed=consumed or None, pending=rest)


def told(desk: Desk) -> list[tuple[str, str | None, int | None, str]]:
    """What the verifier says of bytes: code, chain, block, and the stretch."""
    faults = verify(desk.reopened_ledger()).faults
    return [(f.code.removeprefix("bytes-"), f.chain, f.block, " ".join(f.problem.split(" ")[:2])) for f in faults]


SPLIT = [read((0, 30), rest=[(30, 100)]), read((30, 31), (60, 100), rest=[(31, 60)]), read((31, 60))]
COMPLETE = {
    "read whole": [found((0, 10), (10, 20), size=25), read(), found((20, 25), size=25), read()],
    "a block split over three windows": [found((0, 100), size=100), *SPLIT],
    "two files": [found((0, 10), size=10), found((0, 10), source="b.txt", size=10), read()],
    "an empty stretch leaves no gap before it": [found((0, 10), (20, 20), size=10), read()],
    "a checkpoint that is not ours": [found((0, 10)), lambda desk: desk.keep(b"\xff opaque")],
}


@pytest.mark.parametrize("acts", COMPLETE.values(), ids=COMPLETE)
def test_a_file_read_once_is_complete(desk, acts):
    for act in acts:
        act(desk)
    assert is_complete(desk)


TEN, HUNDRED, HALF = found((0, 10)), found((0, 100)), read((0, 5), rest=[(5, 10)])
OF_ROOT, OF_WINDOW = (SPLITTER, None), (APPLICATION, 3)
UNREAD = {
    "what is pending": (
        [found((0, 100), size=120), read((0, 30), rest=[(30, 100)])],
        [("unread", *OF_ROOT, "a.txt[100, 120)"), ("unread", *OF_WINDOW, "a.txt[30, 100)")],
    ),
    "found and not consumed": ([TEN, read(), found((10, 20), (20, 30))], [("unread", *OF_ROOT, "a.txt[10, 30)")]),
    "only an empty stretch": ([found((0, 0), size=10), read()], [("unread", *OF_ROOT, "a.txt[0, 10)")]),
    "carried on": ([TEN, HALF, found((10, 20)), read()], [("unread", APPLICATION, 4, "a.txt[5, 10)")]),
    "no window owns up to it": ([HUNDRED, read((0, 30), (40, 100))], [("missing", *OF_WINDOW, "a.txt[30, 40)")]),
    "passed over": ([found((0, 10), (20, 30)), read()], [("missing", *OF_ROOT, "a.txt[10, 20)")]),
}


@pytest.mark.parametrize(("acts", "expected"), UNREAD.values(), ids=UNREAD)
def test_a_stretch_that_is_not_read_is_reported(desk, acts, expected):
    for act in acts:
        act(desk)
    assert told(desk) == expected
    assert verify(desk.reopened_ledger()).is_valid == ({code for code, *_ in expected} == {"unread"})


AGAIN = [TEN, read((0, 10)), found((10, 20)), read((10, 20)), TEN, read((0, 10))]
DOUBLED = {
    "two windows consumed it": (
        [HUNDRED, read((0, 50), rest=[(50, 100)]), read((40, 100))],
        (APPLICATION, 4, "a.txt[40, 50)"),
    ),
    "consumed and pending": ([HUNDRED, read((0, 60), rest=[(50, 100)])], (*OF_WINDOW, "a.txt[50, 60)")),
    "found twice": ([found((0, 20)), found((10, 30))], (SPLITTER, 3, "a.txt[10, 20)")),
    "given and consumed again": (AGAIN, (APPLICATION, 5, "a.txt[0, 10) was consumed before")),
    "not given": ([TEN, read((0, 10), (50, 60))], (*OF_WINDOW, "a.txt[50, 60) was not given to the window")),
    "pending and given again": (
        [TEN, HALF, found((5, 15)), read((5, 15))],
        (APPLICATION, 4, "a.txt[5, 10) was given twice"),
    ),
}


@pytest.mark.parametrize(("acts", "expected"), DOUBLED.values(), ids=DOUBLED)
def test_a_stretch_that_is_read_twice_is_doubled(desk, acts, expected):
    for act in acts:
        act(desk)
    faults = verify(desk.reopened_ledger()).faults
    assert expected in [(f.chain, f.block, f.problem[: len(expected[2])]) for f in faults if f.code == "bytes-doubled"]


def test_an_endless_source_is_pending_for_ever(desk):
    desk.emit([{"source": "feed", "start": 100}])
    work = {"consumed": [{"source": "feed", "start": 100, "end": 500}], "pending": [{"source": "feed", "start": 500}]}
    desk.keep(json.dumps({"work": work}).encode())
    assert ("unread", APPLICATION, 3, "feed[500, inf)") in told(desk)


@pytest.mark.parametrize(
    "row",
    [
        *({"source": "a.txt"}, {"source": "a.txt", "start": -1}, {"source": "a.txt", "start": 9, "end": 5}, [1]),
        *({"port": "lines"}, {"offset": -1, "port": "lines", "item": 1}, {"offset": 0, "port": "", "item": 1}),
    ],
    ids=str,
)
def test_a_row_that_is_neither_work_nor_an_item_is_named(desk, row):
    desk.emit([row])
    assert faults_in(desk) == [("work-unreadable", SPLITTER, 2)]


@pytest.mark.parametrize(
    "work",
    [5, {"consumed": [{"source": "a", "start": 300, "end": 310.5}], "pending": []}, {"consumed": [{"start": 1}]}],
    ids=str,
)
def test_work_that_cannot_be_read_does_not_pass_for_everything_consumed(desk, work):
    desk.discover((0, 10))
    desk.keep(json.dumps({"work": work}).encode())
    assert faults_in(desk) == [("work-unreadable", APPLICATION, 3)]


SPANS = st.lists(
    st.builds(lambda a, n: Span(source="f", start=a, end=a + n), st.integers(0, 30), st.integers(1, 10)),
    max_size=8,
)


def points(spans) -> set[int]:
    return {p for span in spans for p in range(span.start, span.end)}


@given(SPANS, SPANS)
def test_stretches_are_the_points_in_them(left, right):
    assert points(without(left, right)) == points(left) - points(right)
    assert points(joined(left)) == points(left)
    twice = {p for p in range(50) if sum(s.start <= p < s.end for s in left) > 1}
    assert points(overlaps(left)) == twice


@pytest.mark.slow
@given(st.lists(st.integers(1, 99), unique=True, max_size=12), st.data())
def test_however_a_file_is_cut_and_allocated_its_windows_are_complete(cuts, data):
    """A drawn schedule of splits: each window consumes some of the pending pieces, in part or whole."""
    desk = Desk()
    edges = [0, *sorted(cuts), 100]
    desk.discover(*pairwise(edges), size=100)
    pending = list(pairwise(edges))
    while pending:
        consumed, rest = [], []
        for start, end in pending:
            upto = data.draw(st.integers(start, end))
            consumed += [(start, upto)] if upto > start else []
            rest += [(upto, end)] if upto < end else []
        if not consumed:
            consumed, rest = pending, []
        desk.window(1, consumed=consumed, pending=rest)
        pending = rest
    assert is_complete(desk)


def test_a_stretch_ends_where_it_starts_or_later():
    assert Span(source="f", start=5, end=5).end == 5
    with pytest.raises(ValueError, match=r"f\[9, 5\) ends before it starts"):
        Span(source="f", start=9, end=5)


def test_items_among_the_blocks_are_no_work(desk):
    block = WorkBlock(source="a.txt", start=0, end=10, size=10).as_json()
    items = [EmittedItem(offset=n, port="lines", item=item).as_json() for n, item in ((0, {"a": [1]}), (2, None))]
    desk.emit([items[0], block, items[1]])
    assert told(desk) == [("unread", SPLITTER, None, "a.txt[0, 10)")]
    desk.window(1)
    desk.emit([EmittedItem(offset=3, port="lines", item="the last").as_json()])
    desk.window(1)
    verdict = verify(desk.reopened_ledger())
    assert verdict.faults == ()
    assert not verdict.is_complete, "a window that records no work by input does not say what became of items"
    assert verdict.unproven == (
        f"{SPLITTER}: 3 items, from which earlier windows may have read without a record of it",
    )


# ---- work by the input that it is for


def span(start, end, source="a.txt", **given):
    return Span(source=source, start=start, end=end, **given)


def audited(*works, audit=None):
    """The flaws of the last of these windows; those before it have none."""
    audit = audit or Audit()
    flaws = [audit.window([], Work(inputs=(InputWork(input="reader.blocks", **work),))) for work in works]
    assert not any(flaws[:-1])
    return flaws[-1]


NINE = span(0, 9)


@cases(
    "work, kinds",
    ("all of it", {"found": (NINE,), "consumed": (span(0, 4),), "pending": (span(4, 9),)}, []),
    ("a hole", {"found": (NINE,), "consumed": (span(0, 4),), "pending": (span(5, 9),)}, ["missing"]),
    ("an overlap", {"found": (NINE,), "consumed": (span(0, 5),), "pending": (span(4, 9),)}, ["doubled"]),
    ("found twice and read once", {"found": (NINE, NINE), "consumed": (NINE,)}, ["missing"]),
    ("found twice and read twice", {"found": (NINE, NINE), "consumed": (NINE, NINE)}, []),
    ("found once and read twice", {"found": (NINE,), "consumed": (NINE, NINE)}, ["doubled"]),
    ("taken from a root that lists it not", {"given": (NINE,), "consumed": (NINE,)}, ["doubled"]),
)
def test_work_from_the_middle_is_consumed_as_often_as_it_was_found(work, kinds):
    assert [flaw.kind for flaw in audited({}, work)] == kinds


MUCH = (*(span(100 * n, 100 * n + 50) for n in range(4)), span(1000, None, "log"))
WAITED = {"found": MUCH, "pending": MUCH}
ENDLESS = (span(1000, None, "log"),)


@cases(
    "work, positions, endless, kinds",
    ("nothing was done", {}, -800, 1, []),
    ("parts were done", {"consumed": (span(20, 30), span(1000, 1007, "log"))}, -817, 1, []),
    ("what has no end was done", {"consumed": ENDLESS}, 200, 0, []),
    ("it came again, done once", {"found": (span(7, 9),), "consumed": (span(7, 9),)}, -800, 1, []),
    ("more came", {"found": (span(7, 9, "b"),)}, -798, 1, []),
    ("a position is not in the sum", {"consumed": (span(20, 30),)}, -811, 1, ["missing"]),
    ("what was done is in the sum", {"consumed": (span(20, 30),)}, -800, 1, ["doubled"]),
    ("what has no end was done and is in the sum", {"consumed": ENDLESS}, -800, 1, ["doubled"]),
    ("more was done than waited", {"consumed": (span(45, 55),)}, -805, 1, ["doubled"]),
    ("what never waited was done", {"consumed": (span(20, 30, "b"),)}, -800, 1, ["doubled"]),
)
def test_a_sum_of_what_waits_is_that_of_what_waited_and_was_not_done(work, positions, endless, kinds):
    waits = {"positions": positions, "endless": endless}
    assert [flaw.kind for flaw in audited(WAITED, {**work, "waits": waits})] == kinds


def test_what_a_sum_stands_for_is_compared_when_it_is_listed_again():
    audit = Audit()
    assert audited(WAITED, {"consumed": MUCH[:2], "waits": {"positions": -900, "endless": 1}}, audit=audit) == []
    assert sorted(map(str, audit.pending)) == sorted(map(str, MUCH[2:]))
    (flaw,) = audited({"consumed": MUCH[2:3], "pending": MUCH[4:]}, audit=audit)
    assert (flaw.kind, flaw.span) == ("missing", MUCH[3])


def test_a_source_that_waited_and_is_listed_no_more_is_missing():
    both = (NINE, span(0, 9, "b.txt"))
    (flaw,) = audited({"found": both, "pending": both}, {"pending": both[1:]})
    assert (flaw.kind, flaw.span) == ("missing", both[0])


def test_a_sum_counts_shares_apart_and_what_waited_before_it_was_marked_is_the_same_work():
    one, other = span(0, 8, shares=True), span(8, 16, shares=True)
    audit, both = Audit(), {"found": (one, other), "pending": (one, other)}
    assert audited(both, {"consumed": (one,), "waits": {"shares": 8}}, audit=audit) == []
    assert (audit.proven["reader.blocks"].waiting, audit.proven["reader.blocks"].waiting_shares) == (0, 8)
    audit, marked = Audit(), {"consumed": (span(0, 4, shares=True),), "pending": (span(4, 9, shares=True),)}
    assert audited({"found": (NINE,), "pending": (NINE,)}, marked, audit=audit) == []
    proven = audit.proven["reader.blocks"]
    assert (proven.positions, proven.shares, proven.waiting_shares) == (0, 4, 5)


@cases(
    "work, kinds",
    ("all of it", {"given": (span(10, 20),), "consumed": (span(5, 20),)}, []),
    ("what waited is gone", {"given": (span(10, 20),), "consumed": (span(10, 20),)}, ["missing"]),
    ("what the root listed is gone", {"consumed": (span(5, 10),)}, ["missing"]),
    ("what was read before is read again", {"given": (span(10, 20),), "consumed": (span(0, 20),)}, ["doubled"]),
)
def test_a_window_that_records_by_input_continues_one_that_did_not(work, kinds):
    audit, by_input = Audit(), Work(inputs=(InputWork(input="reader.blocks", **work),))
    audit.window([span(0, 10)], Work(consumed=(span(0, 5),), pending=(span(5, 10),)))
    assert [flaw.kind for flaw in audit.window([span(10, 20)], by_input)] == kinds


def test_lost_shares_are_named_in_percent():
    whole = span(0, SHARES, shares=True)
    (flaw,) = audited({}, {"found": (whole,), "consumed": (whole.model_copy(update={"start": 2**60}),)})
    assert str(flaw.span) == "a.txt[0.0 %, 25.0 %)"
