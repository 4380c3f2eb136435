"""What `dagkit launch` prints of work that a window did not finish, and of operators that found no file."""

import json
import os
import socket
from datetime import UTC, datetime, timedelta

import pytest

from dagkit.api.stats import OperatorStats, PortStats
from dagkit.cli.running.launch_progress import Progress
from dagkit.cli.terminal.output import Output
from dagkit.engine.record.run_events import Committed, Draining, Measured, Queue, Resumed, SlotAtWork, Started, Working
from dagkit.engine.record.snapshot import OperatorFigures
from dagkit.launching import Launched
from tests.console.conftest import run_copying
from tests.engine.record.launches import first_snapshot
from tests.patience import LONG_WINDOWS

COUNTING = """
from dagkit import *

class Names(InputOperator):
    names = OutputPort[tuple[str, int]]()

    def emit_tuples(self) -> None:
        self.names.emit(("a", 4))
        raise Shutdown

class Count(SplittableOperator[tuple[str, int]]):
    names = InputPort[tuple[str, int]]()
    numbers = OutputPort(int)

    def initial_restriction(self, element):
        return (0, element[1])

    def process(self, element, tracker):
        if tracker.try_claim(tracker.current_restriction().start):
            tracker.defer_remainder()
        yield from ()

class Ignore(Operator):
    input = InputPort(int)

    def process(self, item: int) -> None:
        pass

class App(StreamingApplication):
    def populate_dag(self, dag, conf):
        dag.add_operator("Names", Names()) >> dag.add_operator("Count", Count()) >> dag.add_operator("Ignore", Ignore())
"""


def test_progress_names_unfinished_work_and_how_far_it_has_come_and_a_launch_syncs_unless_asked(
    dagkit, write, monkeypatch
):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    write("counting.py", COUNTING)
    launch = ("launch", "counting.py", "--until-idle", "--reference")
    answer = dagkit(*launch, "-v", "--windows", "2", "--no-sync")
    assert synced == []
    windows = [line.partition("; busiest: ")[0] for line in answer.err.splitlines() if line.startswith("window ")]
    under_way = [line.partition("; under way: ")[2] for line in windows]
    assert under_way == ['Count ["a",4] 25%', 'Count ["a",4] 50%']
    assert '; under way: Count ["a",4] 50%' in answer.out
    work = {"source": '["a",4]', "completed": 3.0, "remaining": 1.0}
    assert dagkit(*launch, "--windows", "1", "--json").document["underway"] == {"Count": [work]}
    assert synced
    assert dagkit(*launch, "--json").document["underway"] == {}


FINDING = """
from dagkit import *
from dagkit_operators import FileSplitterInput, Items, LineReader, Map, MatchFiles

class App(StreamingApplication):
    def populate_dag(self, dag, conf):
        patterns = dag.add_operator("Patterns", Items(items=["in/*.csv", "in"]))
        matching = dag.add_operator("Matching", MatchFiles())
        patterns >> matching >> dag.add_operator("Paths", Map(str))
        splitter = dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["in"]}))
        reader = dag.add_operator("Reader", LineReader())
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
"""


def test_the_summary_names_what_found_no_file_and_messages_say_where_it_searched(dagkit, write, folder, caplog):
    write("finding.py", FINDING)
    (folder / "in").mkdir()
    answer = dagkit("launch", "finding.py", "--once", "--reference", "--path", "first")
    assert [line for line in answer.out.splitlines() if "found no" in line] == [
        "Matching: found no file to read in in/*.csv, in",
        "Splitter: found no file to read in in",
    ]
    help_ = "help: check the pattern; relative paths begin in the folder"
    assert f"no file matches {folder}/in/*.csv\n  {help_}" in caplog.text
    write("in/a.txt", "a\n")
    for _ in range(2):  # a later launch that finds nothing more
        assert "found no" not in dagkit("launch", "finding.py", "--once", "--reference", "--path", "second").out


def test_a_file_that_only_the_receiver_counted_was_found():
    """On Spark, what a splittable operator sends within its stage is counted where it arrives."""
    progress = Progress(Output(), {"Match": ["in"], "Other": ["in"]}, {"Match": {"Read"}, "Other": {"Read too"}})
    progress(Resumed("app", 0, 0, promised=False))
    sent, got = OperatorStats(1, output_ports=(PortStats("files"),)), OperatorStats(1, (PortStats("files", 1),))
    at = datetime(2026, 1, 1, tzinfo=UTC)
    progress(Measured(1, at, at, at, {"Match": [sent], "Other": [sent], "Read": [got], "Read too": [sent]}, {}))
    lines = progress.summary(Launched("app", "place", 1)).splitlines()
    assert lines[1:-1] == ["Other: found no file to read in in"]


@pytest.mark.parametrize(
    ("read", "written", "files", "summary"),
    [
        ({"byte": 1000}, 80, 1, "1.0 kB read, 80 B written to 1 file"),
        ({"byte": 1000}, 80, 0, "1.0 kB read, 80 B written"),
        ({"byte": 1000}, 0, 0, "1.0 kB read, nothing written"),
        ({}, 0, 1, "nothing read, nothing written, 1 file completed"),
        ({"offset": 12345, "byte": 9}, 8, 0, "9 B and 12,345 offsets read, 8 B written"),
    ],
)
def test_the_summary_counts_no_files_where_a_table_or_topic_was_written(read, written, files, summary):
    progress = Progress(Output(verbosity=-1), {}, {})
    progress(Committed(1, 0.0, read, files, written))
    summary = f"app: 1 window, {summary} in 0.0 s"
    assert progress.summary(Launched("app", "place", 1)).splitlines()[0] == summary


@pytest.mark.parametrize("window", [0, 3])
def test_the_summary_of_a_launch_whose_only_window_was_abandoned_says_that_none_was_committed(window):
    progress = Progress(Output(verbosity=-1), {}, {})
    progress(Started(window + 1, 1, 1000.0))
    summary = progress.summary(Launched("app", "place", window))
    assert summary.splitlines()[0] == "app: no window was committed"


@pytest.mark.parametrize(("count", "are", "it"), [(1, "1 file is", "it"), (2, "2 files are", "them")])
def test_the_summary_counts_files_that_are_not_complete_and_names_their_folder(count, are, it):
    progress = Progress(Output(verbosity=-1), {}, {})
    launched = Launched("app", "place", 1, {"Writer": ("out",)}, incomplete=count)
    assert progress.summary(launched).splitlines()[1:] == [
        "output: out (Writer), no file yet",
        f"{are} not complete, so not visible; the next launch continues {it}, and one with --once completes {it}",
        "ledger: dagkit ledger show place",
    ]


@pytest.mark.parametrize(
    ("unit", "read", "left"), [("byte", "1.0 kB", "40.0 kB"), ("key", "1,000 keys", "40,000 keys")]
)
def test_a_line_of_progress_says_how_long_the_pending_work_takes(capsys, unit, read, left):
    queues = [Queue("Read", "blocks", 4, 40000, unit)]
    progress, lasts = Progress(Output(verbosity=1), {}, {}), {"eta_seconds": 60, "eta_least_seconds": 40}
    with progress.watch(lambda: first_snapshot().model_copy(update={**lasts, "eta_most_seconds": 80})):
        progress(Committed(3, 1500.0, {unit: 1000}, 1, 80, queues))
    pending = f"4 elements pending, {left}, about 1 min 0 s left (40 s to 1 min 20 s)"
    assert capsys.readouterr().err == f"window 3: {read} read, 80 B written in 1.5 s; {pending}\n"


def test_a_line_of_progress_names_the_busiest_operator(capsys):
    progress, busy = Progress(Output(verbosity=1), {}, {}), {"stage": "s", "partitions": 1, "wanted": 1}
    operators = [OperatorFigures(name=name, busy=share, **busy) for name, share in (("Read", 0.2), ("Parse", 0.41))]
    with progress.watch(lambda: first_snapshot().model_copy(update={"operators": tuple(operators)})):
        progress(Committed(3, 1500.0, {"byte": 1000}, 1, 80))
    line = "window 3: 1.0 kB read, 80 B written in 1.5 s; busiest: Parse 41%"
    assert capsys.readouterr().err == f"{line}\n"


def at_work():
    began = datetime.now(UTC) - timedelta(seconds=5)
    work = [("Reader", "a.txt", 0.4), ("Other", "c", None), ("Reader", "b", None)]
    return Working([SlotAtWork(3, operator, 0, source, began, fraction) for operator, source, fraction in work])


@pytest.mark.parametrize(
    ("verbosity", "event", "line"),
    [
        (0, Draining(3), "stopping: the windows in flight end first; a second interrupt stops at once"),
        (1, Committed(3, 5000.0, {}, 1, 0, received=0), "window 3: no input, 1 file completed in 5.0 s"),
        (1, Committed(3, 5000.0, {}, 0, 0, received=0), "window 3: no input, only work that was due in 5.0 s"),
        (1, Committed(3, 5000.0, {}, 0, 0, received=3), "window 3: 3 items handled, 0 B written in 5.0 s"),
        (1, Committed(3, 5000.0, {}, 0, 0), "window 3: nothing read, 0 B written in 5.0 s"),
        (1, at_work, "at work: Reader a.txt 40% for 5 s, b for 5 s; Other c for 5 s"),
        (0, at_work, ""),
    ],
    ids=["an interrupt", "no input", "due work", "items", "unknown", "no line for long", "not asked"],
)
def test_a_line_of_progress_says_what_was_done_or_is_being_done(capsys, verbosity, event, line):
    Progress(Output(verbosity=verbosity), {}, {})(event() if callable(event) else event)
    assert capsys.readouterr().err == f"{line}\n" * bool(line)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--spark executor.memory=4g", "begin with 'spark.'"),
        ("--reference --spark spark.a=b", "leave out"),
        ("--spark spark.a", "key=value"),
    ],
)
def test_settings_of_spark_have_its_prefix_and_need_spark(dagkit, write, options, problem):
    write("counting.py", COUNTING)
    dagkit("launch", "counting.py", *options.split()).fails(2, problem)


COPYING = """
from dagkit import *
from dagkit_operators import FileSplitterInput, LineReader, RecordWriter

class Copy(StreamingApplication):
    def populate_dag(self, dag, conf):
        splitter = dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["one"]}))
        writer = dag.add_operator("Writer", RecordWriter(file_path="out"))
        splitter >> dag.add_operator("Reader", LineReader()) >> writer
"""
FILES = "dt.operator.Splitter.prop.scanner.files="


@pytest.fixture
def copied(dagkit, write):
    """A run that copied a file."""
    write("copying.py", COPYING)
    write("one/a.txt", "a\n")
    write("two/b.txt", "b\n")
    assert dagkit("launch", "copying.py", "--once", "--reference").code == 0


def test_a_launch_with_another_input_says_how_it_differs_and_what_that_means(dagkit, copied):
    lines = dagkit("launch", "copying.py", "--once", "--reference", "-D", f"{FILES}two").err.splitlines()
    other = "for another application set APPLICATION_NAME or --path"
    assert lines[0].startswith("the application differs from its last launch, ")
    assert lines[1:4] == [
        "  operator Splitter: property scanner.files changes from ['one'] to ['two']",
        "  it resumes after window 1: input that was processed is not processed again",
        f"  help: --fresh processes all input again and keeps the earlier run; {other}",
    ]


def test_the_summary_names_where_the_results_are(dagkit, folder, copied):
    answer = dagkit("launch", "copying.py", "--once", "--reference", "--fresh")
    assert answer.out.splitlines()[1:] == ["output: out (Writer)", "ledger: dagkit ledger show .dagkit/Copy"]
    document = dagkit("launch", "copying.py", "--once", "--reference", "--json").document
    assert document["outputs"] == {"Writer": [str(folder / "out")]}
    again = dagkit("launch", "copying.py", "--once", "--reference")
    assert (again.err.startswith("Copy: resuming after window "), again.err.count("\n")) == (True, 1)


def test_fresh_begins_again_and_keeps_the_earlier_run(dagkit, folder, copied):
    answer = dagkit("launch", "copying.py", "--once", "--reference", "--fresh", **LONG_WINDOWS)
    (kept,) = [found for found in (folder / ".dagkit").iterdir() if found.name != "Copy"]
    assert answer.err.splitlines()[:2] == [
        f"beginning again; the earlier run is in {kept}; its output files stay",
        "Copy: starting",
    ]
    assert "1 window, 2 B read" in answer.out
    assert dagkit("ledger", "verify", str(kept)).code == 0
    assert dagkit("launch", "copying.py", "--once", "--reference", "--fresh", "--path", "nowhere").code == 0


def test_fresh_renames_nothing_if_an_output_folder_is_refused_and_no_object_store(dagkit, folder, write, copied):
    write("file", "")
    fresh = ("launch", "copying.py", "--once", "--reference", "--fresh")
    dagkit(*fresh, "-D", "dt.operator.Writer.prop.file_path=file").fails(5, "[folder-refused]")
    dagkit(*fresh, "--path", "memory://app").fails(2, "--fresh renames a folder, which object stores cannot do;")
    assert [found.name for found in (folder / ".dagkit").iterdir()] == ["Copy"]
    assert dagkit(*fresh[:-1]).err == "Copy: resuming after window 1\n"


def test_the_ledger_shows_the_input_the_output_and_the_items_of_a_window_before_hashes(dagkit, folder, copied):
    shown = dagkit("ledger", "show", ".dagkit/Copy", "--last", "1").out.splitlines()
    assert shown[1:6] == [
        "  window: 1",
        f"  read: {folder}/one/a.txt[0, 2)",
        f"  wrote: Writer {folder}/out/0, 2 B",
        "  Reader: 1 item received, 1 sent",
        "  Writer: 1 item received, 0 sent",
    ]
    assert f"  found: {folder}/one/a.txt[0, 2)" in shown


def test_the_token_of_a_connect_server_is_neither_printed_nor_written(dagkit, write, folder):
    write("counting.py", COUNTING)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        place = f"sc://127.0.0.1:{closed.getsockname()[1]}"
        master = f"{place}/;user_id=ann;token=planted"
        answer = dagkit("launch", "counting.py", "--once", "-v", "--master", master)
    assert (answer.code, f"no Spark at {place}: " in answer.err) == (9, True)
    written = [file.read_bytes() for file in folder.rglob("*") if file.is_file()]
    assert any(b"starting Spark at sc://127.0.0.1:" in content for content in written)
    assert not any(b"planted" in content for content in [(answer.out + answer.err).encode(), *written])


READING = """
from dagkit_operators import FileSplitterInput, Items, LineReader, MatchFiles, PartWriter, ReadFiles

def populate_dag(dag, conf):
    splitter = dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["in"]}))
    splitter >> dag.add_operator("Reader", LineReader()) >> dag.add_operator("Writer", PartWriter(file_path="out/1"))
    matching = dag.add_operator("Patterns", Items(items=("in",))) >> dag.add_operator("Match", MatchFiles())
    matching >> dag.add_operator("Read", ReadFiles()) >> dag.add_operator("Other", PartWriter(file_path="out/2"))
"""


def test_files_that_are_read_again_are_warned_of_once_and_counted_in_the_summary(dagkit, write, folder, caplog):
    write("reading.py", READING)
    for text in ("one\n", "one\ntwo\n", "one\ntwo\nthree\n"):
        write("in/a.txt", text)
        write("in/b.txt", text)
        answer = dagkit("launch", "reading.py", "--once", "--reference", "--json").document
        again = 0 if text == "one\n" else 2
        assert sum(counts["files_read_again"] for counts in answer["read_again"].values()) == 2 * again
        warnings = [message for message in caplog.messages if "was read before and has changed" in message]
        assert len(warnings) == again
        caplog.clear()
    assert f"{folder}/in/a.txt was read before and has changed; as each such file, it is read again" in warnings[0]
    status = dagkit("status", "reading.py").out
    assert "\nMatch: 2 read again as a whole (files_read_again)\n" in status
    assert "\nSplitter: 2 read again as a whole (files_read_again)\n" in status


def test_files_that_are_left_to_the_next_launch_are_named_in_the_summary(dagkit, write, folder):
    write("reading.py", READING.replace('"files": ["in"]', '"files": ["in"], "minimum_age_millis": 10**9'))
    write("in/a.txt", "one\n")
    answer = dagkit("launch", "reading.py", "--once", "--reference", "--path", "place")
    why = (
        f"pending files: 1; {folder}/in/a.txt was changed within the last 1000000000 ms (minimum_age_millis); it can be"
    )
    (left,) = [line for line in answer.out.splitlines() if line.startswith("left to the next launch: ")]
    assert left.startswith(f"left to the next launch: Splitter: {why} read from ")
    assert "found no file" not in answer.out
    assert f"\nwaiting: Splitter: {why} read from " in dagkit("status", "place").out
    again = dagkit("launch", "reading.py", "--once", "--reference", "--path", "place", "--json").document
    assert [reason.startswith(f"Splitter: {why}") for reason in again["waits_for"]] == [True]


ACCOUNTING = """
from dagkit_operators import *

def populate_dag(dag, conf):
    splitter = dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["in"]}))
    context = JsonLinesContext(types={"id": "int64"}, where=value.field("id") > 1)
    reader = dag.add_operator("Reader", JsonLinesReader(reader_context=context))
    splitter >> reader >> dag.add_operator("Lines", PartWriter(file_path="out", format=str))
    refused = dag.add_operator("Refused", PartWriter(file_path="no", format=str))
    dag.add_stream("refused", reader.rejected, refused.input)
"""


def test_every_row_that_a_reader_read_is_in_the_accounts_of_the_launch_and_of_its_windows(dagkit, write, caplog):
    write("app.py", ACCOUNTING)
    rows = [{"id": 1, "city": "Rome"}, {"id": 2, "city": "Bari"}, {"id": 3}, {"id": 1}]
    write("in/a.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows) + "{broken\n")
    launched = dagkit("launch", "app.py", "--once", "--reference", "--path", "place")
    assert "\nReader: 2 left out (fields_ignored), 2 dropped, 1 rejected; last: " in launched.out
    last = launched.out.partition("; last: ")[2].partition("\n")[0]
    assert last.partition("in/a.jsonl, byte ")[2] == "72: '{broken': the line is not a JSON object"
    (warning,) = [message for message in caplog.messages if "does not name" in message]
    unread = "fields were not read, since the type of the records does not name them: city (values: 2)"
    assert warning.startswith(f"Reader: {unread}\n  help: add the fields")
    assert "2 left out (fields_ignored)" in dagkit("status", "place").out
    account = "Reader: 1 item received, 2 sent, 1 rejected, 2 dropped, 2 left out (fields_ignored)"
    assert account in [line.strip() for line in dagkit("ledger", "show", "place").out.splitlines()]
    (window, *_) = dagkit("items", "place", "--json").document["windows"]
    reader = window["operators"]["Reader"]
    assert (reader["dropped"], reader["rejected"], reader["left_out"]["fields_ignored"]) == (2, 1, 2)
    assert reader["adds_up"]
    again = dagkit("launch", "app.py", "--once", "--reference", "--path", "place", "--json")
    assert again.document["left_out"] == {}


def test_the_ledger_shows_the_length_of_a_file_with_the_window_that_completes_it(dagkit, folder):
    place = run_copying(folder)  # windows write, and the last one completes the file
    (file,) = (folder / "out").iterdir()
    shown = dagkit("ledger", "show", str(place), "--last", "1").out.splitlines()
    assert f"  completed: {file}, {file.stat().st_size} B with earlier windows" in shown
    assert not any(line.startswith("  wrote:") for line in shown)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.trial
def test_a_worker_that_dies_is_reported_without_traces_of_java(process, write):
    write(
        "dying.py",
        """
import os

from dagkit import *
from dagkit_operators import Items


class Dying(Operator):
    kind = "tests.dying/1"
    input = InputPort(str)

    def process(self, item: str) -> None:
        os._exit(1)


def populate_dag(dag: Dag, conf: Config) -> None:
    dag.add_operator("items", Items(items=["a"])) >> dag.add_operator("dying", Dying())
""",
    )
    answer = process("launch", "dying.py", "--once", "--path", "app")
    assert answer.code == 7
    assert answer.err.count("a Python worker ended without an exception; it was killed") == 1
    assert not [noise for noise in ("Traceback", "\tat ", "SparkException", "ERROR ", "py4j") if noise in answer.err]
