"""Work that cannot be read is given up on request: the rest is processed, and the ledger proves both."""

from typing import Any

import pytest

from dagkit.api.running import Until
from dagkit.engine.parts.requests import GiveUp, Request, Retry
from dagkit.engine.parts.run_part import Look
from dagkit.engine.program.facts import Decided
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.program.points import Point
from dagkit.engine.record.work_history import listed_work
from dagkit.ledger.audit.verify import verify
from dagkit.testing import FakeClock
from dagkit.testing.crashes import CrashAfter
from tests.engine.cast import Desk, lines_through_filter
from tests.engine.parts.cast import answer, facts_in, lines, request, splitting
from tests.patience import within


def found_by(desk: Desk) -> Desk:
    """Let input operators look once, and commit nothing."""
    loop = desk.loop()
    loop._begin()
    inputs = loop.parts.inputs
    while not inputs.found:
        loop._perform(Look())
        while inputs.is_busy:
            assert loop.run_state.woken.wait(within(30)), "the scan ends"
    return desk


@pytest.fixture
def found(tmp_path):
    """Three files are found, of which each has two blocks."""
    (tmp_path / "in").mkdir()
    for name in "abc":
        (tmp_path / "in" / f"{name}.txt").write_text(f"{name}\n{name}\n")
    return found_by(Desk(tmp_path, splitting(tmp_path, blocks_threshold=9), until=Until.IDLE, clock=FakeClock()))


@pytest.fixture
def desk(found):
    """The second of the three files is deleted."""
    (found.home / "in" / "b.txt").unlink()
    return found


def give_up(desk: Desk, name: str = "b.txt", **given: Any) -> Request:
    return request(desk, GiveUp(names=(str(desk.home / "in" / name),), by="ada", reason="deleted", **given))


def given_up(desk: Desk) -> list[tuple[int, int]]:
    """What the ledger proves to be given up, without a fault."""
    assert desk.faults() == []
    (proven,) = verify(desk.ledger()).proven
    return [(span.start, span.end) for span in proven.given_up]


def test_a_launch_that_stops_at_a_deleted_file_resumes_without_it_once_it_is_given_up(desk):
    for _ in range(2):
        with pytest.raises(OperatorFailed, match=r"b\.txt"):
            desk.run()
    asked = give_up(desk)
    assert lines(desk.run()) == ["a", "a", "c", "c"]
    assert answer(desk, asked).done
    assert lines(desk.run()) == ["a", "a", "c", "c"]
    decided = facts_in(desk.ledger(), Decided)
    assert [(fact.decision, fact.start, fact.end, fact.by, fact.reason) for fact in decided] == [
        ("given-up", 0, 2, "ada", "deleted"),
        ("given-up", 2, 4, "ada", "deleted"),
    ]
    assert all(fact.source.startswith(str(desk.home / "in" / "b.txt")) for fact in decided)
    assert given_up(desk) == [(0, 4)]
    assert verify(desk.ledger()).proven[0].positions == 8


def test_the_work_that_was_given_up_is_listed(desk):
    assert [(each.state, each.place.start) for each in listed_work(desk.ledger())] == [("found", 0), ("found", 2)] * 3
    give_up(desk)
    desk.run()
    listed = [(each.state, each.operator, each.by, each.reason) for each in listed_work(desk.ledger())]
    assert listed == [("given up", "reader", "ada", "deleted")] * 2


def test_a_range_is_given_up_and_the_rest_is_read(found):
    give_up(found, start=2, end=3)
    assert lines(found.run()) == ["a", "a", "b", "c", "c"]
    assert given_up(found) == [(2, 3)]


@pytest.mark.parametrize("promised", [False, True], ids=["nothing is promised", "a promised window reads it"])
@pytest.mark.parametrize("point", [Point.PLANNED, Point.STAGED, Point.APPENDED, Point.FINISHED])
def test_it_is_given_up_once_wherever_the_driver_is_killed(point, promised, desk):
    if promised:
        with pytest.raises(OperatorFailed):
            desk.run()
    asked = give_up(desk)
    desk.crash(*(CrashAfter(point) for _ in range(2)))
    assert lines(desk.run()) == ["a", "a", "c", "c"]
    assert answer(desk, asked).done
    assert given_up(desk) == [(0, 4)]


def test_two_deleted_files_are_given_up_one_after_the_other(desk):
    (desk.home / "in" / "a.txt").unlink()
    give_up(desk)
    with pytest.raises(OperatorFailed, match=r"a\.txt"):
        desk.run()
    give_up(desk, "a.txt")
    assert lines(desk.run()) == ["c", "c"]
    assert desk.faults() == []


@pytest.mark.parametrize(
    ("asks", "reason"),
    [
        (GiveUp(names=("none.txt",), by="ada"), "no such work waits"),
        (GiveUp(names=(), by="ada", operator="collect"), "no such work waits"),
        (Retry(by="ada"), "no such work was set aside"),
    ],
    ids=["another name", "another operator", "nothing was set aside"],
)
def test_a_request_that_concerns_no_work_is_refused(asks, reason, found):
    asked = request(found, asks)
    assert lines(found.run()) == ["a", "a", "b", "b", "c", "c"]
    assert reason in answer(found, asked).refused


def test_the_output_of_a_file_whose_last_block_is_given_up_is_complete(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("one\ntwo\nfour\n")
    desk = found_by(Desk(tmp_path, lines_through_filter(tmp_path), until=Until.IDLE, clock=FakeClock()))
    give_up(desk, "a.txt", start=5)
    desk.run()
    assert list(desk.outputs().values()) == [b"one\ntwo\n"]
    assert desk.leftovers() == []
    assert desk.faults() == []
