"""Files that are found and read anywhere in a graph: every backend writes the same, which is what the files hold."""

from pathlib import Path
from typing import Any

import pytest

from dagkit import Dag, InputPort, OperatorContext, OutputPort, PortContext, State, StatelessPartitioner
from dagkit.launching import Machine, launch
from dagkit.ranges import OffsetRange, RestrictionTracker
from dagkit_operators import FileInfo, Items, Map, MatchFiles, PartWriter, ReadFiles
from tests.backends.places import SPARK, SPARK_IN_TRIALS

pytestmark = pytest.mark.slow


class ReadKnown(ReadFiles[str]):
    """Reads lines that begin with a word that came on a second input."""

    kind = "backends.read-known/1"
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
def home(tmp_path):
    """Files of numbers in two folders, of which some are none, and a list of the folders."""
    for number in range(6):
        path = tmp_path / "in" / f"folder-{number % 2}" / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{'x' if each % 7 == 3 else ''}{number * 100 + each}\n" for each in range(60)))
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "patterns").write_text(f"{tmp_path}/in/folder-0/*.txt\n{tmp_path}/in/folder-1\n")
    return tmp_path


def written(folder: Path) -> list[str]:
    return sorted(line for path in folder.iterdir() for line in path.read_text().splitlines())


def run(draw: Any, home: Path, backend: Any, request: pytest.FixtureRequest) -> None:
    session = request.getfixturevalue("spark") if backend == "spark" else None
    machine = Machine(backend=backend, spark=session)
    launch(draw, until="once", machine=machine, path=home / "state", durable=False)


backends = pytest.mark.parametrize("backend", ["reference", SPARK_IN_TRIALS])


@pytest.mark.parametrize("backend", ["reference", SPARK])
def test_patterns_that_were_read_lead_to_files_and_these_to_records(backend, home, request):
    def draw(dag: Dag, conf: object) -> None:
        lists = dag.add_operator("lists", Items[str](items=(str(home / "lists"),)))
        first = dag.add_operator("first", MatchFiles())
        patterns = dag.add_operator("patterns", ReadFiles[str]())
        match = dag.add_operator("match", MatchFiles())
        read = dag.add_operator("read", ReadFiles[int](parse=int, part_size=40, chunk_size=16))
        numbers = dag.add_operator("numbers", PartWriter(file_path=str(home / "numbers"), format=str))
        rejected = dag.add_operator(
            "rejected", PartWriter(file_path=str(home / "rejected"), format=lambda each: f"{each.text} at {each.start}")
        )
        dag.set_operator_attribute(read, OperatorContext.PARTITIONER, StatelessPartitioner(3))
        dag.set_input_port_attribute(numbers.input, PortContext.PARTITION_PARALLEL, True)
        lists >> first >> patterns.files
        patterns.messages >> match >> read.files
        dag.add_stream("numbers", read.messages, numbers.input)
        dag.add_stream("rejected", read.rejected, rejected.input)

    run(draw, home, backend, request)
    lines = [line for path in (home / "in").rglob("*.txt") for line in path.read_text().splitlines()]
    assert written(home / "numbers") == sorted(line for line in lines if not line.startswith("x"))
    assert len(list((home / "numbers").iterdir())) == 3
    rejections = written(home / "rejected")
    assert [each.split()[0] for each in rejections] == sorted(line for line in lines if line.startswith("x"))
    assert "x3 at 6" in rejections


@backends
def test_what_a_second_input_brought_is_known_to_the_reader(backend, home, request):
    def draw(dag: Dag, conf: object) -> None:
        patterns = dag.add_operator("patterns", Items[str](items=(str(home / "in"),)))
        words = dag.add_operator("words", Items[str](items=("5", "111", "x503")))
        match = dag.add_operator("match", MatchFiles())
        read = dag.add_operator("read", ReadKnown(part_size=40))
        dag.set_operator_attribute(read, OperatorContext.PARTITIONER, StatelessPartitioner(2))
        patterns >> match
        dag.add_stream("files", match.files, read.files)
        each = dag.add_operator("each", Map(str))  # items of an input operator are distributed, and this goes to all
        words >> each
        dag.add_stream("words", each.output, read.words)
        read.messages >> dag.add_operator("writer", PartWriter(file_path=str(home / "out")))

    run(draw, home, backend, request)
    assert written(home / "out") == ["111", "5", "x503"]
