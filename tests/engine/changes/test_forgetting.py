"""A file that is forgotten on request is read once more, whatever happens."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dagkit import Dag, InputPort, OutputPort, SplittableOperator
from dagkit.api.running import Until
from dagkit.engine.changes.requests import ForgetFile, Reply, ask, reply_to
from dagkit.engine.facts import Forgotten
from dagkit.engine.history.history import history
from dagkit.engine.points import Point
from dagkit.engine.run.loop import Loop
from dagkit.ranges import OffsetRange, RestrictionTracker
from dagkit.testing import FakeClock
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import FileInfo, FileSplitterInput, Items, LineReader, MatchFiles, ReadFiles, TailFiles
from tests.engine.cast import Collect, Desk, arrived


class Values(Collect):
    """Collects the values of records."""

    kind = "cast.values/1"

    def process(self, item: Any) -> None:
        self.arrived.append(getattr(item, "value", item))


def splitting(home: Path, **scanner: Any) -> Any:
    def draw(dag: Dag, conf: object) -> None:
        settings = {"files": [str(home / "in")], **scanner}
        splitter = dag.add_operator("finder", FileSplitterInput(scanner=settings, block_size=2, blocks_threshold=1))
        reader = dag.add_operator("reader", LineReader())
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        reader >> dag.add_operator("collect", Values())

    return draw


def matching(home: Path, *, continuously: bool = True) -> Any:
    def draw(dag: Dag, conf: object) -> None:
        patterns = dag.add_operator("patterns", Items(items=[str(home / "in" / "*.txt")]))
        finder = dag.add_operator("finder", MatchFiles(continuously=continuously))
        patterns >> finder >> dag.add_operator("reader", ReadFiles()) >> dag.add_operator("collect", Values())

    return draw


BOTH = pytest.mark.parametrize("drawn", [splitting, matching], ids=["FileSplitterInput", "MatchFiles"])


def desk_at(tmp_path: Path, drawn: Any, **given: Any) -> Desk:
    (tmp_path / "in").mkdir()
    for name in ["a", "b"]:
        (tmp_path / "in" / f"{name}.txt").write_text(f"{name}\n")
    return Desk(tmp_path, drawn(tmp_path, **given), until=Until.IDLE, clock=FakeClock())


def lines(loop: Loop) -> list[str]:
    """The lines that arrived, in alphabetical order."""
    return sorted(arrived(loop))


def forget(desk: Desk, name: str = "a.txt", operator: str = "finder") -> Any:
    assert desk.clock is not None
    desk.clock.advance(seconds=10)
    asks = ForgetFile(operator=operator, path=str(desk.home / "in" / name))
    return ask(desk.ledger().store, asks, desk.clock.now())


def answer(desk: Desk, request: Any) -> Reply:
    reply = reply_to(desk.ledger().store, request)
    assert reply is not None
    return reply


@BOTH
def test_a_forgotten_file_is_read_once_more(drawn, tmp_path):
    desk = desk_at(tmp_path, drawn)
    desk.run()
    request = forget(desk)
    assert lines(desk.run()) == ["a", "a", "b"]
    assert answer(desk, request).done
    assert lines(desk.run()) == ["a", "a", "b"]
    kept = [fact for entry in history(desk.ledger()) for fact in entry.checkpoint.facts]
    assert [(fact.operator, fact.path) for fact in kept if isinstance(fact, Forgotten)] == [
        ("finder", str(tmp_path / "in" / "a.txt"))
    ]
    assert desk.faults() == []


@pytest.mark.gate(14)
@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("point", Point)
def test_it_is_read_once_more_wherever_the_driver_is_killed(drawn, point, tmp_path):
    desk = desk_at(tmp_path, drawn)
    first = desk.run().checkpoint.window
    request = forget(desk)
    desk.crash(*(CrashAfter(point, first + more) for more in (1, 2, 3)))
    assert lines(desk.run()) == ["a", "a", "b"]
    assert answer(desk, request).done
    assert desk.faults() == []


@pytest.mark.parametrize("settings", [{"skip_known_content": True}, {"renamed": "skip"}], ids=["content", "inode"])
def test_what_is_known_of_a_file_is_forgotten_too(settings, tmp_path):
    desk = desk_at(tmp_path, splitting, **settings)
    desk.run()
    forget(desk)
    assert lines(desk.run()) == ["a", "a", "b"]


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
def test_what_is_not_known_is_refused(drawn, name, operator, reason, tmp_path):
    desk = desk_at(tmp_path, drawn)
    desk.run()
    request = forget(desk, name, operator)
    (tmp_path / "in" / "c.txt").write_text("c\n")
    assert lines(desk.run()) == ["a", "b", "c"]
    reply = answer(desk, request)
    assert not reply.done
    assert reason in (reply.refused or "")


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


def slowly(home: Path) -> Any:
    def draw(dag: Dag, conf: object) -> None:
        patterns = dag.add_operator("patterns", Items(items=[str(home / "in" / "*.txt")]))
        finder = dag.add_operator("finder", MatchFiles(continuously=True))
        patterns >> finder >> dag.add_operator("reader", OneEachWindow()) >> dag.add_operator("collect", Values())

    return draw


@pytest.mark.parametrize(
    ("drawn", "reason", "letters"),
    [(splitting, "is being divided into blocks", "a\nb\nc\n"), (slowly, "is still being read", "abc")],
    ids=["FileSplitterInput", "MatchFiles"],
)
def test_a_file_that_is_still_being_read_is_refused(drawn, reason, letters, tmp_path):
    desk = desk_at(tmp_path, drawn)
    (tmp_path / "in" / "a.txt").write_text(letters)
    (tmp_path / "in" / "b.txt").unlink()
    assert 0 < len(arrived(desk.run(windows=2))) < 3
    request = forget(desk)
    assert lines(desk.run()) == ["a", "b", "c"]
    assert f"{tmp_path}/in/a.txt {reason}" in (answer(desk, request).refused or "")
    request = forget(desk)
    assert lines(desk.run()) == ["a", "a", "b", "b", "c", "c"]
    assert answer(desk, request).done
    assert desk.faults() == []


def tailing(home: Path, **properties: Any) -> Any:
    def draw(dag: Dag, conf: object) -> None:
        patterns = dag.add_operator("patterns", Items(items=[str(home / "in" / "*.txt")]))
        finder = dag.add_operator("finder", MatchFiles(continuously=True))
        reader = dag.add_operator("reader", TailFiles(**properties))
        patterns >> finder >> reader >> dag.add_operator("collect", Values())

    return draw


def test_a_file_that_is_tailed_is_refused(tmp_path):
    """A second reading beside the first would send each later line twice."""
    desk = desk_at(tmp_path, tailing)
    desk.run()
    request = forget(desk)
    with (tmp_path / "in" / "a.txt").open("a") as file:
        file.write("more\n")
    assert lines(desk.run()) == ["a", "b", "more"]
    refused = answer(desk, request).refused or ""
    assert f"{tmp_path}/in/a.txt is still being read, without an end" in refused
    assert "ends_after_millis" in refused


def test_a_tailed_file_that_ended_is_read_once_more(tmp_path):
    desk = desk_at(tmp_path, tailing, ends_after_millis=0)
    desk.run()
    request = forget(desk)
    assert lines(desk.run()) == ["a", "a", "b"]
    assert answer(desk, request).done
    assert desk.faults() == []


def test_patterns_that_are_scanned_once_find_no_file_again(tmp_path):
    desk = desk_at(tmp_path, matching, continuously=False)
    desk.run()
    request = forget(desk)
    assert lines(desk.run()) == ["a", "b"]
    assert "patterns are scanned once (continuously)" in (answer(desk, request).refused or "")
