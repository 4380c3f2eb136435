"""An application that waits for input writes nothing: a poll that finds nothing is not committed."""

import sqlite3
import threading
from contextlib import closing
from datetime import timedelta

import pytest

from dagkit import InputPort, OperatorContext, OutputPort, SplittableOperator
from dagkit.api.running import Until
from dagkit.ranges import OFFSET_INFINITY, OffsetRange
from dagkit.testing import FakeClock
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
from tests.engine.cast import Collect, Desk, blocks_after_polls
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
