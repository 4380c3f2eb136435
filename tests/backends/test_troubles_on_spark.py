"""On Spark, a record that ends its Python worker is found, and set aside; the rest is processed once."""

import gzip
import os
import select
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dagkit import Config, Dag, InputPort, KeyedState, Operator, OutputPort, State, Unavailable
from dagkit.api.keyed import saved_keys
from dagkit.api.running import Until
from dagkit.backends.spark import SparkBackend
from dagkit.backends.spark.window.boards import Boards
from dagkit.compiler import compile_application
from dagkit.engine.parts.requests import Retry, ask
from dagkit.engine.parts.run_state import RunSettings, RunState
from dagkit.engine.program.facts import Split
from dagkit.engine.program.lower import program_of
from dagkit.engine.program.points import Point
from dagkit.engine.record.history import history
from dagkit.engine.record.status_file import RUNNING
from dagkit.engine.run.loop import Loop
from dagkit.engine.work.aside import WorkAside
from dagkit.engine.work.split import HANDED
from dagkit.engine.worker.protocol import Attempt, Backend, WindowTask
from dagkit.launching import launch
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.stores import MemoryStore
from dagkit.ranges import OffsetRange, RestrictionTracker
from dagkit.testing import Crash, CrashAfter
from dagkit_operators import FileSplitterInput, LineReader
from tests.backends.cast import chained
from tests.backends.places import crashes
from tests.engine.cast import Collect, Desk, Digits, Hurried, Ranges, Script, chain, files_given
from tests.engine.delivery_cast import numbers_in, numbers_inserted
from tests.engine.files.test_receipts import NAMES, drawn, filled, receipts
from tests.engine.poison_cast import ON_POISON, TIMEOUT, Poisoned, PoisonedLines, poisoned
from tests.engine.work_cast import Looks, Named, Numbered, numbers_expected, numbers_of_names
from tests.patience import within


def collected_and_aside(path: Path) -> tuple[list[Any], list[WorkAside]]:
    """What arrived, and what is set aside, in a ledger without faults."""
    ledger = Ledger.open(path)
    assert list(verify(ledger).faults) == []
    last = list(history(ledger))[-1].checkpoint
    collected: Any = last.state["collect"][0]["arrived"]
    return sorted(collected), list(last.aside)


@pytest.mark.spark
@pytest.mark.trial
@pytest.mark.parametrize(
    ("way", "count", "words"),
    [
        ("signal", 4, "Segmentation fault"),
        ("signal", 10_000, "Segmentation fault"),
        ("memory", 10_000, "MemoryError"),
        ("loop", 4, "Timeout"),
    ],
)
def test_a_record_that_ends_its_worker_is_set_aside(way, count, words, spark, tmp_path):
    poison = count // 2 + 1
    conf = {ON_POISON: "SET_ASIDE", **({TIMEOUT: 600_000} if way == "loop" else {})}
    draw = poisoned(((count // 2, count // 2),), poison, way=way)
    launch(draw, conf, spark=spark, until="once", path=tmp_path)
    collected, (aside,) = collected_and_aside(tmp_path)
    assert collected == [number for number in range(count) if number != poison]
    assert (aside.item.start, aside.item.end) == (poison, poison + 1)
    assert (aside.reason.startswith("poisoned: "), words in aside.reason) == (True, True)
    assert len(list(history(Ledger.open(tmp_path)))) <= 3, "only the record has windows of its own"


@pytest.mark.spark
def test_a_record_behind_an_exchange_that_ends_its_worker_is_set_aside_in_three_windows(spark, tmp_path):
    deadly, marked = (Poisoned(poison=(11,)), 2), list[bool]()

    def seen(*_):
        marked.append((tmp_path / RUNNING).exists())

    draw = chain(ranges=Ranges(looks=((10, 10),)), digits=Digits(), poisoned=deadly, collect=Collect())
    launch(draw, {ON_POISON: "SET_ASIDE"}, spark=spark, until="once", path=tmp_path, probe=seen)
    assert set(marked) == {False}, "only a driver that runs windows itself can be ended by a record"
    collected, (aside,) = collected_and_aside(tmp_path)
    assert collected == [number for number in range(20) if number != 11]
    assert (aside.reason.startswith("poisoned: "), "Segmentation fault" in aside.reason) == (True, True)
    assert (aside.item.start, aside.item.end) == (11, 12)
    assert len(list(history(Ledger.open(tmp_path)))) <= 3


@pytest.mark.spark
@pytest.mark.trial
def test_on_a_connect_server_a_record_is_found_and_retried_by_a_corrected_operator(connected, tmp_path):
    looks, conf = ((2, 2),), {ON_POISON: "SET_ASIDE"}
    launch(poisoned(looks, 2), conf, spark=connected, until="once", path=tmp_path)
    collected, (aside,) = collected_and_aside(tmp_path)
    assert collected == [0, 1, 3]
    assert (aside.item.start, aside.item.end) == (2, 3)
    ask(Ledger.open(tmp_path).store, Retry(by="ada"), datetime.now(UTC))
    launch(poisoned(looks), conf, spark=connected, until="once", path=tmp_path)
    assert collected_and_aside(tmp_path) == ([0, 1, 2, 3], [])


@pytest.mark.spark
def test_a_file_that_cannot_be_read_is_set_aside_and_retried(spark, tmp_path):
    zipped, path = gzip.compress(b"3\n4\n", mtime=0), tmp_path / "in" / "b.gz"
    files_given(tmp_path, "1\n2\n")
    path.write_bytes(zipped[:-8] + bytes(4) + zipped[-4:])
    os.utime(path, (1_000_000_000, 1_000_000_000))
    splitter = FileSplitterInput(scanner={"files": [str(tmp_path / "in")]})
    draw = chain(
        splitter=splitter, reader=LineReader(on_bad_file="quarantine"), lines=PoisonedLines(), collect=Collect()
    )
    launch(draw, {}, spark=spark, until="once", path=tmp_path / "app")
    collected, (aside,) = collected_and_aside(tmp_path / "app")
    assert (collected, aside.item.source) == (["1", "2"], str(path))
    assert "cannot be read as gzip" in aside.reason
    path.write_bytes(zipped)
    os.utime(path, (1_000_000_000, 1_000_000_000))
    ask(Ledger.open(tmp_path / "app").store, Retry(by="ada"), datetime.now(UTC))
    launch(draw, {}, spark=spark, until="once", path=tmp_path / "app")
    assert collected_and_aside(tmp_path / "app") == (["1", "2", "3", "4"], [])


class Asking(Operator):
    """Asks a server that does not answer the first requests; a file counts them."""

    kind = "awaited.asking/1"
    input = InputPort(int)
    output = OutputPort(int)
    requests: str
    count = State(0)

    def process(self, item):
        self.count += 1
        self.output.emit(item)
        with Path(self.requests).open("a", encoding="ascii") as file:
            file.write("x")
            if file.tell() in (2, 3):
                raise Unavailable("the server answers 503")


@pytest.mark.spark
def test_a_window_waits_for_the_server_of_an_operator_and_is_processed_once(spark, tmp_path):
    asking = Asking(requests=str(tmp_path / "requests"))
    draw = chain(numbers=Script(looks=((1, 2),)), asking=asking, collect=Collect())
    launch(draw, {}, spark=spark, until="once", path=tmp_path / "app")
    state = list(history(Ledger.open(tmp_path / "app")))[-1].checkpoint.state
    assert (state["collect"][0]["arrived"], state["asking"][0]["count"]) == ([1, 2], 2)


POINTS = [point for point in Point if point is not Point.HALF_FINISHED]  # it writes no files


@pytest.mark.parametrize("point", crashes(POINTS, in_gate=[Point.APPENDED]))
def test_every_number_is_in_the_table_once_after_a_crash(tmp_path, spark, point):
    application = numbers_inserted(tmp_path / "numbers.db")
    with pytest.raises(Crash):
        launch(application, until="idle", spark=spark, path=tmp_path / "app", probe=CrashAfter(point, 2))
    launch(application, until="idle", spark=spark, path=tmp_path / "app")
    assert numbers_in(tmp_path / "numbers.db") == list(range(16))


RECEIPTED = [Point.RUNNING, Point.STAGED, Point.APPENDED, Point.DELIVERED, Point.RECEIPTED]


@pytest.mark.parametrize("point", crashes(RECEIPTED, in_gate=[Point.DELIVERED]))
def test_each_file_has_one_receipt_after_a_crash(tmp_path, spark, point):
    home = filled(tmp_path)
    with pytest.raises(Crash):
        launch(drawn(home, parts=True), until="idle", spark=spark, path=home / "app", probe=CrashAfter(point, 2))
    launch(drawn(home, parts=True), until="idle", spark=spark, path=home / "app")
    assert sorted(receipts(home)) == NAMES
    for name, receipt in receipts(home).items():
        lines = (home / "in" / name).read_text().splitlines()
        written = [line for file in receipt["outputs"] for line in Path(file).read_text().splitlines()]
        assert (receipt["rows"], set(lines) <= set(written)) == ({"reader": len(lines)}, True)


COUNT = 40
LASTS_MILLIS = 60_000.0
WAITS_MILLIS = int(within(20) * 1000)
"""The longest time for which a slot waits; without a board it would wait for nothing."""


class Meeting(Numbered):
    """The first slot waits at its second number until another slot works, too."""

    folder: str
    waits_millis: int

    def process(self, element: Named, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[tuple[str, int]]:
        for name, number in super().process(element, tracker):
            if not number:
                self._pipe = os.open(Path(self.folder, "pipe"), os.O_RDONLY | os.O_NONBLOCK)
            elif number == 1:
                poll = select.poll()
                poll.register(self._pipe, select.POLLIN)
                poll.poll(self.waits_millis)
                os.close(self._pipe)
            elif number == tracker.current_restriction().start:
                pipe = os.open(Path(self.folder, "pipe"), os.O_RDWR)
                os.write(pipe, b".")
                os.close(pipe)
            yield name, number


@pytest.mark.parametrize("hands_over", [True, pytest.param(False, marks=pytest.mark.trial)])
def test_an_idle_worker_takes_work_of_a_busy_one(spark, tmp_path, hands_over):
    looks: Looks = ((("x", COUNT),),)
    os.mkfifo(tmp_path / "pipe")
    given = {"folder": str(tmp_path), "waits_millis": WAITS_MILLIS if hands_over else 0}
    draw = numbers_of_names(looks, kind=lambda **more: Meeting(**given, **more))
    compilation = compile_application(draw, Config.of({"dt.attr.HAND_OVER_WORK": hands_over}))
    ledger = Ledger(MemoryStore())
    with closing(SparkBackend(compilation, spark)) as backend:
        loop = Loop(RunState(compilation, Hurried(backend, LASTS_MILLIS), ledger, RunSettings("nowhere", Until.ONCE)))
        loop.run()
    assert verify(ledger).faults == ()
    collected = [tuple(item["~tuple"]) for state in loop.state["collect"] for item in state["arrived"]]
    assert sorted(collected) == numbers_expected(looks, 0, doubled=False)
    facts = [fact for entry in history(ledger) for fact in entry.checkpoint.facts]
    assert any(isinstance(fact, Split) and fact.why == HANDED for fact in facts) is hands_over


@pytest.mark.trial
def test_a_board_that_no_worker_reaches_is_not_served_again(spark, caplog):
    program = program_of(compile_application(numbers_of_names(((("x", 1),),))))
    task = WindowTask(1, attempt=Attempt(movable=frozenset(program.queued_slots)))
    with closing(Boards(spark)) as boards:
        for is_first in (True, False):
            with boards.serving(task, program, 2) as served:
                assert (served.attempt.board is not None) == is_first
    assert "no worker reached the driver" in caplog.text


KEYS = 30_000
MANY = tuple(range(KEYS))
LOOKS = (MANY, (1, 2, KEYS + 5), MANY[:50], (3,), MANY, (1,))


class Tally(Operator):
    numbers = InputPort(int, key=lambda number: number)
    counts = KeyedState[int, str](str)

    def process(self, item: int) -> None:
        self.counts[item] += "+"
        if item % 7 == 3 and self.counts[item] == "++":
            del self.counts[item]


def draw(dag: Dag, _: Any) -> None:
    chained(dag, {"tally": 2}, script=Script(looks=LOOKS, pause_millis=0), tally=Tally())


def counts(loop: Loop) -> dict[str, str]:
    entries = [saved_keys(state["counts"]) for state in loop.state["tally"]]
    return {text: value for each in entries for text, (value, _) in each.items()}


def expected() -> dict[str, str]:
    found: dict[str, str] = {}
    for number in (number for look in LOOKS for number in look):
        found[str(number)] = found.get(str(number), "") + "+"
        if number % 7 == 3 and found[str(number)] == "++":
            del found[str(number)]
    return found


class Noting(SparkBackend):
    sizes: list[int]

    def _inputs(self, *given: Any) -> Any:
        by_level = super()._inputs(*given)
        self.sizes.append(sum(len(data) for by_slot in by_level.values() for data in by_slot.values()))
        return by_level


@pytest.mark.trial
def test_a_window_sends_what_changed_and_a_new_launch_begins_with_all(spark, tmp_path):
    compilation, sizes = compile_application(draw, Config()), list[int]()

    def on_spark(_: Backend) -> Backend:
        backend = Noting(compilation, spark)
        backend.sizes = sizes
        return backend

    desk = Desk(tmp_path, draw, backend=on_spark)
    assert desk.crash(CrashAfter(Point.STAGED, 3), CrashAfter(Point.APPENDED, 4)) == 2
    assert counts(desk.run()) == expected()
    assert desk.faults() == []
    assert sizes[0] > 10_000
    assert min(sizes) < 2_000
    assert sorted(sizes)[len(sizes) // 2] < 10_000
