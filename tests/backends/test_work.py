"""Work that can be split, on every backend: anywhere in a graph, with side values, and behind other such work."""

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from dagkit import Block, Dag, InputOperator, InputPort, Operator, OutputPort, RowOperator, SplittableOperator, State
from dagkit.api.running import Until
from dagkit.backends.reference import ReferenceBackend
from dagkit.compiler import compile_application
from dagkit.engine.files.publish import in_order
from dagkit.engine.files.staging import StagingPlace
from dagkit.engine.parts.run_state import RunSettings, RunState
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.run.loop import Loop
from dagkit.engine.worker.protocol import Attempt, Report, WindowTask
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.stores import MemoryStore
from dagkit.ranges import OFFSET_INFINITY, OffsetRange, OffsetRestrictionTracker, RestrictionTracker
from dagkit_operators import Items, Watch
from tests.backends.cast import chain, in_partitions, state_of
from tests.backends.places import everywhere
from tests.engine.cast import Collect, Hurried, lines_through_filter, some_lines
from tests.engine.cast import chain as drawn
from tests.engine.items import item_of
from tests.engine.restriction_cast import CountFn, Follower, ShardReader, TableReader
from tests.engine.work_cast import (
    Collected,
    Greeted,
    Looks,
    Named,
    Names,
    Numbered,
    Twice,
    numbers_expected,
    numbers_of_names,
)
from tests.patience import join

LOOKS: Looks = ((("x", 3), ("tail", -1)), (("y", 4),))
BY_NOW = 3


class Greet(RowOperator):
    name = InputPort[Named]()
    greeting = OutputPort(str)

    def process(self, item: Named) -> Any:
        yield f"{item[0]} "


class Telling(RowOperator):
    name = InputPort[Named]()
    told = OutputPort[tuple[str, bool]](main=True)
    unread = OutputPort(str)

    def process(self, item: Named) -> Any:
        self.unread.emit("dropped")
        yield "told", self.told.is_connected
        yield "unread", self.unread.is_connected


def told(draw: Any, make: Any) -> list[Any]:
    """What was collected when all was done, in windows that are over as soon as they have begun."""
    compilation, ledger = compile_application(draw), Ledger(MemoryStore())
    loop = Loop(RunState(compilation, Hurried(make(compilation)), ledger, RunSettings("nowhere", until=Until.ONCE)))
    loop.run()
    assert [fault for fault in verify(ledger).faults if "inf) is pending" not in fault.problem] == []
    return [_plain(item) for state in loop.state["collect"] for item in state.get("arrived", [])]


def _plain(item: Any) -> Any:
    return tuple(map(_plain, item["~tuple"])) if isinstance(item, dict) else item


@everywhere
@pytest.mark.parametrize(("senders", "readers"), [(1, 1), (1, 2), (2, 1), (2, 3)])
def test_work_that_comes_from_workers_is_done_once(make, senders, readers):
    draw = numbers_of_names(LOOKS, by_now=BY_NOW, senders=senders, readers=readers)
    assert sorted(told(draw, make)) == numbers_expected(LOOKS, BY_NOW, doubled=True)


@pytest.mark.parametrize("kind", [CountFn, TableReader, ShardReader, Follower])
def test_restrictions_of_any_type_are_done_once(make, kind):
    looks: Looks = ((("x", 5), ("y", 2)), (("z", 4),))

    draw = drawn(names=Names(looks=looks), twice=Twice(), numbered=(kind(), 2), collect=Collect())
    assert sorted(told(draw, make)) == numbers_expected(looks, 0, doubled=True)


def test_work_makes_work(make):
    first, second = Numbered(by_now=BY_NOW), (Numbered(by_now=BY_NOW), 2)
    draw = drawn(names=Names(looks=LOOKS), first=first, second=second, collect=Collect())
    made = (tuple(numbers_expected(LOOKS, BY_NOW, doubled=False)),)
    assert sorted(told(draw, make)) == numbers_expected(made, BY_NOW, doubled=False)


@everywhere
def test_side_values_are_there_before_the_work_of_their_window(make):
    def draw(dag: Dag, conf: object) -> None:
        names, greet = dag.add_operator("names", Names(looks=(LOOKS[1],))), dag.add_operator("greet", Greet())
        twice, numbered = dag.add_operator("twice", Twice()), dag.add_operator("numbered", Greeted())
        in_partitions(dag, numbered, 2)
        dag.add_stream("names", names.names, twice.name, greet.name)
        dag.add_stream("doubled", twice.names, numbered.names)
        dag.add_stream("greetings", greet.greeting, numbered.greetings)
        dag.add_stream("numbers", numbered.numbers, dag.add_operator("collect", Collected()).items)

    expected = [(f"y {name}", number) for name in ("ya", "yb") for number in range(4)]
    assert Counter(told(draw, make)) == Counter(expected)


def test_an_output_that_leads_nowhere_is_not_connected(make):
    """Without a receiver for rejected items, an operator must know it, or they would be lost silently."""
    draw = drawn(names=Names(looks=((("x", 3),),)), telling=Telling(), collect=Collect())
    assert told(draw, make) == [("told", True), ("unread", False)]


@everywhere
def test_the_file_of_a_block_is_in_its_order_whichever_slot_read_which_part(make, tmp_path):
    (tmp_path / "in").mkdir()
    text = some_lines(40)
    (tmp_path / "in" / "0.txt").write_text(text)
    compilation = compile_application(lines_through_filter(tmp_path, readers=2))
    block = Block(7, str(tmp_path / "in" / "0.txt"), 0, len(text))
    whole = item_of("reader.blocks_metadata_input", block, block.path)
    first, second, third = (whole.part(*ends) for ends in ((0, 150), (150, 300), (300, len(text))))
    work = {(0, 0): (first, third), (0, 1): (second,)}
    answer = Hurried(make(compilation)).run(
        WindowTask(1, work=work, attempt=Attempt(StagingPlace(str(tmp_path / "app"), 1, "only")))
    )
    written = b"".join((tmp_path / "app" / part.part).read_bytes() for part in in_order(answer.parts))
    assert written.decode() == "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))


@pytest.mark.parametrize("watchers", [1, 2])
def test_each_output_of_what_is_watched_is_sent_once(make, watchers):
    watch = Watch(function=lambda name: [name + letter for letter in "abc"])
    draw = drawn(names=Items(items=["x", "y", "z"]), watch=(watch, watchers), collect=Collect())
    assert sorted(told(draw, make)) == [name + letter for name in "xyz" for letter in "abc"]


INTO = "reads.blocks"


class Blocks(InputOperator):
    out = OutputPort(Block)


def claimed(element: Block, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[int]:
    position = element.start
    while tracker.try_claim(position):
        yield position
        position += 1


class Yields(SplittableOperator[Block]):
    blocks = InputPort(Block)
    numbers = OutputPort(int)

    def process(self, element: Block, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[int]:
        yield from claimed(element, tracker)


class Emits(Yields):
    def process(self, element: Block, tracker: RestrictionTracker[OffsetRange, int]) -> Any:
        for number in claimed(element, tracker):
            self.numbers.emit(number)


class Counts(Yields):
    counted = State(0)

    def process(self, element: Block, tracker: RestrictionTracker[OffsetRange, int]) -> Any:
        for _ in claimed(element, tracker):
            self.counted += 1


class Stops(Yields):
    """Returns before its block is read to the end."""

    def process(self, element: Block, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[int]:
        if tracker.try_claim(element.start):
            yield element.start


def read(reader: Operator, *blocks: Block, lasts_millis: float | None = None) -> tuple[Any, Report]:
    backend = ReferenceBackend(chain(found=Blocks(), reads=reader, keep=Collect()))
    stage = backend.program.stage_of["reads"]
    work = tuple(item_of(INTO, block, block.path) for block in blocks)
    answer = backend.run(WindowTask(7, work={(stage.level, 0): work}, lasts_millis=lasts_millis))
    (reading,) = (report for report in answer.reports if "reads" in report.figures)
    return [item for state in state_of(answer, "keep") for item in state.get("arrived", [])], reading


def left(report: Report) -> list[tuple[str, int, int]]:
    return [(str(each.source), each.start, each.end) for each in report.left]


@pytest.mark.parametrize("reader", [Yields(), Emits()])
def test_without_a_deadline_elements_are_read_to_their_end_in_their_order(reader):
    kept, report = read(reader, Block(2, "b", 7, 9), Block(1, "a", 3, 6))
    assert (kept, left(report), report.positions) == ([3, 4, 5, 7, 8], [], 5)


@pytest.mark.parametrize("reader", [Yields(), Emits()])
def test_when_the_time_is_over_one_item_is_read_and_all_else_is_left(reader):
    kept, report = read(reader, Block(1, "a", 3, 6), Block(2, "b", 7, 9), lasts_millis=0.0)
    assert (kept, left(report)) == ([3], [("a", 4, 6), ("b", 7, 9)])
    assert (report.positions, report.left[0].done.turn, report.left[0].done.positions) == (1, 7, 1)
    assert [(each.source, each.start, each.stop) for each in report.done[INTO].stretches] == [("a", 3, 4)]


@pytest.mark.parametrize("reader", [Yields(), Emits()])
def test_what_has_no_end_comes_last_and_ends_with_the_window(reader):
    kept, report = read(reader, Block(1, "endless", 5, OFFSET_INFINITY), Block(2, "b", 7, 8), lasts_millis=20.0)
    ((source, start, end),) = left(report)
    assert (source, end) == ("endless", OFFSET_INFINITY)
    assert kept == [7, *range(5, start)]


def test_a_silent_reader_of_what_has_no_end_is_interrupted():
    _, report = read(Counts(), Block(1, "endless", 5, OFFSET_INFINITY), lasts_millis=0.0)
    ((_, start, end),) = left(report)
    assert (report.state["reads"]["counted"], end) == (start - 5, OFFSET_INFINITY)


class Torn(OffsetRestrictionTracker):
    def try_split(self, fraction_of_remainder: float) -> Any:
        raise ValueError("torn")


class ClaimsTorn(Counts):
    """Claims a number after its tracker has raised, and has no end."""

    def tracker(self, element: Block, restriction: OffsetRange) -> Torn:
        return Torn(restriction)

    def process(self, element: Block, tracker: RestrictionTracker[OffsetRange, int]) -> None:
        tracker.try_claim(element.start)
        join(*(thread for thread in threading.enumerate() if thread.name == "reference-clock"), seconds=120)
        tracker.try_claim(element.start + 1)
        raise AssertionError("its work has no end")


def test_work_without_an_end_fails_at_the_next_claim_after_its_tracker_raised():
    with pytest.raises(OperatorFailed, match="ValueError: torn"):
        read(ClaimsTorn(), Block(1, "endless", 5, OFFSET_INFINITY), lasts_millis=0.0)


def test_what_is_neither_read_nor_given_back_is_a_failure():
    with pytest.raises(OperatorFailed, match=r"reads failed in window 7, slot 0: Stops.process returned, and of Block"):
        read(Stops(), Block(1, "a", 3, 6))
