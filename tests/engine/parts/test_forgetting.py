"""A file that is forgotten on request is read once more, whatever happens."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dagkit import InputPort, OutputPort, SplittableOperator
from dagkit.api.running import Until
from dagkit.engine.parts.requests import ForgetFile, GiveUp, Request, Retry
from dagkit.engine.parts.run_part import Look
from dagkit.engine.program.facts import Decided, Forgotten
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.program.points import Point
from dagkit.engine.record.work_history import listed_work
from dagkit.ledger.audit.verify import verify
from dagkit.ranges import OffsetRange, RestrictionTracker
from dagkit.testing import FakeClock
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import FileInfo, TailFiles
from tests.engine.cast import Desk, arrived, lines_through_filter
from tests.engine.parts.cast import answer, facts_in, lines, matching, request, splitting
from tests.patience import within

BOTH = pytest.mark.parametrize("drawn", [splitting, matching], ids=["FileSplitterInput", "MatchFiles"])


@pytest.fixture
def desk(tmp_path, drawn):
    """Two files and the application that is drawn for them."""
    (tmp_path / "in").mkdir()
    for name in "ab":
        (tmp_path / "in" / f"{name}.txt").write_text(f"{name}\n")
    return Desk(tmp_path, drawn(tmp_path), until=Until.IDLE, clock=FakeClock())


def forget(desk: Desk, name: str = "a.txt", operator: str = "finder") -> Any:
    return request(desk, ForgetFile(operator=operator, path=str(desk.home / "in" / name)))


@pytest.mark.parametrize(
    "drawn",
    [
        pytest.param(splitting, id="FileSplitterInput"),
        pytest.param(partial(splitting, skip_known_content=True), id="its content is known"),
        pytest.param(partial(splitting, renamed="skip"), id="its inode is known"),
        pytest.param(matching, id="MatchFiles"),
        pytest.param(partial(matching, continuously=False), id="in a launch that scans patterns once"),
        pytest.param(lambda home: matching(home, TailFiles(ends_after_millis=0)), id="a tailed file that ended"),
    ],
)
def test_a_forgotten_file_is_read_once_more(desk):
    desk.run()
    asked = forget(desk)
    assert lines(desk.run()) == ["a", "a", "b"]
    assert answer(desk, asked).done
    assert lines(desk.run()) == ["a", "a", "b"]
    (fact,) = facts_in(desk.ledger(), Forgotten)
    assert (fact.operator, fact.path) == ("finder", str(desk.home / "in" / "a.txt"))
    assert desk.faults() == []


@pytest.mark.gate(14)
@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("point", Point)
def test_it_is_read_once_more_wherever_the_driver_is_killed(desk, point):
    first = desk.run().checkpoint.window
    asked = forget(desk)
    desk.crash(*(CrashAfter(point, first + more) for more in (1, 2, 3)))
    assert lines(desk.run()) == ["a", "a", "b"]
    assert answer(desk, asked).done
    assert desk.faults() == []


@BOTH
@pytest.mark.parametrize(
    ("name", "operator", "reason"),
    [
        ("none.txt", "finder", "there is no file"),
        ("a.txt", "collect", "Values cannot forget a file"),
        ("a.txt", "findr", "there is no operator findr"),
        ("c.txt", "finder", "is not known as it is now"),
    ],
)
def test_what_is_not_known_is_refused(desk, name, operator, reason):
    desk.run()
    asked = forget(desk, name, operator)
    (desk.home / "in" / "c.txt").write_text("c\n")
    assert lines(desk.run()) == ["a", "b", "c"]
    reply = answer(desk, asked)
    assert not reply.done
    assert reason in reply.refused


class OneEachWindow(SplittableOperator[FileInfo]):
    """Reads a file of three bytes, one in each window."""

    kind = "cast.one-each-window/1"
    files = InputPort(FileInfo, main=True)
    letters = OutputPort(str)

    def initial_restriction(self, element: FileInfo) -> OffsetRange:
        return OffsetRange(0, 3)

    def process(self, element: FileInfo, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[str]:
        place = tracker.current_restriction().start
        if tracker.try_claim(place):
            yield Path(element.path).read_text()[place]
            tracker.defer_remainder()


@pytest.mark.parametrize(
    ("drawn", "reason", "letters"),
    [
        (splitting, "is being divided into blocks", "a\nb\nc\n"),
        (lambda home: matching(home, OneEachWindow()), "is still being read", "abc"),
    ],
    ids=["FileSplitterInput", "MatchFiles"],
)
def test_a_file_that_is_still_being_read_is_refused(desk, reason, letters):
    (desk.home / "in" / "a.txt").write_text(letters)
    (desk.home / "in" / "b.txt").unlink()
    assert 0 < len(arrived(desk.run(windows=2))) < 3
    asked = forget(desk)
    assert lines(desk.run()) == ["a", "b", "c"]
    assert f"{desk.home}/in/a.txt {reason}" in answer(desk, asked).refused
    asked = forget(desk)
    assert lines(desk.run()) == ["a", "a", "b", "b", "c", "c"]
    assert answer(desk, asked).done
    assert desk.faults() == []


@pytest.mark.parametrize("drawn", [lambda home: matching(home, TailFiles())], ids=["TailFiles"])
def test_a_file_that_is_tailed_is_refused(desk):
    """A second reading beside the first would send each later line twice."""
    desk.run()
    asked = forget(desk)
    with (desk.home / "in" / "a.txt").open("a") as file:
        file.write("more\n")
    assert lines(desk.run()) == ["a", "b", "more"]
    refused = answer(desk, asked).refused
    assert f"{desk.home}/in/a.txt is still being read, without an end" in refused
    assert "ends_after_millis" in refused


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
def deleted(found):
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


def test_a_launch_that_stops_at_a_deleted_file_resumes_without_it_once_it_is_given_up(deleted):
    for _ in range(2):
        with pytest.raises(OperatorFailed, match=r"b\.txt"):
            deleted.run()
    asked = give_up(deleted)
    assert lines(deleted.run()) == ["a", "a", "c", "c"]
    assert answer(deleted, asked).done
    assert lines(deleted.run()) == ["a", "a", "c", "c"]
    decided = facts_in(deleted.ledger(), Decided)
    assert [(fact.decision, fact.start, fact.end, fact.by, fact.reason) for fact in decided] == [
        ("given-up", 0, 2, "ada", "deleted"),
        ("given-up", 2, 4, "ada", "deleted"),
    ]
    assert all(fact.source.startswith(str(deleted.home / "in" / "b.txt")) for fact in decided)
    assert given_up(deleted) == [(0, 4)]
    assert verify(deleted.ledger()).proven[0].positions == 8


def test_the_work_that_was_given_up_is_listed(deleted):
    assert [(each.state, each.place.start) for each in listed_work(deleted.ledger())] == [
        ("found", 0),
        ("found", 2),
    ] * 3
    give_up(deleted)
    deleted.run()
    listed = [(each.state, each.operator, each.by, each.reason) for each in listed_work(deleted.ledger())]
    assert listed == [("given up", "reader", "ada", "deleted")] * 2


def test_a_range_is_given_up_and_the_rest_is_read(found):
    give_up(found, start=2, end=3)
    assert lines(found.run()) == ["a", "a", "b", "c", "c"]
    assert given_up(found) == [(2, 3)]


@pytest.mark.parametrize("promised", [False, True], ids=["nothing is promised", "a promised window reads it"])
@pytest.mark.parametrize("point", [Point.PLANNED, Point.STAGED, Point.APPENDED, Point.FINISHED])
def test_it_is_given_up_once_wherever_the_driver_is_killed(point, promised, deleted):
    if promised:
        with pytest.raises(OperatorFailed):
            deleted.run()
    asked = give_up(deleted)
    deleted.crash(*(CrashAfter(point) for _ in range(2)))
    assert lines(deleted.run()) == ["a", "a", "c", "c"]
    assert answer(deleted, asked).done
    assert given_up(deleted) == [(0, 4)]


def test_two_deleted_files_are_given_up_one_after_the_other(deleted):
    (deleted.home / "in" / "a.txt").unlink()
    give_up(deleted)
    with pytest.raises(OperatorFailed, match=r"a\.txt"):
        deleted.run()
    give_up(deleted, "a.txt")
    assert lines(deleted.run()) == ["c", "c"]
    assert deleted.faults() == []


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
