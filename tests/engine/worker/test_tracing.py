"""What a slot notes of its records is read after its process has ended, and only then."""

import errno
import multiprocessing
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from dagkit.engine.program.address import Address
from dagkit.engine.program.lower import program_of
from dagkit.engine.work.item import WorkItem
from dagkit.engine.worker.tracing import MOST_SINGLE, Trace, TracedPlace, TracedReading, remove_traces, traced
from dagkit.ranges import OffsetRange
from dagkit.ranges.restriction import OffsetRestrictionTracker
from dagkit.schema.batch import Batch
from tests.backends.cast import Count, Upper, Words, chain
from tests.patience import within

INTO = Address.of("reader", "blocks")
WHOLE = TracedPlace(INTO, (7, 1), 0, 100, 0, 100, "reader")


def reading(trace, start=0, stop=100):
    tracker = OffsetRestrictionTracker(OffsetRange(start, stop))
    claims = TracedReading(trace)
    claims.begin(WorkItem(INTO, (7, 1), None, start, stop), "element", tracker)
    return claims, tracker


def test_the_place_of_a_process_that_was_killed_is_read(tmp_path):
    def die():
        _, tracker = reading(Trace.into(str(tmp_path), "0-0"))
        tracker.try_claim(41)
        os.kill(os.getpid(), signal.SIGKILL)

    process = multiprocessing.get_context("fork").Process(target=die)
    process.start()
    process.join(within(60))
    assert traced(str(tmp_path)) == [WHOLE.between(41, 100)]


@pytest.mark.parametrize(("failed", "places"), [(True, [WHOLE.between(10, 20)]), (False, [])])
def test_a_slot_that_runs_or_has_ended_is_left_out(tmp_path, failed, places):
    trace = Trace.into(str(tmp_path), "0-0")
    _, tracker = reading(trace)
    assert tracker.claim_many(range(10, 20)) == 10
    assert traced(str(tmp_path)) == []
    trace.end(failed=failed)
    assert traced(str(tmp_path)) == places


def test_a_slot_that_failed_before_it_noted_a_place_has_none(tmp_path):
    trace = Trace.into(str(tmp_path), "0-0")
    trace.enter("parse")
    trace.end(failed=True)
    assert traced(str(tmp_path)) == []


@pytest.mark.parametrize("ends_in", ["inner", "outer", "reader"])
def test_the_operator_whose_code_ran_last_is_read(tmp_path, ends_in):
    trace = Trace.into(str(tmp_path), "0-0")
    _, tracker = reading(trace)
    tracker.try_claim(41)

    def take(operator):
        if ends_in == operator:
            raise ValueError

    def outer(item):
        trace.within("inner", take)("inner")
        take(item)

    with suppress(ValueError):
        trace.within("outer", outer)("outer")
    trace.end(failed=True)
    (place,) = traced(str(tmp_path))
    assert place.operator == ends_in


def test_no_operator_is_named_after_the_records_that_are_delivered_one_by_one(tmp_path):
    trace = Trace.into(str(tmp_path), "0-0")
    _, tracker = reading(trace, stop=3 * MOST_SINGLE)

    def take(item):
        for _ in range(MOST_SINGLE):
            trace.count()
        trace.within("inner", print)()

    tracker.try_claim(0)
    trace.within("outer", take)(1)
    trace.enter("later")
    trace.end(failed=True)
    assert [place.operator for place in traced(str(tmp_path))] == [""]


def test_a_folder_without_locks_has_no_traces(tmp_path, monkeypatch):
    def refuse(file, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    before = len(list(Path("/dev/fd").iterdir()))
    assert Trace.into(str(tmp_path), "0-0") is None
    assert (traced(str(tmp_path)), len(list(Path("/dev/fd").iterdir()))) == ([], before)


def test_records_whose_positions_are_known_are_noted_one_by_one_up_to_a_number(tmp_path):
    trace, count = Trace.into(str(tmp_path), "0-0"), MOST_SINGLE + 10
    starts = range(3, 3 + 2 * count, 2)
    batch, noted = Batch.of(list(range(count))).placed(lambda: starts), []
    trace.note = noted.append
    place = TracedPlace(INTO, (7, 1), 0, 3 * count, 3, 3 + 2 * count)
    sizes = [len(each) for each in trace.one_by_one(batch, place)]
    assert sizes == [1] * MOST_SINGLE + [10]
    assert [(each.low, each.high) for each in noted[:2]] == [(2, 4), (4, 6)]
    assert (noted[-1].low, noted[-1].high) == (starts[MOST_SINGLE] - 1, starts[-1] + 1)


def test_what_follows_the_records_of_a_claim_is_noted_before_the_next_claim(tmp_path):
    trace = Trace.into(str(tmp_path), "0-0")
    claims, tracker = reading(trace)
    tracker.claim_many([10, 15])
    assert [len(each) for each in claims.sent(Batch.of("ab").placed(lambda: [10, 15]))] == [1, 1]
    trace.end(failed=True)
    assert traced(str(tmp_path)) == [WHOLE.between(16, 100)]


def test_records_that_were_claimed_together_are_noted_where_each_was_claimed(tmp_path):
    trace = Trace.into(str(tmp_path), "0-0")
    claims, tracker = reading(trace)
    tracker.claim_many([10, 15, 40])
    noted = []
    trace.note = noted.append
    assert [len(each) for each in claims.sent(Batch.of("abc"))] == [1, 1, 1]
    assert [(each.low, each.high) for each in noted] == [(10, 11), (15, 16), (40, 41), (41, 100)]


def test_a_slot_that_does_not_reach_the_folder_notes_nothing(tmp_path):
    assert Trace.into(str(tmp_path / "of another host"), "0-0") is None
    assert Trace.into(None, "0-0") is None


def test_the_folder_of_an_attempt_is_removed_with_that_of_its_window(tmp_path):
    folder = tmp_path / "staging" / "3" / "traces"
    folder.mkdir(parents=True)
    Trace.into(str(folder), "0-0").end(failed=True)
    remove_traces(str(folder))
    assert list(tmp_path.rglob("*")) == [tmp_path / "staging"]
    assert traced(str(folder)) == []


def test_the_program_of_workers_takes_origins_along_to_the_same_inputs_as_that_of_the_driver():
    program = program_of(chain(words=Words(), upper=Upper(), count=Count()))
    placed = program.placing(program.stage_of).placed
    assert program.for_workers().placing(program.stage_of).placed == placed == {("upper", "input"), ("count", "words")}
