"""`dagkit replay`: prints what a correction of the code changes."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

APP = """
from dagkit import InputPort, Operator, OutputFiles
from dagkit_operators import FileSplitterInput, LineReader, Record, RecordWriter

class Folders(Operator):
    kind = "test.folders/1"
    input = InputPort[Record[str]]()
    files = OutputFiles(lambda _: "out")

    def process(self, item):
        self.files.open(f"{item.block_id}/rows", block=item.block_id).write(item.value.encode())

def populate_dag(dag, conf) -> None:
    splitter = dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["in"]}))
    splitter >> dag.add_operator("Reader", LineReader()) >> dag.add_operator("Writer", RecordWriter(file_path="out"))
"""


@pytest.fixture
def replay(dagkit, write, launch):
    """Run an application and return `dagkit replay` for it."""
    write("app.py", APP)
    write("in/a.txt", "one\ntwo\n")
    launch("--path", "place")
    return lambda *arguments: dagkit("replay", "app.py", *arguments, "--path", "place")


CHANGED = ("-D", "dt.operator.Writer.prop.record_separator=!\n")


def test_equal_output_gives_zero(replay):
    answer = replay("--file", "in/a.txt")
    assert (answer.code, answer.out) == (0, "window 1, Writer out/0: 2 rows, all the same\n")
    for options in ((), ("--window", "1", "--file", "in/a.txt"), ("--file", "in/b.txt")):
        assert replay(*options).code == 2


@pytest.mark.parametrize("command", ["replay app.py --window 1", "trace app.py out/0:1"])
@pytest.mark.usefixtures("replay")
def test_a_ledger_of_another_application_is_refused(dagkit, command):
    answer = dagkit(*command.split(), "-D", "dt.attr.APPLICATION_NAME=Another", "--path", "place")
    assert (answer.code, answer.err.partition("\n")[0].rpartition(" ")[2]) == (7, "[application-mismatched]")


def test_a_difference_is_shown_up_to_the_limit_and_gives_ten(replay):
    answer = replay("--window", "1", *CHANGED)
    first, *lines = answer.out.splitlines()
    assert first.endswith("out/0: 0 rows the same, 2 only in the output, 2 only in the replay")
    assert (answer.code, lines) == (10, ["@@ -1,2 +1,2 @@", "-one", "-two", "+one!", "+two!"])
    limited = replay("--window", "1", *CHANGED, "--limit", "2")
    assert limited.out.splitlines()[1:] == ["@@ -1,2 +1,2 @@", "-one", "… 3 lines more"]
    (one,) = replay("--window", "1", *CHANGED, "--json", "--limit", "0").document["outputs"]
    place = {"window": 1, "operator": "Writer", "file": str(Path("out/0").absolute())}
    assert one == {**place, "equal": False, "same": 0, "before": 2, "now": 2, "difference": []}


def test_what_it_writes_is_kept_in_a_new_folder(replay):
    assert replay("--window", "1", *CHANGED, "--into", "kept").code == 10
    assert Path("kept/1/Writer/0").read_text() == "one!\ntwo!\n"
    assert Path("out/0").read_text() == "one\ntwo\n"
    assert replay("--window", "1", "--into", "kept").code == 2


def test_files_of_one_name_in_several_folders_are_kept_apart(dagkit, write, launch):
    write("app.py", APP.replace('RecordWriter(file_path="out"))', "Folders())"))
    for name in "ab":
        write(f"in/{name}.txt", f"{name}\n")
    launch("--path", "place")
    assert dagkit("replay", "app.py", "--window", "1", "--into", "kept", "--path", "place").code == 0
    kept = {str(path.relative_to("kept/1/Writer")): path.read_text() for path in Path("kept").rglob("rows")}
    assert kept == {"0/rows": "a", "1/rows": "b"}


def test_rows_of_parquet_are_compared_whatever_files_they_are_in(dagkit, write, launch):
    rows = """dag.add_operator("Rows", Map(lambda text: Row(text))) >> dag.add_operator(
        "Writer", ParquetPartWriter(file_path="out", record_type=Row, max_count=1))"""
    app = APP.replace('dag.add_operator("Writer", RecordWriter(file_path="out"))', rows)
    app = f"from rows import Row\nfrom dagkit_operators import Map, ParquetPartWriter\n{app}"
    write("rows.py", "from dataclasses import dataclass\n\n@dataclass(frozen=True)\nclass Row:\n    text: str\n")
    write("app.py", app)
    for name in "ab":
        write(f"in/{name}.txt", f"{name}\n")
    launch("--path", "place")
    command = ("replay", "app.py", "--window", "1", "--path", "place", "-D", "dt.operator.Writer.prop.max_count=2")
    assert dagkit(*command).out == "window 1, Writer: 2 rows, all the same\n"
    write("app.py", app.replace("Row(text)", "Row(text.replace('a', 'c'))"))
    assert dagkit(*command).out.splitlines()[1:] == [
        "@@ -1,2 +1,2 @@",
        '-{"text": "a"}',
        ' {"text": "b"}',
        '+{"text": "c"}',
    ]
