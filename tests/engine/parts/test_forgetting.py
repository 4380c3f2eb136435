"""A file that is forgotten on request is read once more, whatever happens."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dagkit import InputPort, OutputPort, SplittableOperator
from dagkit.api.running import Until
from dagkit.engine.parts.requests import ForgetFile
from dagkit.engine.program.facts import Forgotten
from dagkit.engine.program.points import Point
from dagkit.ranges import OffsetRange, RestrictionTracker
from dagkit.testing import FakeClock
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import FileInfo, TailFiles
from tests.engine.cast import Desk, arrived
from tests.engine.parts.cast import answer, facts_in, lines, matching, request, splitting

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


@BOTH
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


@pytest.mark.parametrize(
    "drawn", [partial(splitting, skip_known_content=True), partial(splitting, renamed="skip")], ids=["content", "inode"]
)
def test_what_is_known_of_a_file_is_forgotten_too(desk):
    desk.run()
    asked = forget(desk)
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


@pytest.mark.parametrize("drawn", [lambda home: matching(home, TailFiles(ends_after_millis=0))], ids=["TailFiles"])
def test_a_tailed_file_that_ended_is_read_once_more(desk):
    desk.run()
    asked = forget(desk)
    assert lines(desk.run()) == ["a", "a", "b"]
    assert answer(desk, asked).done
    assert desk.faults() == []


@pytest.mark.parametrize("drawn", [partial(matching, continuously=False)], ids=["once"])
def test_a_launch_that_scans_patterns_once_finds_a_forgotten_file(desk):
    desk.run()
    asked = forget(desk)
    assert lines(desk.run()) == ["a", "a", "b"]
    assert answer(desk, asked).done
