"""Files that are found and read anywhere in a graph: every backend writes the same, which is what the files hold."""

from pathlib import Path
from typing import Any

import pytest

from dagkit import Dag, InputPort, OutputPort, PortContext, State
from dagkit.launching import Machine, launch
from dagkit.ranges import OffsetRange, RestrictionTracker
from dagkit_operators import FileInfo, Items, Map, MatchFiles, PartWriter, ReadFiles
from tests.backends.cast import chained, in_partitions, lines_in
from tests.backends.places import SPARK
from tests.old_files import aged

pytestmark = pytest.mark.slow


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
def home(tmp_path):
    """Files of numbers in two folders, of which some are none, and a list of the folders."""
    for number in range(6):
        path = tmp_path / "in" / f"folder-{number % 2}" / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{'x' if each % 7 == 3 else ''}{number * 100 + each}\n" for each in range(60)))
        aged(path)
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "patterns").write_text(f"{tmp_path}/in/folder-0/*.txt\n{tmp_path}/in/folder-1\n")
    aged(tmp_path / "lists" / "patterns")
    return tmp_path


def run(draw: Any, home: Path, machine: Machine) -> None:
    launch(draw, until="once", machine=machine, path=home / "state", durable=False)


@pytest.mark.parametrize("machine", ["reference", SPARK], indirect=True)
def test_patterns_that_were_read_lead_to_files_and_these_to_records(machine, home):
    def draw(dag: Dag, conf: object) -> None:
        lists, patterns = Items[str](items=(str(home / "lists"),)), ReadFiles[str]()
        chained(dag, lists=lists, first=MatchFiles(), patterns=patterns, match=MatchFiles())
        read = dag.add_operator("read", ReadFiles[int](parse=int, part_size=40, chunk_size=16))
        dag.operator("match").files >> in_partitions(dag, read, 3).files
        numbers = dag.add_operator("numbers", PartWriter(file_path=str(home / "numbers"), format=str))
        dag.set_input_port_attribute(numbers.input, PortContext.PARTITION_PARALLEL, True)
        rejected = PartWriter(file_path=str(home / "rejected"), format=lambda each: f"{each.text} at {each.start}")
        read.messages >> numbers
        read.rejected >> dag.add_operator("rejected", rejected)

    run(draw, home, machine)
    lines = lines_in(home / "in")
    assert lines_in(home / "numbers") == [line for line in lines if not line.startswith("x")]
    assert len(list((home / "numbers").iterdir())) == 3
    rejections = lines_in(home / "rejected")
    assert [each.split()[0] for each in rejections] == [line for line in lines if line.startswith("x")]
    assert "x3 at 6" in rejections


def test_what_a_second_input_brought_is_known_to_the_reader(machine, home):
    def draw(dag: Dag, conf: object) -> None:
        match = chained(dag, patterns=Items[str](items=(str(home / "in"),)), match=MatchFiles())
        # items of an input operator are distributed, and those of `each` go to all
        each = chained(dag, words=Items[str](items=("5", "111", "x503")), each=Map(str))
        read = in_partitions(dag, dag.add_operator("read", ReadKnown(part_size=40)), 2)
        match.files >> read.files
        each.output >> read.words
        read.messages >> dag.add_operator("writer", PartWriter(file_path=str(home / "out")))

    run(draw, home, machine)
    assert lines_in(home / "out") == ["111", "5", "x503"]
