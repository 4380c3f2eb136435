"""The checks pass components that keep their contracts, and say what is wrong with the others."""

import itertools
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import PrivateAttr

from dagkit import (
    Batch,
    Block,
    Context,
    ExternalOutput,
    InputOperator,
    InputPort,
    Operator,
    OutputFiles,
    OutputPort,
    State,
    Unavailable,
)
from dagkit.errors import RunFailure
from dagkit.testing import ContractBroken, SplitsBroken, check_operator, check_sink, check_source
from dagkit_operators import (
    Delivery,
    DirectoryScanner,
    FileSplitterInput,
    LineReader,
    OnceSink,
    PagedSource,
    Record,
    RecordWriter,
)
from tests.engine.cast import Digits

_ticks = itertools.count()


class Numbered(Operator):
    input = InputPort[Any]()
    output = OutputPort[Any]()
    count = State(0)

    def process(self, item: Any) -> None:
        self.count += 1
        self.output.emit((self.count, item))


class NumberedInMemory(Numbered):
    _count: int = 0

    def process(self, item: Any) -> None:
        self._count += 1
        self.output.emit((self._count, item))


class Stamped(Numbered):
    def process(self, item: Any) -> None:
        self.output.emit((time.time_ns(), next(_ticks), item))


class Greedy(Numbered):
    def process(self, item: Any) -> None:
        item.append("mine")
        self.output.emit(tuple(item))


class Silent(Numbered):
    def process(self, item: Any) -> None: ...


class Batched(Numbered):
    def process_batch(self, batch: Batch[Any]) -> None:
        for item in list(batch.items())[1:]:
            self.process(item)


class BatchedAlike(Numbered):
    def process_batch(self, batch: Batch[Any]) -> None:
        for item in batch.items():
            self.process(item)


class Writing(Operator):
    input = InputPort[Any]()
    files = OutputFiles(lambda operator: "out")
    _first: bool = True

    def process(self, item: Any) -> None:
        self.files.open("all").write(b"first" if self._first else b"next")
        self._first = False


@pytest.mark.parametrize("operator", [Numbered(), BatchedAlike()], ids=["items", "items and batches"])
def test_an_operator_that_keeps_its_contract_passes(operator):
    check_operator(operator, ["a", "b"], ["c"], {"input": ["d"]})


@pytest.mark.parametrize(
    ("operator", "words"),
    [
        (NumberedInMemory(), r"NumberedInMemory, restored before each window, window 2: output: sent .*as State"),
        (Stamped(), "Stamped, run again in a copy, window 1: output: sent .* use no clock but the context's"),
        (Greedy(), r"Greedy changed the items that it received: they became .*'mine'"),
        (Silent(), "Silent sent, wrote and kept nothing"),
        (Batched(), "Batched, given batches, window 1: output: sent .* let process and process_batch do the same"),
        (Writing(), "Writing, restored before each window, window 2: files: written"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Operator) else "",
)
def test_an_operator_that_breaks_its_contract_is_named(operator, words):
    with pytest.raises(ContractBroken, match=words):
        check_operator(operator, [["a"], ["b"]], [["c"]])


class Numbers(InputOperator):
    output = OutputPort[Block]()
    done = State(0)

    def emit_tuples(self) -> None:
        self.emit_block(self.done, self.done * 10, self.done * 10 + 10)
        self.done += 1

    def emit_block(self, number: int, start: int, end: int) -> None:
        self.output.emit(block_of(number, start, end))


class Forgetful(Numbers):
    _done: int = 0

    def emit_tuples(self) -> None:
        self.emit_block(self._done, self._done * 10, self._done * 10 + 10)
        self._done += 1


class Restless(Numbers):
    """Depends on how often it has been asked, in whichever process."""

    def emit_tuples(self) -> None:
        self.emit_block(next(_ticks), 0, 10)


def block_of(number: int, start: int, end: int, **facts: int) -> Block:
    return Block(number, "numbers", start, end, facts=facts)


def dividing(name: str, block: Callable[[int, int, int], Block]) -> Numbers:
    """A source whose blocks are made by this function."""

    def emit_block(self, *at: int) -> None:
        self.output.emit(block(*at))

    return type(name, (Numbers,), {"emit_block": emit_block})()


class Idle(Numbers):
    def emit_tuples(self) -> None: ...


class Unstorable(Numbers):
    output = OutputPort[Any]()

    def emit_tuples(self) -> None:
        self.output.emit(Wrapped(1))


class Wrapped(int):
    """A number with a class of its own, which JSON would lose."""


class DigitsTooFew(Digits):
    """Begins after its start, as if the first position belonged to another slot."""

    def process(self, element: Block, tracker: Any) -> Iterator[int]:
        position = tracker.current_restriction().start + 1
        while tracker.try_claim(position):
            yield position
            position += 1


class Ending(Numbers):
    """Cannot look after it is torn down, as a splitter whose scan is abandoned then."""

    _has_ended: bool = PrivateAttr(default=False)

    def setup(self, context: Context) -> None:
        self._has_ended = False

    def emit_tuples(self) -> None:
        assert not self._has_ended, "it looks after it was torn down"
        super().emit_tuples()

    def teardown(self) -> None:
        self._has_ended = True


def nothing() -> None: ...


def test_a_source_that_keeps_its_contract_passes():
    for source in (Numbers(), Ending()):
        found = check_source(source, Digits(), changes=[nothing, nothing])
        assert [block.start for block in found] == [0, 10, 20]


def test_files_that_arrive_are_found_once(tmp_path):
    (tmp_path / "one").write_text("a\nbb\nccc\n")
    source = FileSplitterInput(scanner=DirectoryScanner(files=(str(tmp_path),)), block_size=4)
    found = check_source(source, LineReader(chunk_size=2), changes=[lambda: (tmp_path / "two").write_text("d\n")])
    blocks = [f"{Path(block.path).name} {block.start}" for block in found if isinstance(block, Block)]
    assert blocks == ["one 0", "one 4", "one 8", "two 0"]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (Forgetful(), r"Forgetful, restored before look 2: it found .*0, end=10.* instead of .*10, end=20.*as State"),
        (Restless(), "Restless, restored before look 1"),
        (dividing("Alike", lambda _, start, end: block_of(0, start, end)), "Alike gave two elements the number 0"),
        (dividing("Twice", lambda n, start, end: block_of(n, start, end + 2)), r"Twice .*: \[10, 12\) is read twice"),
        (dividing("Skips", lambda n, start, end: block_of(n, start + 1, end)), r"Skips .*: \[10, 11\) is not read"),
        (
            dividing("Short", lambda *at: block_of(*at, length=25)),
            r"Short divides numbers wrongly: its elements cover \[0, 20\) of \[0, 25\)",
        ),
        (Idle(), "Idle found nothing"),
        (Unstorable(), "Unstorable.output emitted 1, which cannot be kept as Any"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Operator) else "",
)
def test_a_source_that_breaks_its_contract_is_named(source, words):
    with pytest.raises(ContractBroken, match=words):
        check_source(source, changes=[nothing])


def test_a_reader_that_loses_positions_is_named():
    with pytest.raises(SplitsBroken, match="lost 1"):
        check_source(Numbers(), DigitsTooFew())
    with pytest.raises(ContractBroken, match="Unrelated found no element that Digits reads"):
        check_source(Unrelated(), Digits())


class Unrelated(Numbers):
    output = OutputPort[str]()

    def emit_tuples(self) -> None:
        self.output.emit("text")


class Table:
    """Rows of SQLite, and the last window of each writer."""

    def __init__(self, sink: "Insert") -> None:
        self.sink = sink
        self.database = sqlite3.connect(sink.path)

    def prepare(self, writer: str) -> None:
        self.writer = writer
        with self.database:
            self.database.execute("create table if not exists words (word text)")
            self.database.execute("create table if not exists seen (writer text primary key, window int)")

    def apply(self, window: Any) -> None:
        with self.database:
            last = self.database.execute("select window from seen where writer = ?", [self.writer]).fetchone()
            if last and self.is_known(window.window_id, last[0]):
                return
            self.database.execute("insert or replace into seen values (?, ?)", [self.writer, window.window_id])
            self.database.executemany("insert into words values (?)", (json.loads(each) for each in window.entries()))

    def is_known(self, window_id: int, last: int) -> bool:
        return window_id <= last

    def close(self) -> None:
        self.database.close()


class TableOfOne(Table):
    def is_known(self, window_id: int, last: int) -> bool:
        return window_id == last


class TableOfNone(Table):
    def is_known(self, window_id: int, last: int) -> bool:
        return False


class Insert(Operator):
    input = InputPort[str]()
    staged = ExternalOutput(lambda sink: sink.table(sink))
    path: str
    table: Callable[[Any], Any] = Table

    def process(self, item: str) -> None:
        self.staged.add(json.dumps([item]).encode())


class AtOnce(Operator):
    input = InputPort[str]()
    path: str

    def process(self, item: str) -> None:
        with Path(self.path).open("a") as file:
            file.write(item)


class Nowhere(AtOnce):
    def process(self, item: str) -> None: ...


def rows(folder: Path) -> list[str]:
    with closing(sqlite3.connect(folder / "db")) as database:
        return [word for (word,) in database.execute("select word from words")]


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.rglob("*") if path.is_file()}


def inserting(table: Any) -> Callable[[Path], Operator]:
    return lambda folder: Insert(path=str(folder / "db"), table=table)


def beside(kind: Any) -> Callable[[Path], Operator]:
    return lambda folder: kind(path=str(folder / "t"))


@pytest.mark.slow
def test_sinks_that_keep_their_contract_pass():
    check_sink(inserting(Table), rows, ["a", "b"], ["c"])
    lines = [Record(0, "a"), Record(0, "b")], [Record(1, "c")]
    check_sink(lambda folder: RecordWriter(file_path=str(folder)), texts, *lines)


@pytest.mark.gate(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "read", "words"),
    [
        (inserting(TableOfNone), rows, r"Insert, ended after delivered of the windows \[.*\] and resumed: \['a', 'a'"),
        (inserting(TableOfOne), rows, "Insert, window 1 applied again after window 2: .* compare with <="),
        (beside(AtOnce), texts, r"AtOnce, ended after \w+ of the windows .*'t': 'aabb'} instead of"),
        (beside(Nowhere), texts, "Nowhere stored nothing"),
    ],
    ids=["records no window", "records one window", "writes at once", "writes nowhere"],
)
def test_a_sink_that_breaks_its_contract_is_named(make, read, words):
    with pytest.raises(ContractBroken, match=words):
        check_sink(make, read, ["a"], ["b"])


class Pages(PagedSource[int]):
    kind = "test.pages/1"

    def read_page(self, cursor):
        page = cursor or 0
        return ([page] if page < 3 else []), min(page + 1, 3)


def test_a_source_of_pages_is_read_to_its_last_page():
    assert check_source(Pages()) == [0, 1, 2]


@dataclass(frozen=True, slots=True)
class Order:
    number: int


class Orders(PagedSource[Order]):
    kind = "test.orders/1"

    def read_page(self, cursor):
        page = cursor or 0
        return ([Order(page)] if page < 2 else []), min(page + 1, 2)


class OrdersBySetting(PagedSource):
    """Names the type of its items as `Map` does, and not as an argument of its class."""

    kind = "test.orders_by_setting/1"
    read_page = Orders.read_page

    def sent_payload(self, port, received):
        return Order


@pytest.mark.parametrize("source", [Orders(), OrdersBySetting()], ids=["by its class", "by sent_payload"])
def test_what_a_source_finds_is_stored_as_the_type_of_its_stream(source):
    assert check_source(source) == [Order(0), Order(1)]


class Pieces(OnceSink):
    """Writes a file for each item, and declares no type of its items."""

    kind = "test.pieces/1"
    folder: str

    def write(self, delivery: Delivery[Any]) -> None:
        delivery.send_pieces(1, self.put)

    def put(self, key: str, items: list[Any]) -> None:
        Path(self.folder, key.rpartition("/")[2]).write_text(repr(items))


class Orderly(OnceSink[Order]):
    kind = "test.orderly/1"
    folder: str
    write, put = Pieces.write, Pieces.put


class Pairs(OnceSink[tuple[str, float]]):
    kind = "test.pairs/1"
    folder: str
    write, put = Pieces.write, Pieces.put


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sink", "items"),
    [(Orderly, [Order(1), Order(2)]), (Pieces, [Order(1), Order(2)]), (Pairs, [("a", 1), ("b", 0.5)])],
    ids=["a dataclass that its class binds", "a dataclass that only the items show", "a whole number as a float"],
)
def test_a_sink_is_fed_items_of_its_type(sink, items):
    check_sink(lambda folder: sink(folder=str(folder)), texts, items, items[:1])


class Answers:
    """Counts requests, and does not answer each third one."""

    def __init__(self) -> None:
        self.requests = itertools.count(1)

    def ask(self) -> None:
        if next(self.requests) % 3 == 0:
            raise Unavailable("503")


class OrdersFromServer(Orders):
    """Loses the server after the first item of a page."""

    ask: Callable[[], None]

    def read_page(self, cursor):
        items, following = super().read_page(cursor)
        return self.asking(items), following

    def asking(self, items: list[Order]) -> Iterator[Order]:
        yield from items
        self.ask()


class PiecesToServer(Pieces):
    ask: Callable[[], None]

    def connect(self, writer: str) -> None:
        self.ask()

    def put(self, key: str, items: list[Any]) -> None:
        self.ask()
        super().put(key, items)


class AwayForLateDrivers(Pieces):
    def connect(self, writer: str) -> None:
        if writer == "check":
            away()


def away() -> None:
    raise Unavailable("503")


def test_a_source_whose_server_does_not_answer_looks_again():
    assert check_source(OrdersFromServer(ask=Answers().ask), changes=[nothing]) == [Order(0), Order(1)]
    with pytest.raises(ContractBroken, match="OrdersFromServer got no answer in 20 attempts: 503"):
        check_source(OrdersFromServer(ask=away))


@pytest.mark.slow
def test_a_sink_whose_server_does_not_answer_is_applied_again():
    ask = Answers().ask
    check_sink(lambda folder: PiecesToServer(folder=str(folder), ask=ask), texts, ["a", "b"], ["c"])
    with pytest.raises(ContractBroken, match="AwayForLateDrivers got no answer in 20 attempts: 503"):
        check_sink(lambda folder: AwayForLateDrivers(folder=str(folder)), texts, ["a"])
    with pytest.raises(RunFailure, match=r"no longer than 0:10:00 of its clock: .*Sink.*: .*503") as raised:
        check_sink(lambda folder: PiecesToServer(folder=str(folder), ask=away), texts, ["a"])
    assert raised.value.code == "system-unavailable"
