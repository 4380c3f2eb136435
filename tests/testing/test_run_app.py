"""`run_app` returns what an application sent, wrote and kept, whichever crashes it survived; pytest has fixtures."""

import json
import sys
from typing import Any

import pytest

from dagkit import Block, InputOperator, InputPort, KeyedState, Operator, OutputFiles, OutputPort
from dagkit.engine.program.points import Point
from dagkit.testing import Crashes, FakeClock, run_app
from dagkit_operators import FileSplitterInput, LineReader, Record, RecordWriter
from tests.processes import run_program


class Lines(InputOperator):
    output = OutputPort[str]()

    def emit_tuples(self) -> None:
        raise AssertionError("the input is given")


class Sides(InputOperator):
    left = OutputPort[str]()
    right = OutputPort[str]()


class Count(Operator):
    input = InputPort[str]()
    more = InputPort[str](optional=True)
    others = InputPort[str](optional=True)
    output = OutputPort[tuple[str, int]]()
    seen = KeyedState[str, int](int)

    def process(self, item: str) -> None:
        for word in item.split():
            self.seen[word] += 1
            self.output.emit((word, self.seen[word]))

    @more.process
    def take_more(self, item: str) -> None:
        self.process(item)

    @others.process
    def take_other(self, item: str) -> None:
        self.process(item)


class Log(Operator):
    input = InputPort[tuple[str, int]]()
    files = OutputFiles(lambda log: "log")

    def process(self, item: tuple[str, int]) -> None:
        self.files.open("words").write(f"{item[0]}\n".encode())

    def drained(self) -> None:
        self.files.finish("words")


def counting(dag: Any, conf: Any) -> None:
    dag.add_operator("Lines", Lines()) >> dag.add_operator("Count", Count()) >> dag.add_operator("Log", Log())


def test_items_files_and_state_are_returned():
    outputs = run_app(counting, {"Lines": ["to be", "or"]}, {"Lines": ["be"]})
    assert dict(outputs) == {"Count:output": [("to", 1), ("be", 1), ("or", 1), ("be", 2)]}
    assert outputs.files == {"log/words": b"to\nbe\nor\nbe\n"}
    counted = {json.loads(key): count for key, (count, _) in outputs.state["Count"][0]["seen"].items()}
    assert counted == {"to": 1, "be": 2, "or": 1}


def test_a_crash_changes_nothing_and_each_window_is_crashed_once(crashes):
    looks = {"Lines": ["to be", "or"]}, {"Lines": ["be"]}
    outputs, undisturbed = run_app(counting, *looks, crashes=crashes), run_app(counting, *looks)
    assert dict(outputs) == dict(undisturbed)
    assert outputs.files == undisturbed.files
    crashes = Crashes(Point.STAGED)
    run_app(counting, {"Lines": ["a"]}, {"Lines": ["b"]}, crashes=crashes)
    assert crashes.windows == [1, 2, 3], "the last window drains the files"


def two(dag: Any, conf: Any) -> None:
    """Two input operators, one of them with two outputs, before one operator."""
    sides, count = dag.add_operator("Sides", Sides()), dag.add_operator("Count", Count())
    dag.add_stream("left", sides.left, count.input)
    dag.add_stream("right", sides.right, count.more)
    dag.add_stream("lines", dag.add_operator("Lines", Lines()).output, count.others)
    dag.add_stream("counted", count.output, dag.add_operator("Log", Log()).input)


def test_several_outputs_are_named_and_a_window_without_items_of_one_input_is_no_end():
    looks = {"Sides.left": ["a"]}, {"Sides.right": ["a"], "Sides.left": ["b"]}, {"Lines": ["a"]}, {"Sides.left": ["a"]}
    assert run_app(two, *looks)["counted"] == [("a", 1), ("b", 1), ("a", 2), ("a", 3), ("a", 4)]
    with pytest.raises(KeyError, match=r"Sides has no output ''; name one of Sides\.left, Sides\.right"):
        run_app(two, {"Sides": ["a"]})
    with pytest.raises(KeyError, match=r"Sides has no output 'middle'"):
        run_app(two, {"Sides.middle": ["a"]})


def test_two_names_of_one_output_are_refused():
    with pytest.raises(KeyError, match=r"Lines and Lines\.output are one output"):
        run_app(counting, {"Lines": ["a"], "Lines.output": ["b"]})
    outputs = run_app(counting, {"Lines": ["a"]}, {"Lines.output": ["b"]})
    assert outputs["Count:output"] == [("a", 1), ("b", 1)]


def copying(file: str) -> Any:
    def draw(dag: Any, conf: Any) -> None:
        splitter = dag.add_operator("Splitter", FileSplitterInput(scanner={"files": [file]}))
        splitter >> dag.add_operator("Reader", LineReader()) >> dag.add_operator("Writer", RecordWriter())

    return draw


def test_what_is_not_given_looks_as_usual_and_work_may_be_given(tmp_path):
    (path := tmp_path / "in.txt").write_text("a\nb\n")
    conf = {"dt.operator.Writer.prop.filePath": "elsewhere"}
    outputs = run_app(copying(str(path)), conf=conf, clock=FakeClock())
    assert outputs["Reader:messages"] == [Record(0, "a"), Record(0, "b")]
    assert outputs.files == {"elsewhere/0": b"a\nb\n"}
    work = {"Splitter.blocks_metadata_output": [Block(7, str(path), 0, 4)]}
    assert run_app(copying("nowhere"), work, conf=conf).files == {"elsewhere/7": b"a\nb\n"}


def test_a_misspelt_name_is_corrected():
    with pytest.raises(KeyError, match="no input operator 'Line'; did you mean 'Lines'"):
        run_app(counting, {"Line": ["a"]})
    with pytest.raises(KeyError, match=r"no stream 'Count\.output' between operators; did you mean 'Count:output'"):
        run_app(counting, {"Lines": ["a"]})["Count.output"]


@pytest.mark.slow
def test_the_fixture_comes_once_for_each_step(tmp_path):
    (tmp_path / "test_steps.py").write_text(
        "import pytest\n"
        "def test_step(crashes): print(crashes)\n"
        "@pytest.mark.parametrize('n', [1, 4])\n"
        "def test_beside(crashes, n): print(crashes, 'and', n)\n"
        "@pytest.mark.parametrize('n, crashes', [(1, 'mine')])\n"
        "def test_chosen(crashes, n): assert crashes == 'mine'\n"
        "def test_clock(fake_clock): print(fake_clock.now())\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", str(tmp_path)]
    answer = run_program(command, cwd=tmp_path)
    assert [f"Crashes({point})" in answer.stdout for point in Point] == [True] * len(Point)
    assert all(f"Crashes({point}) and {n}" in answer.stdout for point in Point for n in (1, 4))
    assert "2024-01-01 00:00:00+00:00" in answer.stdout
    assert f"{3 * len(Point) + 2} passed" in answer.stdout


def test_pytest_starts_without_the_package():
    program = "import sys, dagkit_pytest; print([name for name in sys.modules if name.partition('.')[0] == 'dagkit'])"
    answer = run_program([sys.executable, "-c", program])
    assert answer.stdout == "[]\n"
