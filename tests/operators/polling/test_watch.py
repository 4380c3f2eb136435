"""Watching: each output is sent once, whatever the polls, partitions, launches and crashes."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dagkit.api.running import Until
from dagkit.engine.program.points import Point
from dagkit.ranges import Deferred
from dagkit.testing import Alone, FakeClock, Rehearsal
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import (
    FileInfo,
    FileSplitterBase,
    Items,
    MatchFiles,
    Polled,
    UntilAll,
    UntilAny,
    UntilElapsed,
    UntilQuiet,
    Watch,
)
from tests.cases import cases
from tests.engine.cast import Collect, Desk, Draw, Hurried, arrived, chain
from tests.operators.timed_files import FORMATS, number_in

START = datetime(2024, 1, 1, tzinfo=UTC)


class Feed:
    """What each poll finds, and when it is."""

    def __init__(self, *polls: Any) -> None:
        self.polls = list(polls)
        self.now = START

    def __call__(self, element: str) -> Any:
        return self.polls.pop(0)


def watched(feed: Feed, *, minutes: int = 1, **given: Any) -> list[list[Any]]:
    """The outputs of each poll, one minute after the other, until the feed or the watching ends."""
    alone, rest, sent = Alone(Watch(function=feed, **given), now=lambda: feed.now), None, []
    while feed.polls:
        alone.work("feed", rest)
        sent.append(alone.sent())
        if alone.deferred is None:
            break
        rest = alone.deferred.residual
        feed.now += timedelta(minutes=minutes)
    return sent


def test_each_output_is_sent_once_or_again_where_asked_and_those_with_one_key_are_one():
    assert watched(Feed(["a", "b"], ["b", "c", "c"], [], ["a", "d"])) == [["a", "b"], ["c"], [], ["d"]]
    polls = [{"id": 1, "n": 1}], [{"id": 1, "n": 2}, {"id": 2, "n": 3}]
    assert watched(Feed(*polls), key="id") == [polls[0], polls[1][1:]]
    assert watched(Feed(*polls)) == [polls[0], polls[1]]
    polls = ["a", "b"], ["b", "c"], ["a", "c"]
    assert watched(Feed(*polls)) == [["a", "b"], ["c"], []]
    assert watched(Feed(*polls), forgets_gone=True) == [["a", "b"], ["c"], ["a"]]


ELAPSED, QUIET = UntilElapsed(elapsed_millis=120_000), UntilQuiet(quiet_millis=120_000)


@pytest.mark.parametrize(
    ("until", "polls"),
    [
        (None, 5),
        (ELAPSED, 3),
        (QUIET, 4),  # the second poll found something, and the two after it nothing
        (lambda outputs: "b" in outputs, 2),
        (UntilAny(any_of=(ELAPSED, QUIET)), 3),
        (UntilAll(all_of=(ELAPSED, QUIET)), 4),
        (UntilAll(all_of=(lambda outputs: not outputs, UntilElapsed(elapsed_millis=240_000))), 5),
        (UntilAny(any_of=(UntilAll(all_of=(lambda outputs: "a" in outputs,)), UntilQuiet(quiet_millis=1))), 1),
    ],
    ids=["never", "elapsed", "quiet", "a function", "any", "all", "all with a function", "nested"],
)
def test_the_polls_of_an_element_end(until, polls):
    assert len(watched(Feed(["a"], ["b"], [], [], []), until=until)) == polls


def test_the_function_may_say_that_nothing_more_will_come_and_be_given_without_its_name():
    assert watched(feed := Feed(["a"], Polled(["b"], is_complete=True), ["c"])) == [["a"], ["b"]]
    assert Watch(feed).function is feed


def test_a_poll_without_news_makes_no_progress():
    feed = Feed(["a"], ["a"])
    alone = Alone(Watch(function=feed), now=lambda: feed.now)
    alone.work("feed")
    rest = alone.deferred.residual
    alone.work("feed", rest)
    assert alone.deferred == Deferred(rest, timedelta(seconds=5))


def test_a_poll_whose_outputs_are_not_sent_does_not_advance_the_watermark():
    feed = Feed(["a"], ["a", "b"])
    alone = Alone(Watch(function=feed, event_time=lambda name: 60 * ord(name)), now=lambda: feed.now)
    rest = alone.work("feed", split_after=0)
    assert (alone.sent(), alone.watermark) == ([], None)
    alone.work("feed", rest)
    assert (alone.sent(), alone.watermark) == (["a", "b"], datetime(1970, 1, 1, 1, 38, tzinfo=UTC))


# ---- in applications


def names_in(folder: str) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def watching(home: Path, partitions: int = 2, **given: Any) -> Draw:
    folders = Items([str(home / "0"), str(home / "1")])
    return chain(folders=folders, watch=(Watch(function=names_in, **given), partitions), collect=Collect())


def fill(home: Path, *names: str) -> None:
    for name in names:
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).touch()


def desk_of(home: Path, draw: Any, until: Until = Until.IDLE) -> Desk:
    return Desk(home, draw, until=until, backend=Hurried, clock=FakeClock())


@pytest.mark.parametrize("partitions", [1, 3])
def test_launches_send_what_is_new_since_the_last_one(tmp_path, partitions):
    fill(tmp_path, "0/a", "0/b", "1/c")
    desk = desk_of(tmp_path, watching(tmp_path, partitions=partitions))
    assert sorted(arrived(desk.run())) == ["a", "b", "c"]
    fill(tmp_path, "0/d", "1/e")
    assert sorted(arrived(desk.run())) == ["a", "b", "c", "d", "e"]
    assert sorted(arrived(desk.run())) == ["a", "b", "c", "d", "e"]
    assert [fault for fault in desk.faults() if "inf) is pending" not in str(fault)] == []


@pytest.mark.gate(5)
@pytest.mark.slow
@pytest.mark.parametrize("window", [1, 2, 3])
@pytest.mark.parametrize("point", Point)
def test_a_crash_after_any_step_sends_nothing_twice(tmp_path, point, window):
    fill(tmp_path, "0/a", "1/b")
    desk = desk_of(tmp_path, watching(tmp_path))
    desk.crash(CrashAfter(point, window))
    fill(tmp_path, "0/c")
    desk.crash(CrashAfter(point))
    fill(tmp_path, "1/d")
    assert sorted(arrived(desk.run())) == ["a", "b", "c", "d"]


def test_polls_that_have_ended_leave_no_work(tmp_path):
    fill(tmp_path, "0/a", "1/b")
    loop = desk_of(tmp_path, watching(tmp_path, until=lambda outputs: True)).run()
    assert sorted(arrived(loop)) == ["a", "b"]
    assert loop.checkpoint.queue == ()


BY_FORMAT = pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)


class Numbers(Collect):
    """Keeps the numbers of records."""

    kind = "watch.numbers/1"

    def process(self, item: Any) -> None:
        super().process(number_in(item))


def files_in(folder: str) -> list[FileInfo]:
    return [FileInfo(str(path.resolve()), path.stat().st_size) for path in sorted(Path(folder).glob("*.txt"))]


MATCHED = {"patterns": Items(["in/*.txt"]), "match": MatchFiles(continuously=True)}
WATCHED = {"folders": Items(["in"]), "watch": Watch[str, FileInfo](function=files_in, key="path")}


@pytest.mark.parametrize("found", [MATCHED, WATCHED], ids=["MatchFiles", "Watch"])
@pytest.mark.parametrize("in_blocks", [True, False], ids=["blocks", "files"])
@BY_FORMAT
def test_files_that_appear_are_read_in_every_format(tmp_path, monkeypatch, found, in_blocks, form):
    monkeypatch.chdir(tmp_path)
    read = {"split": FileSplitterBase(), "read": form.reads_blocks()} if in_blocks else {"read": form.reads_files()}
    rehearsal = Rehearsal(chain(**found, **read, collect=Numbers()))
    for number in range(2):
        form.written(tmp_path / "in" / f"{number}.txt", (number, 2 * number), (number, 2 * number + 1))
        rehearsal.run()
    assert sorted(arrived(rehearsal.loop)) == [0, 1, 2, 3]


def polled_with_time(name: str) -> Polled[str]:
    minute = 5 if name == "slow" else 9
    return Polled([name], watermark=START + timedelta(minutes=minute))


@cases(
    "given",
    ("of the poll", {"function": polled_with_time, "has_watermarks": True}),
    ("of the outputs", {"function": lambda name: [name], "event_time": lambda name: polled_with_time(name).watermark}),
)
def test_the_watermark_is_that_of_the_slowest_element(tmp_path, given):
    draw = chain(names=Items(["slow", "fast"]), watch=Watch(**given), collect=Collect())
    loop = desk_of(tmp_path, draw).run()
    assert loop.checkpoint.event_times.sent["collect"] == START + timedelta(minutes=5)
