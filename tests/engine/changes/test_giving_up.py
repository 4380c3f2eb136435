"""Work that cannot be read is given up on request: the rest is processed, and the ledger proves both."""

from pathlib import Path
from typing import Any

import pytest

from dagkit import Dag
from dagkit.api.running import Until
from dagkit.engine.changes.requests import GiveUp, Reply, Request, Retry, ask, reply_to
from dagkit.engine.facts import Decided
from dagkit.engine.failures import OperatorFailed
from dagkit.engine.history.history import history
from dagkit.engine.history.work_history import listed_work
from dagkit.engine.points import Point
from dagkit.engine.run.loop import Loop
from dagkit.ledger.audit.verify import verify
from dagkit.testing import FakeClock
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import FileSplitterInput, LineReader
from tests.engine.cast import Desk, Draw, arrived, lines_through_filter
from tests.engine.changes.test_forgetting import Values
from tests.patience import within

NAMES = ("a", "b", "c")


def splitting(home: Path) -> Draw:
    def draw(dag: Dag, conf: object) -> None:
        splitter = FileSplitterInput(scanner={"files": [str(home / "in")]}, block_size=2)
        finder, reader = dag.add_operator("finder", splitter), dag.add_operator("reader", LineReader())
        dag.add_stream("blocks", finder.blocks_metadata_output, reader.blocks_metadata_input)
        reader >> dag.add_operator("collect", Values())

    return draw


def found_by(desk: Desk) -> Desk:
    """Let input operators look once, and commit nothing."""
    loop = desk.loop()
    loop._begin()
    inputs = loop.run_state.driver_inputs
    while not inputs.found:
        loop._look()
        while inputs.busy:
            assert loop.run_state.woken.wait(within(30)), "the scan ends"
    return desk


def desk_with_three_files(tmp_path: Path) -> Desk:
    """Find three files of which each has two blocks."""
    (tmp_path / "in").mkdir()
    for name in NAMES:
        (tmp_path / "in" / f"{name}.txt").write_text(f"{name}\n{name}\n")
    return found_by(Desk(tmp_path, splitting(tmp_path), until=Until.IDLE, clock=FakeClock()))


def desk_with_a_deleted_file(tmp_path: Path) -> Desk:
    """Find the files, and delete the second."""
    desk = desk_with_three_files(tmp_path)
    (tmp_path / "in" / "b.txt").unlink()
    return desk


def lines(loop: Loop) -> list[str]:
    """The lines that arrived, in alphabetical order."""
    return sorted(arrived(loop))


def request(desk: Desk, asks: Any) -> Request:
    assert desk.clock is not None
    desk.clock.advance(seconds=10)
    return ask(desk.ledger().store, asks, desk.clock.now())


def give_up(desk: Desk, name: str = "b.txt", **given: Any) -> Request:
    return request(desk, GiveUp(names=(str(desk.home / "in" / name),), by="ada", reason="deleted", **given))


def answer(desk: Desk, asked: Request) -> Reply:
    reply = reply_to(desk.ledger().store, asked)
    assert reply is not None
    return reply


def test_a_launch_that_stops_at_a_deleted_file_resumes_without_it_once_it_is_given_up(tmp_path):
    desk = desk_with_a_deleted_file(tmp_path)
    for _ in range(2):
        with pytest.raises(OperatorFailed, match=r"b\.txt"):
            desk.run()
    asked = give_up(desk)
    assert lines(desk.run()) == ["a", "a", "c", "c"]
    assert answer(desk, asked).done
    assert lines(desk.run()) == ["a", "a", "c", "c"]
    facts = [fact for entry in history(desk.ledger()) for fact in entry.checkpoint.facts]
    source = str(tmp_path / "in" / "b.txt")
    decided = [fact for fact in facts if isinstance(fact, Decided)]
    assert [(fact.decision, fact.start, fact.end, fact.by, fact.reason) for fact in decided] == [
        ("given-up", 0, 2, "ada", "deleted"),
        ("given-up", 2, 4, "ada", "deleted"),
    ]
    assert all(fact.source.startswith(source) for fact in decided)
    assert desk.faults() == []
    (proven,) = verify(desk.ledger()).proven
    assert [(span.start, span.end) for span in proven.given_up] == [(0, 4)]
    assert proven.positions == 8


def test_the_work_that_was_given_up_is_listed(tmp_path):
    desk = desk_with_a_deleted_file(tmp_path)
    assert [(each.state, each.place.start) for each in listed_work(desk.ledger())] == [
        ("found", 0),
        ("found", 2),
    ] * 3
    give_up(desk)
    desk.run()
    assert [(each.state, each.operator, each.by, each.reason) for each in listed_work(desk.ledger())] == [
        ("given up", "reader", "ada", "deleted")
    ] * 2


def test_a_range_is_given_up_and_the_rest_is_read(tmp_path):
    desk = desk_with_three_files(tmp_path)
    give_up(desk, start=2, end=3)
    assert lines(desk.run()) == ["a", "a", "b", "c", "c"]
    (proven,) = verify(desk.ledger()).proven
    assert [(span.start, span.end) for span in proven.given_up] == [(2, 3)]
    assert desk.faults() == []


@pytest.mark.parametrize("promised", [False, True], ids=["nothing is promised", "a promised window reads it"])
@pytest.mark.parametrize("point", [Point.PLANNED, Point.STAGED, Point.APPENDED, Point.FINISHED])
def test_it_is_given_up_once_wherever_the_driver_is_killed(point, promised, tmp_path):
    desk = desk_with_a_deleted_file(tmp_path)
    if promised:
        with pytest.raises(OperatorFailed):
            desk.run()
    asked = give_up(desk)
    desk.crash(*(CrashAfter(point) for _ in range(2)))
    assert lines(desk.run()) == ["a", "a", "c", "c"]
    assert answer(desk, asked).done
    assert desk.faults() == []
    (proven,) = verify(desk.ledger()).proven
    assert [(span.start, span.end) for span in proven.given_up] == [(0, 4)]


def test_two_deleted_files_are_given_up_one_after_the_other(tmp_path):
    desk = desk_with_a_deleted_file(tmp_path)
    (tmp_path / "in" / "a.txt").unlink()
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
def test_a_request_that_concerns_no_work_is_refused(asks, reason, tmp_path):
    desk = desk_with_three_files(tmp_path)
    asked = request(desk, asks)
    assert lines(desk.run()) == ["a", "a", "b", "b", "c", "c"]
    assert reason in (answer(desk, asked).refused or "")


def test_the_output_of_a_file_whose_last_block_is_given_up_is_complete(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("one\ntwo\nfour\n")
    desk = found_by(Desk(tmp_path, lines_through_filter(tmp_path), until=Until.IDLE, clock=FakeClock()))
    give_up(desk, "a.txt", start=5)
    desk.run()
    assert list(desk.outputs().values()) == [b"one\ntwo\n"]
    assert desk.leftovers() == []
    assert desk.faults() == []
