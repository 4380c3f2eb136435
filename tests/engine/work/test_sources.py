"""Sources of any kind, wherever their elements come from: named, split, proven, and written a file for each."""

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pydantic import PrivateAttr

from dagkit import (
    BatchedOperatorStats,
    Block,
    Config,
    Dag,
    InputOperator,
    InputPort,
    OutputPort,
    Partition,
    Partitioner,
    PartitioningContext,
    PortContext,
    Response,
    RowOperator,
    SplittableOperator,
    State,
    StatsListener,
)
from dagkit.cli.group import main
from dagkit.compiler import compile_application
from dagkit.engine.program.address import Address
from dagkit.engine.program.failures import OperatorFailed, WindowLost
from dagkit.engine.program.points import Point
from dagkit.engine.record.backlogs import recorded
from dagkit.engine.record.run_events import Committed, RunEvent
from dagkit.engine.record.work_history import listed_work
from dagkit.engine.record.work_records import work_recorded
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.record import LISTED, Extent, WorkRecord
from dagkit.engine.work.waiting import Waiting
from dagkit.engine.worker.protocol import Answer, Report, WindowTask, WorkDone
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.format.recorded_work import Folded
from dagkit.ranges import OffsetRange, RestrictionTracker
from dagkit.ranges.progress import SHARES
from dagkit.scaling import Follower, ScalingSettings
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import Items, LineReader, Map, MatchFiles, ReadFiles, Record, RecordWriter
from tests.backends.slots import InSlots
from tests.engine.cast import Around, Collect, Desk, Digits, Draw, Hurried, Ranges, arrived, chain
from tests.old_files import aged

TOPICS = {"orders/0": 90, "orders/3": 120}
"""How many messages each partition of a topic holds."""


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages of one partition of a topic: nothing that dagkit knows of."""

    number: int
    source: str
    start: int
    end: int

    @property
    def source_size(self) -> int | None:
        return TOPICS[self.source]

    def place(self, position: int | None) -> str:
        return f"{self.source} @ {self.start if position is None else position}"

    def part(self, start: int, end: int) -> "Messages":
        return replace(self, start=start, end=end)


class Topics(InputOperator):
    """Finds thirty messages of each partition at a time."""

    found = OutputPort(Messages)
    at = State(0)

    def emit_tuples(self) -> None:
        for offset, (source, size) in enumerate(TOPICS.items()):
            if self.at < size:
                self.found.emit(Messages(self.at // 30 * 2 + offset, source, self.at, min(self.at + 30, size)))
        self.at += 30


class ReadMessages(SplittableOperator[Messages], Partitioner, StatsListener):
    """Reads messages, and follows its backlog as readers of blocks do."""

    stateless = True
    input = InputPort(Messages)
    messages = OutputPort[Record[str]](main=True)
    fails_at: int = -1
    waits: bool = False
    """Whether it goes on only when the rest was taken away."""

    _pause: threading.Event = PrivateAttr(default_factory=threading.Event)
    _follower: Follower = PrivateAttr(default_factory=Follower)

    def process(self, element: Messages, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[Record[str]]:
        for position in range(element.start, element.end):
            if not tracker.try_claim(position):
                return
            while self.waits and tracker.current_restriction().stop == element.end > position + 1:
                self._pause.wait(0.0002)
            if position == self.fails_at:
                raise ValueError("it holds no order")
            yield Record(element.number, f"{element.source} {position}")

    def process_stats(self, stats: BatchedOperatorStats) -> Response:
        return self._follower.answer(ScalingSettings(), stats)

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        wanted = context.parallel_count or context.wanted or len(partitions)
        return [*partitions[:wanted], *[Partition(self)] * (wanted - len(partitions))]


def written(home: Path, **operators: Any) -> Draw:
    """Operators that end in records, and a file for each of what was found."""

    def draw(dag: Dag, conf: object) -> None:
        chain(**operators, writer=RecordWriter(file_path=str(home / "out")))(dag, conf)
        dag.set_input_port_attribute(dag.operator("writer").input, PortContext.PARTITION_PARALLEL, True)

    return draw


def messages_written(home: Path, **properties: Any) -> Draw:
    return written(home, topics=Topics(), reader=ReadMessages(**properties))


def proven(desk: Desk) -> tuple[bool, dict[str, tuple[int, int, int]]]:
    """Whether all is complete; how many sources, elements besides and positions are proven of each operator."""
    verdict = verify(desk.ledger())
    counts = {each.input.rpartition(".")[0]: each for each in verdict.proven}
    return verdict.is_complete, {
        name: (len(each.sources), each.elements, each.positions) for name, each in counts.items()
    }


def dagkit(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


# ---- a source that dagkit does not know


def test_messages_of_a_topic_are_proven_and_written_a_file_for_each(tmp_path):
    desk = Desk(tmp_path, messages_written(tmp_path))
    desk.run()
    assert {name: content.decode().split("\n")[:-1] for name, content in desk.outputs().items()} == {
        f"{start // 30 * 2 + offset:x}": [f"{source} {position}" for position in range(start, start + 30)]
        for offset, (source, size) in enumerate(TOPICS.items())
        for start in range(0, size, 30)
    }
    assert proven(desk) == (True, {"reader": (2, 0, 210)})
    told = dagkit("ledger", "verify", desk.place, "--complete")
    assert told.exit_code == 0
    assert "reader: 2 sources, 210 positions, every one read once" in told.output


def test_a_topic_that_is_stopped_anywhere_is_written_as_if_it_were_not(tmp_path):
    whole, cut = (Desk(home, messages_written(home)) for home in (tmp_path / "whole", tmp_path / "cut"))
    whole.run()
    cut.backend = Hurried
    assert cut.crash(*map(CrashAfter, Point)) > 0
    cut.run()
    assert (cut.outputs(), proven(cut)) == (whole.outputs(), proven(whole))


def test_a_split_of_a_topic_is_reported_by_its_source(tmp_path):
    desk = Desk(tmp_path, messages_written(tmp_path, waits=True), backend=Hurried)
    desk.run(windows=1)
    for options, key in ((["--json"], "splits"), (["--waiting", "--json"], "waiting")):
        sources = {each["source"] for each in json.loads(dagkit("splits", desk.place, *options).stdout)[key]}
        assert sources
        assert sources <= {*TOPICS}


def test_the_backlog_of_a_topic_is_known_to_dagkit_scale(tmp_path):
    desk = Desk(tmp_path, messages_written(tmp_path))
    desk.run()
    for command in ("explain", "simulate"):
        told = dagkit("scale", command, desk.place)
        assert (told.exit_code, "reader" in told.output) == (0, True), told.output
    assert sum(each.blocks for each in recorded(desk.ledger()).arrivals) == 7


def test_a_failure_names_the_place_in_the_topic(tmp_path):
    desk = Desk(tmp_path, messages_written(tmp_path, fails_at=100))
    with pytest.raises(OperatorFailed, match=r"reader failed in window \d+, slot \d+ at orders/3 @ 90: ValueError"):
        desk.run()


def test_a_part_of_an_element_is_the_element_narrowed():
    elements = Elements(Address("reader.input"), ReadMessages(), Messages)
    (whole,) = elements.work_of(Messages(4, "orders/3", 30, 60), (4,))
    assert (whole.source, whole.element_id, whole.start, whole.end) == ("orders/3", 4, 30, 60)
    assert elements.back(whole.part(40, 60)) == Messages(4, "orders/3", 40, 60)


def test_a_payload_without_a_source_is_named_by_its_own_json():
    elements = Elements(Address("numbered.names"), Lengths(), str)
    short, long, other = (next(elements.work_of(text, (0, 0))) for text in ("ab", "x" * 500, "x" * 501))
    assert (short.source, short.element_id) == ('"ab"', None)
    assert len(str(long.source)) < 300
    assert long.source != other.source


# ---- elements from the middle of a graph


class SplitPaths(RowOperator):
    path = InputPort(str)
    blocks = OutputPort(Block)
    size: int = 40

    def process(self, item: str) -> Iterator[Block]:
        length = Path(item).stat().st_size
        for start in range(0, length, self.size):
            end = min(start + self.size, length)
            yield Block(start // self.size, item, start, end, end == length, "", {"length": length})


class Lengths(SplittableOperator[str]):
    texts = InputPort(str)
    lengths = OutputPort(int)

    def initial_restriction(self, element: str) -> OffsetRange:
        return OffsetRange(0, len(element))

    def process(self, element: str, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[int]:
        position = tracker.current_restriction().start
        while tracker.try_claim(position):
            yield position
            position += 1


def blocks_from_the_middle(path: Path, home: Path) -> Draw:
    reader = LineReader(chunk_size=8)
    return written(home, paths=Items(items=(str(path),)), split=SplitPaths(), reader=reader)


def texts_from_the_middle(*texts: str, slots: int = 1) -> Draw:
    return chain(paths=Items(items=texts), same=Map[str, str](str), lengths=(Lengths(), slots), collect=Collect())


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("".join(f"line {number}\n" for number in range(40)))
    return aged(path)


def test_blocks_from_the_middle_that_wait_are_not_complete(text, tmp_path):
    desk = Desk(tmp_path, blocks_from_the_middle(text, tmp_path), backend=Hurried)
    desk.run(windows=1)
    told = dagkit("ledger", "verify", desk.place, "--complete", "--json")
    assert told.exit_code == 1
    body = json.loads(told.stdout)
    (mine,) = body["proven"]
    assert (body["well"], body["complete"]) == (True, False)
    assert (mine["operator"], mine["sources"]) == ("reader", 1)
    assert 0 < mine["positions"] < mine["positions"] + mine["waiting"] == text.stat().st_size
    desk.run()
    assert proven(desk) == (True, {"reader": (1, 0, text.stat().st_size)})
    assert desk.text() == text.read_text()


def test_files_that_a_pattern_means_are_proven_with_their_reader(text, tmp_path):
    paths, read = Items(items=(str(text),)), ReadFiles(part_size=32)
    desk = Desk(tmp_path, chain(paths=paths, match=MatchFiles(), read=read, collect=Collect()))
    desk.run()
    assert proven(desk) == (True, {"match": (1, 0, 1), "read": (1, 0, text.stat().st_size)})


@pytest.mark.parametrize("slots", [1, 2])
def test_what_is_sent_twice_is_read_twice_and_proven(slots, tmp_path):
    desk = Desk(tmp_path, texts_from_the_middle("abc", "abc", slots=slots))
    assert sorted(arrived(desk.run())) == [0, 0, 1, 1, 2, 2]
    assert proven(desk) == (True, {"lengths": (1, 0, 6)})


@pytest.mark.trial
@pytest.mark.slow
def test_a_window_of_very_many_small_elements_is_recorded_in_little_space(tmp_path):
    count = 8 * LISTED
    texts = (f"{number:05d}" for number in range(count))
    desk = Desk(tmp_path, texts_from_the_middle(*texts), backend=lambda inner: Hurried(inner, lasts_millis=1e9))
    desk.run()
    assert proven(desk) == (True, {"lengths": (LISTED, count - LISTED, 5 * count)})
    (chain,) = (desk.ledger().chain(name) for name in desk.ledger().names() if name.startswith("tests"))
    content = json.loads(chain.checkpoint() or b"{}")
    assert len(json.dumps(content["work"])) < 300 * LISTED


# ---- what the slots report


@dataclass
class Forgetful(Around):
    """A backend whose first answer lacks the record of what was done."""

    forgets: int = 1

    def run(self, assignment: WindowTask) -> Answer:
        answer = self.inner.run(assignment)
        if not self.forgets:
            return answer
        self.forgets -= 1
        return replace(answer, reports=tuple(replace(report, done={}) for report in answer.reports))


def test_a_window_whose_reports_leave_work_out_runs_again(tmp_path):
    desk = Desk(tmp_path, messages_written(tmp_path), backend=Forgetful)
    desk.run()
    assert proven(desk)[0]


def test_a_window_whose_reports_always_leave_work_out_is_never_committed(tmp_path):
    desk = Desk(tmp_path, messages_written(tmp_path), backend=lambda inner: Forgetful(inner, forgets=1000))
    with pytest.raises(WindowLost, match=r"window 1 lacks a part of its report: reader\.input had orders/0"):
        desk.run()
    assert desk.loop().run_state.checkpoint.window == 0


def test_shares_that_are_recorded_as_a_sum_are_no_positions():
    names = [f"{number:05d}" for number in range(LISTED + 5)]
    stretches = tuple(Extent(name, 0, SHARES, is_shares=True) for name in names)
    record = WorkRecord(found=stretches, done=stretches)
    (work,) = (
        work_recorded((), [Report(level=0, slot=0, done={Address("a.b"): WorkDone(record=record)})], Waiting()).inputs
        or ()
    )
    assert work.folded == Folded(elements=5, positions=0)
    assert {span.shares for span in (*work.found, *work.consumed)} == {True}


class Gaps(Digits):
    """Reads digits; those from 3 to 6 and 8 are not there any more."""

    kind = "skipped.gaps/1"

    def process(self, element, tracker):
        for number in super().process(element, tracker):
            if number in (3, 4, 5, 6, 8):
                tracker.skip(number, number + 1)
            else:
                yield number


@pytest.mark.parametrize("looks", [((10,),), ((5, 5),), ((4,), (6,))])
@pytest.mark.parametrize("backend", ["reference", "slots"])
def test_skipped_offsets_are_listed_and_not_counted_as_read(tmp_path, backend, looks):
    def graph(dag, conf):
        gaps, collect = dag.add_operator("gaps", Gaps()), dag.add_operator("collect", Collect())
        dag.add_operator("ranges", Ranges(looks=looks)) >> gaps >> collect

    slots = InSlots(compile_application(graph, Config.of({})))
    desk = Desk(tmp_path, graph, backend=lambda inner: inner if backend == "reference" else slots)
    assert sorted(arrived(desk.run())) == [0, 1, 2, 7, 9]
    verdict = verify(desk.ledger())
    assert verdict.is_complete
    assert [(proven.positions, [str(span) for span in proven.skipped]) for proven in verdict.proven] == [
        (5, ["numbers[3, 7)", "numbers[8, 9)"])
    ]
    skipped = [work for work in listed_work(desk.ledger()) if work.state == "skipped"]
    assert sum(work.place.end - work.place.start for work in skipped) == 5


class Indices(Gaps):
    """Divides its elements, and reads no positions of a source."""

    kind = "skipped.indices/1"
    reads_positions = False


@pytest.mark.parametrize(("operator", "count"), [(Gaps(), 5), (Indices(), 0)])
@pytest.mark.parametrize("backend", ["reference", "slots"])
def test_skipped_offsets_are_subtracted_only_where_positions_are_counted(tmp_path, backend, operator, count):
    graph = chain(ranges=Ranges(looks=((10,),)), gaps=operator, collect=Collect())
    slots = InSlots(compile_application(graph, Config.of({})))
    desk = Desk(tmp_path, graph, backend=lambda inner: inner if backend == "reference" else slots)
    events = list[RunEvent]()
    desk.run(observers=[events.append])
    assert sum(event.positions for event in events if isinstance(event, Committed)) == count
