"""A rejected item names the file and the byte that it was read from, whatever lies between it and the reader."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dagkit import Batch, Dag, InputPort, Operator, OutputPort, PortContext, State
from dagkit.compiler import compile_application
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.program.lower import program_of
from dagkit.launching import Machine, launch
from dagkit.ranges import OffsetRange, RestrictionTracker
from dagkit_operators import (
    FileInfo,
    FileSplitterInput,
    Filter,
    FlatMap,
    Items,
    LineReader,
    Map,
    MatchFiles,
    PartWriter,
    ReadFiles,
    Record,
    Rejected,
    Validate,
    value,
)
from tests.backends.cast import chained, in_partitions, lines_in
from tests.backends.places import SPARK, everywhere
from tests.engine.cast import Desk
from tests.old_files import aged

FILES = {"a.txt": "1 x\n22\n", "b.txt": "y\n3 z\n"}
WORDS = ["a.txt 0 x", "b.txt 0 y", "b.txt 2 z"]
LINES = ["a.txt 0 1 x", "b.txt 0 y", "b.txt 2 3 z"]


class Words(Operator):
    input = InputPort[Any]()
    output = OutputPort(str)

    def process(self, item: Any) -> Iterator[str]:
        yield from (item.value if isinstance(item, Record) else item).split()


class Passing(Operator):
    """Takes batches only, and makes others of their items."""

    served_by_engine = True
    input = InputPort(str)
    output = OutputPort(str)

    def process_batch(self, batch: Batch[str]) -> Batch[str]:
        return batch.where(batch.column("item").array().is_valid())


class Late(Operator):
    input = InputPort(str)
    output = OutputPort(str)
    held = State[list[str]](default=[])

    def process(self, item: str) -> None:
        self.held = [*self.held, item]

    def end_window(self) -> None:
        for item in self.held:
            self.output.emit(item)
        self.held = []


CHAINS: dict[str, tuple[list[Any], list[str]]] = {
    "batches that are divided": ([Map(int)], LINES),
    "a batch function": ([Map(batch=lambda column: [text.strip() for text in column.values()]), Map(int)], LINES),
    "an expression": ([Map(value.strip()), Map(int)], LINES),
    "a flat map": ([FlatMap(str.split), Map(int)], WORDS),
    "single items": ([Words(), Map(int)], WORDS),
    "a validation": ([Words(), Validate(int)], WORDS),
    "a filter": ([Words(), Filter(lambda text: int(text) > 0)], WORDS),
    "two exchanges": ([Words(), Map(str.strip), Map(int)], WORDS),
    "single items behind a batch": ([Map(str.strip), Words(), Map(int)], WORDS),
    "an operator that takes batches only": ([Words(), Passing(), Map(int)], WORDS),
    "items that a window held": ([Words(), Late(), Map(int)], [" None x", " None y", " None z"]),
}


def place(rejected: Rejected) -> str:
    return f"{Path(rejected.path).name} {rejected.start} {rejected.text}"


def populate(home: Path, *, is_connected: bool = True) -> Callable[[Dag, object], None]:
    def populate_dag(dag: Dag, conf: object) -> None:
        reader, firsts = lines_read(dag, home), []
        for name, (operators, _) in CHAINS.items():
            steps = {f"{name} {number}": operator.configured({}) for number, operator in enumerate(operators)}
            last = chained(dag, dict.fromkeys(steps, 2), **steps)
            firsts.append(dag.operator(f"{name} 0").input)
            if is_connected:
                last.rejected >> dag.add_operator(f"Write {name}", PartWriter(file_path=str(home / name), format=place))
        dag.add_stream("lines", reader.messages, *firsts)

    return populate_dag


def lines_read(dag: Dag, home: Path) -> LineReader:
    return chained(dag, Find=FileSplitterInput(scanner={"files": [str(home / "in")]}), Read=LineReader())


@pytest.fixture
def on(make):
    return lambda reference: make(reference.compilation)


@pytest.fixture
def home(tmp_path):
    (tmp_path / "in").mkdir()
    for name, content in FILES.items():
        (tmp_path / "in" / name).write_text(content)
        aged(tmp_path / "in" / name)
    return tmp_path


@everywhere
def test_a_rejected_item_names_its_file_and_byte(on, home):
    Desk(home, populate(home), backend=on).run()
    written = {name: lines_in(home / name) for name in CHAINS}
    assert written == {name: expected for name, (_, expected) in CHAINS.items()}


class Numbers(Operator):
    stateless = True
    input = InputPort[Any]()

    def process(self, item: Any) -> None:
        int(item)


@everywhere
def test_an_operator_that_raises_behind_two_exchanges_names_file_and_byte(on, home):
    (home / "in" / "a.txt").write_text("1 2\n22\n")
    aged(home / "in" / "a.txt")

    def draw(dag: Dag, conf: object) -> None:
        read, steps = lines_read(dag, home), {"words": Words(), "strip": Map(str.strip), "numbers": Numbers()}
        chained(dag, dict.fromkeys(steps, 2), **steps)
        read.messages >> dag.operator("words").input

    with pytest.raises(OperatorFailed) as raised:
        Desk(home, draw, backend=on).run()
    failure = raised.value.failure
    assert failure.operator == "numbers"
    assert failure.spot.place.partition(" (block ")[0] in (f"{home}/in/b.txt, byte 0", f"{home}/in/b.txt, byte 2")


def test_origins_are_taken_along_only_to_a_connected_output_that_names_them(tmp_path):
    program = program_of(compile_application(populate(tmp_path, is_connected=False)))
    assert not program.placed
    assert not any(target.placed for target in program.targets.values())
    program = program_of(compile_application(populate(tmp_path)))
    placed = {target.into[0] for target in program.targets.values() if target.placed}
    assert {name for name, _ in program.placed} == {
        f"{name} {n}" for name, (c, _) in CHAINS.items() for n in range(len(c))
    }
    assert "two exchanges 1" in placed
    assert "Read" not in placed
    assert not any(name.startswith("Write") for name in placed)


class ReadKnown(ReadFiles[str]):
    """Reads lines that begin with a word that came on a second input."""

    words = InputPort(str)
    messages = OutputPort(str, main=True)
    known = State[list[str]](list)
    stateless = False

    @words.process
    def take_word(self, word: str) -> None:
        self.known = [*self.known, word]

    def process(self, element: FileInfo, tracker: RestrictionTracker[OffsetRange, int]) -> Any:
        for batch in super().process(element, tracker):
            for line in batch.items():
                if line.split()[0] in self.known:
                    yield line


@pytest.fixture
def folders(tmp_path):
    for number in range(6):
        path = tmp_path / "in" / f"folder-{number % 2}" / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{'x' if each % 7 == 3 else ''}{number * 100 + each}\n" for each in range(60)))
        aged(path)
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "patterns").write_text(f"{tmp_path}/in/folder-0/*.txt\n{tmp_path}/in/folder-1\n")
    aged(tmp_path / "lists" / "patterns")
    return tmp_path


def run(draw: Any, folders: Path, machine: Machine) -> None:
    launch(draw, until="once", machine=machine, path=folders / "state", durable=False)


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["reference", SPARK], indirect=True)
def test_patterns_that_were_read_lead_to_files_and_these_to_records(machine, folders):
    def draw(dag: Dag, conf: object) -> None:
        lists, patterns = Items[str](items=(str(folders / "lists"),)), ReadFiles[str]()
        chained(dag, lists=lists, first=MatchFiles(), patterns=patterns, match=MatchFiles())
        read = dag.add_operator("read", ReadFiles[int](parse=int, part_size=40, chunk_size=16))
        dag.operator("match").files >> in_partitions(dag, read, 3).files
        numbers = dag.add_operator("numbers", PartWriter(file_path=str(folders / "numbers"), format=str))
        dag.set_input_port_attribute(numbers.input, PortContext.PARTITION_PARALLEL, True)
        rejected = PartWriter(file_path=str(folders / "rejected"), format=lambda each: f"{each.text} at {each.start}")
        read.messages >> numbers
        read.rejected >> dag.add_operator("rejected", rejected)

    run(draw, folders, machine)
    lines = lines_in(folders / "in")
    assert lines_in(folders / "numbers") == [line for line in lines if not line.startswith("x")]
    assert len(list((folders / "numbers").iterdir())) == 3
    rejections = lines_in(folders / "rejected")
    assert [each.split()[0] for each in rejections] == [line for line in lines if line.startswith("x")]
    assert "x3 at 6" in rejections


@pytest.mark.slow
def test_what_a_second_input_brought_is_known_to_the_reader(machine, folders):
    def draw(dag: Dag, conf: object) -> None:
        match = chained(dag, patterns=Items[str](items=(str(folders / "in"),)), match=MatchFiles())
        # items of an input operator are distributed, and those of `each` go to all
        each = chained(dag, words=Items[str](items=("5", "111", "x503")), each=Map(str))
        read = in_partitions(dag, dag.add_operator("read", ReadKnown(part_size=40)), 2)
        match.files >> read.files
        each.output >> read.words
        read.messages >> dag.add_operator("writer", PartWriter(file_path=str(folders / "out")))

    run(draw, folders, machine)
    assert lines_in(folders / "out") == ["111", "5", "x503"]
