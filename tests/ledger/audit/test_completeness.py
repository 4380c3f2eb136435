"""Every byte of every file exactly once, or the name of the gap or the overlap."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.ledger import EmittedItem, Span, Work, WorkBlock, checkpoint_of, lines_of, slice_of
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.audit.work_audit import Audit, Window
from dagkit.ledger.format.recorded_work import InputWork
from dagkit.ledger.format.span_sets import joined, overlaps, without
from dagkit.ranges.shares import SHARES
from tests.ledger.desk import APPLICATION, SPLITTER, Desk


def told(desk: Desk) -> list[tuple[str, str | None, int | None, str]]:
    """What the verifier says of bytes: code, chain, block, and the stretch."""
    return [
        (f.code, f.chain, f.block, f.problem.split(" ", 1)[0] + " " + f.problem.split(" ")[1])
        for f in verify(desk.reopened_ledger()).faults
    ]


def test_a_file_read_whole_is_complete(desk):
    desk.discover((0, 10), (10, 20), size=25)
    desk.window(2)
    desk.discover((20, 25), size=25)
    desk.window(1)
    assert verify(desk.reopened_ledger()).is_complete


def test_a_block_split_over_three_windows_is_complete(desk):
    desk.discover((0, 100), size=100)
    desk.window(1, consumed=[(0, 30)], pending=[(30, 100)])
    desk.window(1, consumed=[(30, 31), (60, 100)], pending=[(31, 60)])
    desk.window(1, consumed=[(31, 60)])
    assert verify(desk.reopened_ledger()).is_complete


def test_what_is_pending_is_reported_and_is_no_fault(desk):
    desk.discover((0, 100), size=120)
    desk.window(1, consumed=[(0, 30)], pending=[(30, 100)])
    verdict = verify(desk.reopened_ledger())
    assert (verdict.is_valid, verdict.is_complete) == (True, False)
    assert told(desk) == [
        ("bytes-unread", SPLITTER, None, "a.txt[100, 120)"),
        ("bytes-unread", APPLICATION, 3, "a.txt[30, 100)"),
    ]


def test_what_was_discovered_and_not_consumed_is_reported(desk):
    desk.discover((0, 10))
    desk.window(1)
    desk.discover((10, 20), (20, 30))
    assert told(desk) == [("bytes-unread", SPLITTER, None, "a.txt[10, 30)")]


def test_a_stretch_that_no_window_owns_up_to_is_missing(desk):
    desk.discover((0, 100))
    desk.window(1, consumed=[(0, 30), (40, 100)])
    assert told(desk) == [("bytes-missing", APPLICATION, 3, "a.txt[30, 40)")]


def test_a_stretch_that_two_windows_consumed_is_doubled(desk):
    desk.discover((0, 100))
    desk.window(1, consumed=[(0, 50)], pending=[(50, 100)])
    desk.window(1, consumed=[(40, 100)])
    assert ("bytes-doubled", APPLICATION, 4, "a.txt[40, 50)") in told(desk)


def test_a_stretch_consumed_and_pending_is_doubled(desk):
    desk.discover((0, 100))
    desk.window(1, consumed=[(0, 60)], pending=[(50, 100)])
    assert ("bytes-doubled", APPLICATION, 3, "a.txt[50, 60)") in told(desk)


def test_a_stretch_discovered_twice_is_doubled(desk):
    desk.discover((0, 20))
    desk.discover((10, 30))
    assert ("bytes-doubled", SPLITTER, 3, "a.txt[10, 20)") in told(desk)


def test_a_stretch_that_was_passed_over_is_missing(desk):
    desk.discover((0, 10), (20, 30))
    desk.window(1)
    assert told(desk) == [("bytes-missing", SPLITTER, None, "a.txt[10, 20)")]


def test_files_are_distinguished(desk):
    for source in ("a.txt", "b.txt"):
        desk.discover((0, 10), source=source, size=10)
    desk.window(2)
    assert verify(desk.reopened_ledger()).is_complete


def test_an_endless_source_is_pending_for_ever(desk):
    planned = desk.root.plan_next()
    content = lines_of([{"source": "feed", "start": 100}])
    desk.root.append(planned.add_data(slice_of(content, 0, 1)), [content], planned=planned)
    planned = desk.app.plan_next()
    state = json.dumps(
        {
            "work": {
                "consumed": [{"source": "feed", "start": 100, "end": 500}],
                "pending": [{"source": "feed", "start": 500}],
            }
        }
    ).encode()
    desk.app.append(planned.execute(checkpoint=checkpoint_of(state)), [state], planned=planned)
    assert ("bytes-unread", APPLICATION, 3, "feed[500, inf)") in told(desk)


def test_a_carried_checkpoint_says_nothing_new_of_work(desk):
    desk.discover((0, 10))
    desk.window(1, consumed=[(0, 5)], pending=[(5, 10)])
    desk.discover((10, 20))
    desk.window(1)
    assert told(desk) == [("bytes-unread", APPLICATION, 4, "a.txt[5, 10)")]


@pytest.mark.parametrize(
    "row",
    [{"source": "a.txt"}, {"source": "a.txt", "start": -1}, {"source": "a.txt", "start": 9, "end": 5}, [1]],
    ids=str,
)
def test_a_list_of_work_that_is_none_is_named(desk, row):
    planned = desk.root.plan_next()
    content = lines_of([row])
    desk.root.append(planned.add_data(slice_of(content, 0, 1)), [content], planned=planned)
    faults = verify(desk.reopened_ledger()).faults
    assert [(f.code, f.chain, f.block) for f in faults] == [("work-unreadable", SPLITTER, 2)]


def test_a_checkpoint_that_is_not_ours_is_left_alone(desk):
    desk.discover((0, 10))
    planned = desk.app.plan_next()
    desk.app.append(planned.execute(checkpoint=checkpoint_of(b"\xff opaque")), [b"\xff opaque"], planned=planned)
    assert verify(desk.reopened_ledger()).is_complete


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
    assert verify(desk.reopened_ledger()).is_complete


def doubled(desk: Desk) -> list[tuple[str, int | None, str]]:
    """Every stretch that is doubled: chain, block, and why."""
    faults = verify(desk.reopened_ledger()).faults
    return [(f.chain, f.block, f.problem) for f in faults if f.code == "bytes-doubled"]


def test_a_stretch_that_was_given_and_consumed_again_is_doubled(desk):
    for _ in range(2):
        desk.discover((0, 10))
        desk.window(1, consumed=[(0, 10)])
        if desk.root.standing.offset == 0:
            desk.discover((10, 20))
            desk.window(1, consumed=[(10, 20)])
    assert (APPLICATION, 5, "a.txt[0, 10) was consumed before") in doubled(desk)


def test_a_window_must_not_consume_a_range_that_it_was_not_given(desk):
    desk.discover((0, 10))
    desk.window(1, consumed=[(0, 10), (50, 60)])
    assert doubled(desk) == [(APPLICATION, 3, "a.txt[50, 60) was not given to the window")]


def test_a_stretch_that_is_pending_and_given_again_is_doubled(desk):
    desk.discover((0, 10))
    desk.window(1, consumed=[(0, 5)], pending=[(5, 10)])
    desk.discover((5, 15))
    desk.window(1, consumed=[(5, 15)])
    assert (APPLICATION, 4, "a.txt[5, 10) was given twice") in doubled(desk)


@pytest.mark.parametrize(
    "work",
    [5, {"consumed": [{"source": "a", "start": 300, "end": 310.5}], "pending": []}, {"consumed": [{"start": 1}]}],
    ids=str,
)
def test_work_that_cannot_be_read_does_not_pass_for_everything_consumed(desk, work):
    desk.discover((0, 10))
    content = json.dumps({"work": work}).encode()
    planned = desk.app.plan_next()
    desk.app.append(planned.execute(checkpoint=checkpoint_of(content)), [content], planned=planned)
    faults = verify(desk.reopened_ledger()).faults
    assert [(f.code, f.chain, f.block) for f in faults] == [("work-unreadable", APPLICATION, 3)]


def test_a_stretch_ends_where_it_starts_or_later():
    assert Span(source="f", start=5, end=5).end == 5
    with pytest.raises(ValueError, match=r"f\[9, 5\) ends before it starts"):
        Span(source="f", start=9, end=5)


def test_an_empty_stretch_leaves_no_gap_before_it(desk):
    desk.discover((0, 10), (20, 20), size=10)
    desk.window(1)
    assert verify(desk.reopened_ledger()).is_complete


def test_a_source_of_which_only_an_empty_stretch_was_discovered_is_still_to_come(desk):
    desk.discover((0, 0), size=10)
    desk.window(1)
    assert told(desk) == [("bytes-unread", SPLITTER, None, "a.txt[0, 10)")]


def emit(desk: Desk, *rows: dict) -> None:
    """The splitter appends these rows as they are."""
    planned = desk.root.plan_next()
    content = lines_of(list(rows))
    desk.root.append(planned.add_data(slice_of(content, planned.next_offset, len(rows))), [content], planned=planned)


def test_items_among_the_blocks_are_no_work(desk):
    block = WorkBlock(source="a.txt", start=0, end=10, size=10).as_json()
    items = [EmittedItem(offset=n, port="lines", item=item).as_json() for n, item in ((0, {"a": [1]}), (2, None))]
    emit(desk, items[0], block, items[1])
    assert told(desk) == [("bytes-unread", SPLITTER, None, "a.txt[0, 10)")]
    desk.window(1)
    emit(desk, EmittedItem(offset=3, port="lines", item="the last").as_json())
    desk.window(1)
    verdict = verify(desk.reopened_ledger())
    assert verdict.faults == ()
    assert not verdict.is_complete, "a window that records no work by input does not say what became of items"
    assert verdict.unproven == (
        f"{SPLITTER}: 3 items, from which earlier windows may have read without a record of it",
    )


def test_an_item_may_be_null_and_says_so():
    row = EmittedItem(offset=0, port="lines", item=None).as_json()
    assert row == {"offset": 0, "port": "lines", "item": None}
    assert EmittedItem.model_validate(row).as_json() == row


@pytest.mark.parametrize(
    "row",
    [{"port": "lines"}, {"offset": -1, "port": "lines", "item": 1}, {"offset": 0, "port": "", "item": 1}],
    ids=str,
)
def test_an_item_that_is_none_is_named(desk, row):
    emit(desk, row)
    faults = verify(desk.reopened_ledger()).faults
    assert [(f.code, f.chain, f.block) for f in faults] == [("work-unreadable", SPLITTER, 2)]


# ---- work by the input that it is for


def span(start, end, source="a.txt"):
    return Span(source=source, start=start, end=end)


def one_input(**work):
    return Work(inputs=(InputWork(input="reader.blocks", **work),))


@pytest.mark.parametrize(
    ("work", "kinds"),
    [
        ({"found": (span(0, 9),), "consumed": (span(0, 4),), "pending": (span(4, 9),)}, []),
        ({"found": (span(0, 9),), "consumed": (span(0, 4),), "pending": (span(5, 9),)}, ["missing"]),
        ({"found": (span(0, 9),), "consumed": (span(0, 5),), "pending": (span(4, 9),)}, ["doubled"]),
        ({"found": (span(0, 9), span(0, 9)), "consumed": (span(0, 9),)}, ["missing"]),
        ({"found": (span(0, 9), span(0, 9)), "consumed": (span(0, 9), span(0, 9))}, []),
        ({"found": (span(0, 9),), "consumed": (span(0, 9), span(0, 9))}, ["doubled"]),
        ({"given": (span(0, 9),), "consumed": (span(0, 9),)}, ["doubled"]),
    ],
    ids=[
        "all of it",
        "a hole",
        "an overlap",
        "found twice and read once",
        "found twice and read twice",
        "found once and read twice",
        "taken from a root that lists it not",
    ],
)
def test_work_from_the_middle_is_consumed_as_often_as_it_was_found(work, kinds):
    audit = Audit()
    audit.window(Window([], one_input()))
    assert [flaw.kind for flaw in audit.window(Window([], one_input(**work)))] == kinds


MUCH = (*(span(100 * n, 100 * n + 50) for n in range(4)), span(1000, None, "log"))


@pytest.mark.parametrize(
    ("work", "waits", "kinds"),
    [
        ({}, {"positions": -800, "endless": 1}, []),
        ({"consumed": (span(20, 30), span(1000, 1007, "log"))}, {"positions": -817, "endless": 1}, []),
        ({"consumed": (span(1000, None, "log"),)}, {"positions": 200}, []),
        ({"found": (span(7, 9),), "consumed": (span(7, 9),)}, {"positions": -800, "endless": 1}, []),
        ({"found": (span(7, 9, "b"),)}, {"positions": -798, "endless": 1}, []),
        ({"consumed": (span(20, 30),)}, {"positions": -811, "endless": 1}, ["missing"]),
        ({"consumed": (span(20, 30),)}, {"positions": -800, "endless": 1}, ["doubled"]),
        ({"consumed": (span(1000, None, "log"),)}, {"positions": -800, "endless": 1}, ["doubled"]),
        ({"consumed": (span(45, 55),)}, {"positions": -805, "endless": 1}, ["doubled"]),
        ({"consumed": (span(20, 30, "b"),)}, {"positions": -800, "endless": 1}, ["doubled"]),
    ],
    ids=[
        "nothing was done",
        "parts were done",
        "what has no end was done",
        "what waited came again and was done once",
        "more came",
        "a position is not in the sum",
        "what was done is in the sum",
        "what has no end was done and is in the sum",
        "more was done than waited",
        "what never waited was done",
    ],
)
def test_a_sum_of_what_waits_is_that_of_what_waited_and_was_not_done(work, waits, kinds):
    audit = Audit()
    assert audit.window(Window([], one_input(found=MUCH, pending=MUCH))) == []
    assert [flaw.kind for flaw in audit.window(Window([], one_input(**work, waits=waits)))] == kinds


def test_what_a_sum_stands_for_is_compared_when_it_is_listed_again():
    audit = Audit()
    audit.window(Window([], one_input(found=MUCH, pending=MUCH)))
    audit.window(Window([], one_input(consumed=MUCH[:2], waits={"positions": -900, "endless": 1})))
    assert sorted(map(str, audit.pending)) == sorted(map(str, MUCH[2:]))
    (flaw,) = audit.window(Window([], one_input(consumed=MUCH[2:3], pending=MUCH[4:])))
    assert (flaw.kind, flaw.span) == ("missing", MUCH[3])


def test_a_source_that_waited_and_is_listed_no_more_is_missing():
    audit = Audit()
    both = (span(0, 9), span(0, 9, "b.txt"))
    audit.window(Window([], one_input(found=both, pending=both)))
    (flaw,) = audit.window(Window([], one_input(pending=both[1:])))
    assert (flaw.kind, flaw.span) == ("missing", both[0])


def test_a_sum_counts_shares_apart():
    one, other = (Span(source="a.txt", start=at, end=at + 8, shares=True) for at in (0, 8))
    audit = Audit()
    audit.window(Window([], one_input(found=(one, other), pending=(one, other))))
    assert audit.window(Window([], one_input(consumed=(one,), waits={"shares": 8}))) == []
    assert (audit.proven["reader.blocks"].waiting, audit.proven["reader.blocks"].waiting_shares) == (0, 8)


@pytest.mark.parametrize(
    ("work", "kinds"),
    [
        ({"given": (span(10, 20),), "consumed": (span(5, 20),)}, []),
        ({"given": (span(10, 20),), "consumed": (span(10, 20),)}, ["missing"]),
        ({"consumed": (span(5, 10),)}, ["missing"]),
        ({"given": (span(10, 20),), "consumed": (span(0, 20),)}, ["doubled"]),
    ],
    ids=["all of it", "what waited is gone", "what the root listed is gone", "what was read before is read again"],
)
def test_a_window_that_records_by_input_continues_one_that_did_not(work, kinds):
    audit = Audit()
    audit.window(Window([span(0, 10)], Work(consumed=(span(0, 5),), pending=(span(5, 10),))))
    assert [flaw.kind for flaw in audit.window(Window([span(10, 20)], one_input(**work)))] == kinds


def test_shares_that_waited_before_they_were_marked_are_the_same_work():
    audit = Audit()
    audit.window(Window([], one_input(found=(span(0, 9),), pending=(span(0, 9),))))
    rest = (Span(source="a.txt", start=4, end=9, shares=True),)
    done = (Span(source="a.txt", start=0, end=4, shares=True),)
    assert audit.window(Window([], one_input(consumed=done, pending=rest))) == []
    proven = audit.proven["reader.blocks"]
    assert (proven.positions, proven.shares, proven.waiting_shares) == (0, 4, 5)


def test_lost_shares_are_named_in_percent():
    audit = Audit()
    audit.window(Window([], one_input()))
    whole = Span(source="a.txt", start=0, end=SHARES, shares=True)
    (flaw,) = audit.window(Window([], one_input(found=(whole,), consumed=(whole.model_copy(update={"start": 2**60}),))))
    assert str(flaw.span) == "a.txt[0.0 %, 25.0 %)"
