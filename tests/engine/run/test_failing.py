"""What fails says whose it is and on what record, and the run goes on from the last commit once it is repaired."""

import pickle
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from pydantic import BaseModel, SecretStr

from dagkit import (
    Batch,
    Block,
    Column,
    Constant,
    InputOperator,
    InputPort,
    KeyedState,
    Lines,
    Operator,
    OutputFiles,
    OutputPort,
    RowOperator,
    SplittableOperator,
    State,
)
from dagkit.engine.files.staging import StagingPlace
from dagkit.engine.program.codec import ItemUnwritable
from dagkit.engine.program.entrances import code_of, operator_of
from dagkit.engine.program.failures import Failure, OperatorFailed, Spot, failure_of, spot_of
from dagkit.engine.program.points import Point
from dagkit.engine.program.program import Keying
from dagkit.engine.record.run_events import Failed, RunEvent
from dagkit.engine.worker.instances import receiver
from dagkit.errors import DagkitError, InputUnreadable, RunFailure
from dagkit.ledger import Ledger
from dagkit.ranges import OffsetRange, RestrictionTracker
from dagkit_operators import (
    FileSplitterInput,
    Filter,
    Items,
    LineReader,
    Map,
    MatchFiles,
    PartWriter,
    ReadFiles,
    Record,
    RecordWriter,
)
from tests.engine.cast import Collect, Desk, Draw, Ranges, Script, arrived, chain, files_given, on_both, one_slot, slots
from tests.processes import run_program

LINES = "".join(f"line {number:04}\n" for number in range(200))
BAD = 137
"""The line at which an operator fails; it starts at byte 10 * 137."""


def is_good(line: str) -> bool:
    return "0137" not in line


def strictly(line: str) -> bool:
    if not is_good(line):
        raise ValueError(f"cannot stand {line!r}")
    return True


def strictly_in_batches(column: Column) -> list[bool]:
    return [strictly(line) for line in column.values()]


class Strict(Operator):
    input = InputPort[Any]()
    output = OutputPort[Any]()

    def process(self, item: Any) -> None:
        strictly(item.value)
        self.output.emit(item)


class Once(Strict):
    mark: str

    def process(self, item: Any) -> None:
        if not is_good(item.value) and not Path(self.mark).exists():
            Path(self.mark).touch()
            raise ValueError(f"cannot stand {item.value!r} once")
        self.output.emit(item)


class StrictInBatches(Strict):
    def process_batch(self, batch: Batch[Any]) -> None:
        strictly_in_batches(batch.column("value"))
        self.output.emit_batch(batch)


class StrictInBatchesAlone(Operator):
    input = InputPort[Any]()
    output = OutputPort[Any]()

    @input.process_batch  # noqa: A003 - the port
    def check(self, batch: Batch[Any]) -> None:
        strictly_in_batches(batch.column("value"))
        self.output.emit_batch(batch)


class Lined(SplittableOperator[Block]):
    """Reads lines of ten bytes, and says where they stand."""

    served_by_engine = True
    blocks = InputPort(Block)
    messages = OutputPort[Record[str]]()

    def process(self, element: Block, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[Batch[Record[str]]]:
        data = Path(element.path).read_bytes()
        for first in range(element.start, element.end, 250):
            starts = range(first, min(first + 250, element.end), 10)
            granted = tracker.claim_many(starts)
            lines = Lines(pa.array([data[start : start + 10] for start in starts[:granted]]), base=first)
            yield Batch({"block_id": Constant(element.block_id, granted), "value": lines}, Record)
            if granted < len(starts):
                return
        tracker.try_claim(element.end)


def reading(home: Path, **operators: Any) -> Draw:
    splitter = FileSplitterInput(scanner={"files": [str(home / "in")]}, block_size=700, blocks_threshold=1)
    return chain(splitter=splitter, reader=Lined(), **operators, writer=RecordWriter(file_path=str(home / "out")))


@on_both
@pytest.mark.parametrize(
    "operators",
    [
        {"strict": Filter(strictly)},
        {"strict": Filter(batch=strictly_in_batches)},
        {"strict": Strict()},
        {"strict": StrictInBatches()},
        {"strict": StrictInBatchesAlone()},
        {"odd": Filter(lambda line: line[-1] in "13579"), "strict": StrictInBatches()},
        {"strict": (Strict(), 2)},  # behind an exchange, the line is found in another attempt
    ],
    ids=["predicate", "batches", "method", "batch method", "batch method alone", "behind a filter", "exchange"],
)
def test_a_failure_names_the_very_line(tmp_path, operators, backend):
    files_given(tmp_path, LINES)
    patient = {"dt.attr.STREAMING_WINDOW_SIZE_MILLIS": "60000"}  # no machine is so slow that it cuts a block
    with pytest.raises(OperatorFailed, match="cannot stand 'line 0137'") as raised:
        Desk(tmp_path, reading(tmp_path, **operators), conf=patient, backend=backend).run()
    failure, place = raised.value.failure, f"{tmp_path}/in/0.txt, byte {10 * BAD}"
    assert (failure.operator, failure.window_id, failure.spot.place) == ("strict", 2, f"{place} (block 1)")
    assert failure.slot == 0 or isinstance(operators["strict"], tuple)
    assert f'File "{__file__}"' in failure.traceback.splitlines()[1], "it begins with the author's code"
    assert "in strictly" in failure.traceback
    assert "dagkit_operators" not in failure.traceback
    assert f"strict failed in window 2, slot {failure.slot} at {place}" in str(raised.value)
    assert "--reference" not in raised.value.help


@on_both
def test_a_failure_names_the_file_whatever_the_work_is_made_of(tmp_path, backend):
    patterns, writer = Items(items=[files_given(tmp_path, LINES)]), PartWriter(file_path=str(tmp_path / "out"))
    draw = chain(patterns=patterns, match=MatchFiles(), read=ReadFiles(), strict=Filter(strictly), writer=writer)
    with pytest.raises(OperatorFailed, match="cannot stand 'line 0137'") as raised:
        Desk(tmp_path, draw, backend=backend).run()
    assert raised.value.failure.spot.place == f"{tmp_path}/in/0.txt, byte {10 * BAD}"


@on_both
def test_a_failure_that_does_not_come_again_ends_the_run_without_a_place(tmp_path, backend):
    files_given(tmp_path, LINES)
    desk = Desk(tmp_path, reading(tmp_path, strict=(Once(mark=str(tmp_path / "failed")), 2)), backend=backend)
    with pytest.raises(OperatorFailed, match="cannot stand 'line 0137' once"):
        desk.run()
    assert sorted(desk.outputs()) == ["0"], "the window was not committed"
    desk.run()
    assert sorted(desk.text().splitlines()) == LINES.splitlines()


def test_after_a_failure_the_run_goes_on_from_the_last_commit_with_repaired_code(tmp_path):
    files_given(tmp_path, LINES)
    with pytest.raises(OperatorFailed):
        Desk(tmp_path, reading(tmp_path, strict=Strict()), backend=slots).run()
    repaired = Desk(tmp_path, reading(tmp_path, strict=Filter(is_good)), backend=slots)
    assert sorted(repaired.outputs()) == ["0"]
    repaired.run()
    assert (repaired.text(), repaired.troubles()) == (LINES.replace("line 0137\n", ""), [])


# ---- what cannot be read


@on_both
def test_a_name_that_is_not_there_is_reported_in_one_sentence(tmp_path, backend):
    name = str(tmp_path / "nowhere")
    with pytest.raises(OperatorFailed) as raised:
        Desk(tmp_path, chain(patterns=Items(items=[name]), match=MatchFiles(), c=Collect()), backend=backend).run()
    problem = f"cannot read {name}: there is no such file or directory"
    words = f"{problem} [input-unreadable]\n  help: make it, or give another pattern"
    for told in (raised.value, pickle.loads(pickle.dumps(raised.value))):  # noqa: S301 - our own
        assert (str(told), told.exit_code) == (f"match {words}", 5)
        assert told.failure == Failure("match", 1, 0, f"InputUnreadable: {problem}", Spot(f"element {name!r:.80}"))


class Unlisted(Lined):
    """Cannot look at what it is to read."""

    def split(self, element: Block, restriction: OffsetRange) -> Iterator[OffsetRange]:
        raise InputUnreadable(f"cannot read {element.path}: it is locked", "open it")


def test_what_cannot_be_split_on_the_driver_is_reported_so_too(tmp_path):
    words = r"^unlisted cannot read numbers: it is locked \[input-unreadable\]\n  help: open it$"
    with pytest.raises(OperatorFailed, match=words):
        Desk(tmp_path, chain(ranges=Ranges(looks=((10,),)), unlisted=Unlisted(), collect=Collect())).run()


def test_a_launch_ends_with_the_exit_code_of_what_its_operator_lacks():
    failed = failure_of(RunFailure("there is no topic a", "create it", code="topic-missing"), "read", 1)
    assert (failed.code, failed.exit_code) == ("topic-missing", 5)


# ---- who failed


class Inner(Operator):
    input = InputPort(int)

    def process(self, item: int) -> None:
        raise ValueError("inner")


INNER = Inner()


def outer() -> None:
    try:
        receiver(INNER, "input", Keying(), "inner").item(1)
    except ValueError as error:
        raise KeyError("outer") from error


def test_the_innermost_operator_that_an_exception_passes_is_noted():
    with pytest.raises(ValueError, match="inner") as raised, code_of("outer"):
        receiver(INNER, "input", Keying(), "inner").item(1)
    assert operator_of(raised.value) == "inner"
    assert operator_of(ValueError("dagkit's own")) is None


def test_an_operator_that_raises_what_another_failed_with_is_noted_itself():
    with pytest.raises(KeyError) as raised, code_of("outer"):
        outer()
    assert operator_of(raised.value) == "outer"
    told = str(failure_of(raised.value, "outer", 3, 1, spot=spot_of(None, None)))
    assert told.startswith("outer failed in window 3, slot 1: KeyError: 'outer' [operator-failed]\n")
    assert "ValueError: inner" in told, "a failure keeps what it came of"
    assert "direct cause" in told


def tens_of(number: int) -> int:
    if number == 7:
        raise ValueError("7 has no tens")
    return number // 10


class Tens(Operator):
    """Counts numbers by a key that fails for one number."""

    input = InputPort(int, key=tens_of)
    seen = KeyedState[int, int](int)

    def process(self, item: int) -> None:
        self.seen[item // 10] += 1


class Sets(Operator):
    """Takes items that have no routing code."""

    input = InputPort[Any]()
    seen = KeyedState[int, int](int)

    def process(self, item: Any) -> None:
        raise AssertionError("the item should not arrive")


@on_both
@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize(
    ("receiver", "items", "code", "problem"),
    [
        (Tens(), (6, 7), "operator-failed", "ValueError: 7 has no tens"),
        (Sets(), ({6},), "key-unroutable", "KeyUnroutable: set has no routing code"),
    ],
)
def test_an_item_that_cannot_be_routed_is_a_failure_of_its_receiver(
    *, tmp_path, backend, partitions, receiver, items, code, problem
):
    with pytest.raises(OperatorFailed, match=f"^receiver failed in window 1, .*: {problem}") as raised:
        Desk(tmp_path, chain(items=Items(items=items), receiver=(receiver, partitions)), backend=backend).run()
    assert raised.value.code == code
    assert raised.value.failure.record in {"7", "{6}"}


class Login(BaseModel):
    user: str
    password: SecretStr


class Sending(Operator):
    input = InputPort[Any]()
    token: SecretStr = SecretStr("t0ken")
    api_key: str = "0penSesame"
    logins: tuple[Login, ...] = (Login(user="anna", password=SecretStr("hunter2")),)

    def process(self, item: Any) -> None:
        raise ConnectionError(
            f"{self.api_key}, {self.token.get_secret_value()} and {self.logins[0].password.get_secret_value()}: {item}"
        )


@on_both
def test_a_failure_shows_its_record_and_no_secret(tmp_path, backend):
    items = Items(items=("order of hunter2 " + "x" * 500,))
    with pytest.raises(OperatorFailed) as raised:
        Desk(tmp_path, chain(items=items, sending=Sending()), backend=backend).run()
    told, record = str(raised.value), raised.value.failure.record
    assert "ConnectionError: **********, ********** and **********: order of **********" in told
    assert not re.search("0penSesame|t0ken|hunter2", told)
    assert re.match(r"'order of \*{10} x{100,}…$", record)
    assert len(record) < 200


def test_where_only_dagkit_was_at_work_the_whole_traceback_is_shown(tmp_path):
    with pytest.raises(DagkitError) as raised:
        Ledger.open(str(tmp_path))
    only_own = raised.value.with_traceback(raised.tb.tb_next)
    told = failure_of(only_own, "reader", 1).failure.traceback
    assert "in open" in told
    assert "in _check" in told


# ---- on the driver


class Broken(InputOperator):
    """Fails in the callback that the test names."""

    out = OutputPort(int)
    where: str
    at = State(0)

    def setup(self, context: Any) -> None:
        self._fail("setup")

    def emit_tuples(self) -> None:
        self._fail("emit_tuples")
        if not self.at:
            self.out.emit(1)
        self.at = 1

    def looks_again_in_millis(self) -> int:
        self._fail("looks_again_in_millis")
        return 0

    def committed(self, window_id: int) -> None:
        self._fail("committed")

    def _fail(self, where: str) -> None:
        if self.where == where:
            raise ValueError(f"broken in {where}")


@pytest.mark.parametrize("where", ["setup", "emit_tuples", "looks_again_in_millis", "committed"])
def test_a_failure_on_the_driver_names_the_operator(tmp_path, where):
    events: list[RunEvent] = []
    with pytest.raises(
        OperatorFailed, match=f"broken failed in window 1, on the driver: ValueError: broken in {where}"
    ):
        Desk(tmp_path, chain(broken=Broken(where=where), collect=Collect())).run(observers=[events.append])
    failed = [event for event in events if isinstance(event, Failed)]
    assert failed == [Failed(1, "broken", f"ValueError: broken in {where}", again=False)]
    assert arrived(Desk(tmp_path, chain(broken=Broken(where="nowhere"), collect=Collect())).run()) == [1]


def counting(default: Any) -> Draw:
    class Counting(Operator):
        input = InputPort(int)
        count = State[type(default)](default)

        def process(self, item: int) -> None:
            self.count = default

    return chain(script=Script(looks=((1,), (2,))), counting=Counting())


def test_state_that_the_class_of_today_cannot_take_back_is_reported(tmp_path):
    Desk(tmp_path, counting([1])).run(windows=1)
    with pytest.raises(RunFailure, match=r"Counting\.count was saved by another version"):
        Desk(tmp_path, counting({})).run()


class Unkeepable(InputOperator):
    """Emits what has no JSON."""

    out = OutputPort[Any]()
    item: ClassVar[Any] = object()
    at = State(0)

    def emit_tuples(self) -> None:
        if not self.at:
            self.at = 1
            self.out.emit(self.item)


def test_an_item_that_cannot_be_kept_is_reported_and_nothing_is_committed(tmp_path):
    desk = Desk(tmp_path, chain(source=Unkeepable(), collect=Collect()))
    with pytest.raises(
        ItemUnwritable, match=r"source\.out emitted <object object at .*\n  help: declare the port with"
    ):
        desk.run()
    Unkeepable.item = 5
    assert (arrived(desk.run()), desk.faults()) == ([5], [])


# ---- places that refuse


class Writer(Operator):
    input = InputPort(int)
    files = OutputFiles(lambda writer: writer.directory)
    directory: str

    def process(self, item: int) -> None:
        self.files.open("numbers.txt").write(f"{item}\n".encode())

    def drained(self) -> None:
        self.files.finish("numbers.txt")


def writing(home: Path, writer: type[Writer] = Writer, looks: Any = ((1, 2), (3,))) -> Draw:
    return chain(script=Script(looks=looks), writer=writer(directory=str(home / "out")))


WRITTEN = {"numbers.txt": b"1\n2\n3\n"}


@on_both
def test_where_nothing_can_be_staged_nothing_is_committed(tmp_path, backend):
    desk = Desk(tmp_path, writing(tmp_path), backend=backend)
    Ledger.create(desk.place, durable=False)
    (tmp_path / "app" / "staging").write_text("in the way")
    with pytest.raises(OperatorFailed, match=r"writer failed in window 1.* a piece of .*numbers\.txt cannot be staged"):
        desk.run()
    (tmp_path / "app" / "staging").unlink()
    desk.run()
    assert (desk.outputs(), desk.faults()) == (WRITTEN, [])


def test_a_file_that_cannot_be_put_in_place_is_put_there_by_the_next_run_and_not_missed_later(tmp_path):
    desk, file = Desk(tmp_path, writing(tmp_path)), tmp_path / "out" / "numbers.txt"

    def take_its_name(point: Point, window: int) -> None:
        if (point, window) == (Point.APPENDED, 3):
            file.mkdir(parents=True)

    for probe in (take_its_name, None):
        with pytest.raises(RunFailure, match=r"numbers\.txt is committed and cannot be put in place") as raised:
            desk.run(probe=probe)
        assert raised.value.scene.operator == "writer"
    file.rmdir()
    desk.run()
    assert (desk.outputs(), desk.leftovers()) == (WRITTEN, [])
    file.unlink()
    desk.run()
    assert desk.outputs() == {}


class HoldOne(Operator):
    """Sends what it got last only when something else has come."""

    input = InputPort[Record[str]]()
    output = OutputPort[Record[str]]()
    held = State[list[tuple[int, str]]](list)

    def process(self, item: Record[str]) -> None:
        for block_id, value in self.held:
            self.output.emit(Record(block_id, value))
        self.held = [(item.block_id, item.value)]


def test_a_piece_that_comes_after_its_file_was_whole_is_not_put_in_its_place(tmp_path):
    files_given(tmp_path, LINES)
    desk = Desk(tmp_path, reading(tmp_path, hold=HoldOne()))
    for _ in range(2):
        with pytest.raises(RunFailure, match=r"writer wrote to .*out/0 in window 2, and element 0, .* read to its end"):
            desk.run()
        assert desk.outputs() == {"0": LINES[:690].encode()}


FULL_DISK = """
import resource, sys
from pathlib import Path
from tests.engine.run.test_failing import Desk, writing_much
home, most = Path(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
Desk(home, writing_much(home)).run()
"""


class WriterOfMuch(Writer):
    def process(self, item: int) -> None:
        self.files.open(f"{item}.txt").write(f"{item}\n".encode() * 5000 * item)
        self.files.finish(f"{item}.txt")


def writing_much(home: Path) -> Draw:
    return writing(home, WriterOfMuch, ((1, 2), (9,)))


@pytest.mark.slow
def test_a_disk_that_is_full_costs_the_open_window_and_nothing_else(tmp_path):
    told = run_program([sys.executable, "-c", FULL_DISK, str(tmp_path), "40000"], check=False).stderr
    assert "writer failed in window 2, slot 0" in told
    assert re.search(r"9\.txt cannot be staged in the application's folder at byte [1-9][0-9]*: File too large", told)
    desk = Desk(tmp_path, writing_much(tmp_path))
    assert sorted(desk.outputs()) == ["1.txt", "2.txt"]
    desk.run()
    assert desk.outputs() == {f"{number}.txt": f"{number}\n".encode() * 5000 * number for number in (1, 2, 9)}
    assert desk.troubles() == []


class Returning(RowOperator):
    """Gives back what it should yield."""

    input = InputPort(int)
    output = OutputPort(int)

    def process(self, number: int) -> Any:
        return number


@on_both
def test_a_handler_that_returns_fails_by_the_name_of_its_operator_and_without_lines(tmp_path, backend):
    problem = (
        r"^returns failed in window 1, slot 0: ItemUnyielded: Returning.process returned 1, which is not an iterator"
    )
    help_ = "write `yield item` for each item, not `return item`$"
    draw = chain(numbers=Script(looks=((1,),)), returns=Returning(), collect=Collect())
    with pytest.raises(OperatorFailed, match=rf"{problem} \[item-unyielded\]\n  help: {help_}"):
        Desk(tmp_path, draw, backend=backend).run()


class Unsaved(Operator):
    """Writes a file, and keeps what no checkpoint can hold."""

    input = InputPort(int)
    files = OutputFiles(lambda operator: operator.place)
    place: str
    kept = State[Any](None)
    opened: ClassVar[list[Any]] = []

    def process(self, number: int) -> None:
        self.opened.append(self.files.open("a"))
        self.opened[-1].write(b"a")
        self.kept = object()


def test_a_slot_leaves_no_file_open_though_its_report_failed(tmp_path):
    draw = chain(numbers=Script(looks=((1,),)), unsaved=Unsaved(place=str(tmp_path)))
    slot, arriving = one_slot(draw, staging=StagingPlace(str(tmp_path / "app"), 1, "attempt"))
    list(slot.run([arriving]))
    piece = Unsaved.opened.pop()
    assert not piece.stream.closed
    with pytest.raises(RunFailure, match=r"unsaved \(Unsaved\).kept holds"):
        slot.report()
    assert piece.stream.closed


TRIED: list[str] = []


def strictly_noting(line: str) -> bool:
    TRIED.append(line)
    if not is_good(line):
        raise RuntimeError(line)
    return True


@pytest.mark.parametrize(
    ("attempts", "said"),
    [
        (1, "times: a batch that fails is sent again in parts, to find the record\n"),
        (2, "times in 2 attempts at the window: a batch that fails is sent again in parts"),
    ],
)
def test_a_failure_says_how_often_the_operator_got_the_record(tmp_path, attempts, said):
    files_given(tmp_path, LINES)
    TRIED.clear()
    conf = {
        "dt.attr.STREAMING_WINDOW_SIZE_MILLIS": "60000",
        "dt.operator.strict.attr.RECOVERY_ATTEMPTS": str(attempts - 1),
    }
    with pytest.raises(OperatorFailed) as raised:
        Desk(tmp_path, reading(tmp_path, strict=Filter(strictly_noting)), conf=conf, backend=slots).run()
    tries = TRIED.count("line 0137")
    assert f"  tried {tries} {said}" in str(raised.value)
    assert raised.value.failure.tries == tries > attempts


def test_a_record_that_comes_alone_is_tried_once(tmp_path):
    files_given(tmp_path, "line 0137\n")
    TRIED.clear()
    with pytest.raises(OperatorFailed, match="byte 0") as raised:
        Desk(tmp_path, reading(tmp_path, strict=Filter(strictly_noting)), backend=slots).run()
    assert TRIED == ["line 0137"]
    assert "tried" not in str(raised.value)


CALLS: list[int] = []


def refusing(lines: Column) -> Column:
    CALLS.append(len(lines))
    if "line 0199" in lines.values():
        raise RuntimeError("it is refused")
    return lines


def test_the_record_is_found_with_few_calls_for_a_batch(tmp_path):
    """One call may take as long as thousands of items."""
    files_given(tmp_path, LINES)
    CALLS.clear()
    splitter = FileSplitterInput(scanner={"files": [str(tmp_path / "in")]})
    draw = chain(splitter=splitter, reader=LineReader(), refuse=Map(batch=refusing), collect=Collect())
    with pytest.raises(OperatorFailed, match="line 0199") as raised:
        Desk(tmp_path, draw, backend=slots).run()
    assert CALLS.count(1) < 5, f"no line of a batch is sent alone but the last: {CALLS}"
    assert raised.value.failure.spot.position == LINES.index("line 0199")
