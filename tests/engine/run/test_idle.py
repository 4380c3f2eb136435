"""An application that waits for input writes nothing: a poll that finds nothing is not committed."""

import sqlite3
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from dagkit import InputPort, OperatorContext, OutputPort, SplittableOperator
from dagkit.api.running import Until
from dagkit.cli.running.launch_progress import Progress
from dagkit.cli.terminal.output import Output
from dagkit.engine.program.points import Point
from dagkit.engine.record.run_events import Committed, FoundNothing, RunEvent, Started
from dagkit.ranges import OFFSET_INFINITY, OffsetRange
from dagkit.testing import FakeClock
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import (
    FileSplitterInput,
    Items,
    LineReader,
    Map,
    MatchFiles,
    PagedSource,
    PartWriter,
    QueueInput,
    RecordWriter,
    SqlReader,
    SqlSplitter,
    TailFiles,
    Watch,
)
from tests.engine.cast import Collect, Desk, Script, blocks_after_polls, chain
from tests.patience import within
from tests.services.rabbitmq import send

SECONDS = 600


class Feed(SplittableOperator[int]):
    """Polls an element every so many milliseconds, and never finds anything."""

    kind = "idle.feed/1"
    elements = InputPort(int)
    found = OutputPort(int)
    takes_seconds: float = 0.0

    def initial_restriction(self, element):
        return OffsetRange(0, OFFSET_INFINITY)

    def process(self, element, tracker):
        yield from ()
        threading.Event().wait(self.takes_seconds)
        tracker.defer_remainder(timedelta(milliseconds=element))


def watches(dag, folder):
    """Polls that are due at different times."""
    for millis in (7000, 11_000):
        watch = dag.add_operator(f"watch {millis}", Watch(function=lambda place: [place], every_millis=millis))
        dag.add_operator(f"places {millis}", Items(items=["a", "b"])) >> watch
        yield watch.found


def elements_of_a_source_of_ones_own(dag, folder):
    feed = dag.add_operator("feed", Feed())
    dag.add_operator("elements", Items(items=[7000, 11_000])) >> feed
    yield feed.found


def patterns_and_files_that_are_followed(dag, folder):
    match = dag.add_operator("match", MatchFiles(continuously=True, interval_millis=7000))
    tail = dag.add_operator("tail", TailFiles(interval_millis=11_000))
    dag.add_operator("patterns", Items(items=[f"{folder}/*", f"{folder}/a*"])) >> match >> tail
    yield tail.messages


def scanned_folder(dag, folder):
    splitter = dag.add_operator("splitter", FileSplitterInput(scanner={"files": [str(folder)]}))
    reader = dag.add_operator("reader", LineReader())
    splitter >> reader
    yield reader.messages


def query(dag, folder):
    with closing(sqlite3.connect(folder.parent / "rows")) as rows:
        rows.executescript("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY); INSERT INTO rows DEFAULT VALUES")
    url = f"sqlite:///{folder.parent / 'rows'}"
    splitter = dag.add_operator("splitter", SqlSplitter(url=url, table="rows", key="id"))
    reader = dag.add_operator("reader", SqlReader(url=url))
    splitter >> reader
    yield reader.records


class Numbers(PagedSource[int]):
    """Two pages of numbers, and then none."""

    kind = "idle.numbers/1"
    poll_millis: int = 7000

    def read_page(self, cursor):
        first = cursor or 0
        return ([first, first + 1], first + 2) if first < 4 else ([], cursor)


def pages(dag, folder):
    yield dag.add_operator("pages", Numbers()).output


def queue(dag, folder):
    send("memory://", "idle", [b"one"])
    yield dag.add_operator("queue", QueueInput(queue="idle")).output


@pytest.mark.parametrize("windows", [1, pytest.param(5, marks=pytest.mark.trial)])
@pytest.mark.parametrize(
    "draw",
    [
        watches,
        elements_of_a_source_of_ones_own,
        patterns_and_files_that_are_followed,
        scanned_folder,
        query,
        pages,
        queue,
    ],
)
def test_ten_idle_minutes_add_no_block(tmp_path, draw, windows):
    folder, clock = tmp_path / "in", FakeClock()
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")

    def graph(dag, conf):
        for number, outlet in enumerate(draw(dag, folder)):
            text, collect = dag.add_operator(f"text {number}", Map(str)), dag.add_operator(f"in {number}", Collect())
            dag.add_stream(f"found {number}", outlet, text.input)
            text >> collect
            dag.set_operator_attribute(collect, OperatorContext.APPLICATION_WINDOW_COUNT, windows)

    desk = Desk(tmp_path, graph, until=Until.STOPPED, clock=clock)
    loop, blocks, began = desk.loop(), [], clock.now()

    def advance(woken, until):
        if not blocks and clock.now() > began + timedelta(seconds=60):
            blocks.append(desk.blocks())
        if clock.now() > began + timedelta(seconds=60 + SECONDS):
            loop.stop()
        FakeClock.wait(clock, woken, until)

    clock.wait = advance
    loop.run()
    assert [desk.blocks()] == blocks


class FeedOfOne(Feed):
    """Finds one number at the first poll."""

    kind = "idle.feed-of-one/1"

    def process(self, element, tracker):
        if tracker.current_restriction().start == 0 and tracker.try_claim(0):
            yield element
        yield from super().process(element, tracker)


def test_polls_add_no_block_while_an_output_file_is_open(tmp_path):
    def graph(dag, conf):
        writer = dag.add_operator("writer", PartWriter(file_path=str(tmp_path / "out"), visible_millis=3_600_000))
        feed, text = dag.add_operator("feed", FeedOfOne()), dag.add_operator("text", Map(str))
        dag.add_operator("elements", Items(items=[2, 3, 5, 7])) >> feed >> text >> writer

    desk = Desk(tmp_path, graph, until=Until.STOPPED)
    first, last = blocks_after_polls(desk, 50, 300)
    assert first == last
    assert desk.outputs() == {}


def test_polls_that_are_due_beside_each_other_add_no_block(tmp_path):
    def graph(dag, conf):
        feed, elements = dag.add_operator("feed", Feed(takes_seconds=0.005)), Items(items=[2, 3, 5, 7])
        writer = dag.add_operator("writer", RecordWriter(file_path=str(tmp_path)))  # no state: windows overlap
        (
            dag.add_operator("elements", elements)
            >> feed
            >> dag.add_operator("text", Map(lambda number: f"{number}"))
            >> writer
        )

    first, last = blocks_after_polls(Desk(tmp_path, graph, until=Until.STOPPED), 50, 300)
    assert first == last


BEGAN = datetime(2024, 1, 1, tzinfo=UTC)


def continuous(home: Path, *looks: tuple[int, ...], kind: type[PartWriter] = PartWriter, **properties: Any) -> Desk:
    writer = kind(file_path=str(home / "out"), file_name="{partition}.{number}", format=str, **properties)
    return Desk(home, chain(script=Script(looks=looks), writer=writer), Until.STOPPED, clock=FakeClock())


def test_by_default_a_file_is_visible_after_a_minute(tmp_path):
    desk = continuous(tmp_path, (1, 2))
    desk.run(windows=1)
    assert desk.outputs() == {}
    desk.run(windows=1)
    assert desk.outputs() == {"0.0": b"1\n2\n"}
    assert desk.clock.now() == BEGAN + timedelta(seconds=60)


def test_the_time_is_published_with_each_window_and_each_file_has_its_own(tmp_path):
    desk, events = continuous(tmp_path, (1,), (2,), (), (), (), (3,), visible_millis=2500), list[RunEvent]()
    desk.run(windows=5, observers=[events.append])
    seconds = [
        None if event.visible is None else (event.visible - BEGAN).total_seconds()
        for event in events
        if isinstance(event, Committed)
    ]
    assert seconds == [2.5, 2.5, None, 5.5, None]
    assert desk.outputs() == {"0.0": b"1\n2\n", "0.1": b"3\n"}


@pytest.mark.parametrize("properties", [{"rotation_windows": 8}, {"max_idle_windows": 8}], ids=["age", "idleness"])
def test_windows_that_do_not_run_count_by_their_time(tmp_path, properties):
    desk = continuous(tmp_path, (1,), **properties)
    desk.run(windows=2)
    assert desk.outputs() == {"0.0": b"1\n"}
    assert desk.clock.now() == BEGAN + timedelta(seconds=4)


@pytest.mark.parametrize("point", [Point.PLANNED, Point.STAGED, Point.APPENDED, Point.FINISHED])
def test_a_crash_delays_no_file(tmp_path, point):
    desk = continuous(tmp_path, (1, 2))
    desk.crash(CrashAfter(point, 2))
    desk.run(windows=2 - desk.loop().checkpoint.window)
    assert (desk.outputs(), desk.troubles()) == ({"0.0": b"1\n2\n"}, [])


class Wishful(PartWriter):
    """Asks for windows, and finishes nothing in them."""

    def _roll(self, name: str, part: Any) -> Any:
        return part


def test_a_window_answers_all_earlier_requests(tmp_path):
    desk = continuous(tmp_path, (1,), *[()] * 9, (2,), kind=Wishful, visible_millis=1500)
    (state,) = desk.run(windows=3).state["writer"]
    assert state["parts"][""]["count"] == 2, "no window runs for a request that an earlier one has answered"


class Long(Feed):
    """Polls until its start is published."""

    kind = "idle.long/1"
    clock: ClassVar = FakeClock()
    is_published: ClassVar = threading.Event()

    def process(self, element, tracker):
        yield from ()
        self.clock.advance(seconds=3)
        assert self.is_published.wait(within(30))
        tracker.defer_remainder(timedelta(milliseconds=element))


def test_the_start_of_a_window_that_polls_is_published_if_it_takes_long_and_that_it_found_nothing(tmp_path):
    heard: list[type] = []

    def observe(event: RunEvent) -> None:
        heard.append(type(event))
        if isinstance(event, Started):
            Long.is_published.set()
        if isinstance(event, Committed):
            Long.is_published.clear()
        if isinstance(event, FoundNothing):
            loop.stop()

    draw = chain(items=Items(items=[1000]), feed=Long())
    loop = Desk(tmp_path, draw, clock=Long.clock, until=Until.STOPPED).loop(observers=[observe])
    loop.run()
    assert [kind for kind in heard if kind in (Started, Committed, FoundNothing)][-2:] == [Started, FoundNothing]


def test_the_command_prints_when_the_next_file_becomes_visible(capsys):
    progress, soon = Progress(Output(), {}, {}), datetime.now(UTC) + timedelta(hours=1)

    def committed(visible: datetime | None) -> str:
        progress(Committed(1, 1.0, {"byte": 1}, 0, 1, visible=visible))
        return capsys.readouterr().err

    assert committed(soon) == f"the next file becomes visible at {soon.astimezone():%H:%M:%S}\n"
    assert committed(soon + timedelta(seconds=9)) == "", "the first time has not passed yet"
    assert committed(None) == ""
    assert "becomes visible" in committed(soon + timedelta(seconds=9))
    passed = datetime.now(UTC) - timedelta(seconds=1)
    assert committed(None) == ""
    assert committed(passed) == "the next file becomes visible with the next window\n"
    assert "becomes visible" in committed(soon)
