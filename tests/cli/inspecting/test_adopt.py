"""`dagkit ledger adopt`: the files that a query of Structured Streaming has read count as read."""

import os
from pathlib import Path

import pytest

from dagkit.runs.inventory.adoption import MAX_FILE_AGE_MILLIS
from tests.inventory.checkpoints import Checkpoint

pytestmark = pytest.mark.slow

APP = """
from dagkit_operators import FileSplitterInput, LineReader, PartWriter

def populate_dag(dag, conf) -> None:
    found = FileSplitterInput(scanner={"files": ["in"], SCANNER}, SPLITTER)
    found, reader = dag.add_operator("Found", found), dag.add_operator("Reader", LineReader())
    found >> reader >> dag.add_operator("Writer", PartWriter(file_path="out"))
"""

MATCHING = """
from dagkit_operators import Items, MatchFiles, PartWriter, ReadFiles

def populate_dag(dag, conf) -> None:
    patterns, match = dag.add_operator("Patterns", Items(items=("in/*",))), dag.add_operator("Match", MatchFiles())
    writer = dag.add_operator("Writer", PartWriter(file_path="out"))
    patterns >> match >> dag.add_operator("Read", ReadFiles()) >> writer
"""


@pytest.fixture
def app(write):
    def written(scanner="", splitter=""):
        write("app.py", APP.replace("SCANNER", scanner).replace("SPLITTER", splitter))

    written()
    return written


@pytest.fixture
def checkpoint(folder):
    return Checkpoint(folder / "checkpoint")


@pytest.fixture
def adopt(dagkit, app):
    """Adopt the files of the checkpoint; refused for a reason, if one is given."""

    def call(*options, refused=""):
        answer = dagkit("ledger", "adopt", "app.py", "--from-spark", "checkpoint", "--path", "place", *options)
        if refused:
            answer.fails(7, refused, "[adoption-refused]")
        return answer

    return call


@pytest.fixture
def launched(launch):
    def launched():
        launch("--path", "place")
        return sorted(line for path in Path("out").glob("*") for line in path.read_text().splitlines())

    return launched


@pytest.fixture
def put(write):
    """Write an input file of one line, which is its name; it was changed some time ago."""

    def put(name, text="", ago_millis=60_000):
        path, time_ns = write(f"in/{name}", f"{text or name}\n"), 1_700_000_000_000_000_000 - ago_millis * 1_000_000
        os.utime(path, ns=(time_ns, time_ns))
        return path

    return put


def test_an_application_reads_only_what_spark_has_not_read_and_a_continued_query_is_adopted_again(
    adopt, dagkit, put, launched, checkpoint
):
    first = [put("a b"), put("é+#?%")], [put("deeper/c")]
    checkpoint.read(*first)
    new = put("new")
    dry = adopt("--dry-run").out.splitlines()
    assert (dry[0], dry[-1]) == ("Found would count 3 files as read", "a launch reads: 1 file")
    assert not Path("place").exists()
    answer = adopt("--json")
    assert (answer.code, answer.err) == (0, "")
    body, record = answer.document, answer.document["record"]
    names = {key: [Path(path).name for path in body[key]] for key in ("adopted", "unread")}
    assert names == {"adopted": ["a b", "c", "é+#?%"], "unread": ["new"]}
    listed = dagkit("ledger", "ls", "place", "--json").document
    again = adopt()
    assert (again.code, again.out.splitlines()[0]) == (0, "Found counts 3 files as read, as before")
    assert dagkit("ledger", "ls", "place", "--json").document == listed
    checkpoint.read(*first, [new])
    put("later")
    assert adopt().code == 0
    assert (launched(), launched(), adopt().code) == (["later"], ["later"], 0)
    blocks = dagkit("ledger", "show", "place", "Found", "--last", "9", "--json").document["blocks"]
    extras = [block["content"]["event"]["extra"] for block in blocks if "extra" in block["content"]["event"]]
    assert extras[0] == {"dagkit.adopted/files": record}
    query = {"checkpoint": str(checkpoint.folder), "query": "the-query", "source": 0, "batch": 1}
    assert record == {**query, "files": 3, "hash": record["hash"], "in_flight": None, "changed": None}
    assert record["hash"] in dagkit("ledger", "show", "place", "Found", "--last", "9").out
    assert dagkit("ledger", "verify", "place", "--complete").code == 0


def test_files_that_both_have_read_are_refused(adopt, put, launched, checkpoint):
    first = put("a")
    assert launched() == ["a"]
    checkpoint.read([first])
    adopt(refused="Found has found files that Spark has read, too")


@pytest.mark.parametrize("said", ["read", "unread"])
def test_a_micro_batch_in_flight_is_refused_until_it_is_decided(adopt, put, launched, checkpoint, said):
    checkpoint.read([put("a")], [put("b")])
    (checkpoint.folder / "commits/1").unlink()
    put("c")
    adopt(refused="micro-batch 1 of the query has not ended")
    assert adopt("--in-flight", said).code == 0
    assert launched() == (["c"] if said == "read" else ["b", "c"])


@pytest.mark.parametrize("said", ["read", "unread"])
def test_files_that_changed_are_refused_until_they_are_decided(adopt, put, launched, checkpoint, said):
    checkpoint.read([put("a"), put("b")])
    put("a", "a\nand more", ago_millis=5)
    put("c")
    assert "/in/a" in adopt(refused="they have changed since: ").err
    answer = adopt("--changed", said)
    assert (answer.code, "changed since Spark listed it" in answer.out) == (0, said == "unread")
    assert launched() == (["c"] if said == "read" else ["a", "and more", "c"])


def test_another_folder_and_an_operator_that_remembers_nothing_are_refused(adopt, app, put, write, checkpoint):
    checkpoint.read([write("other/a", "a\n")])
    read = put("b")
    answer = adopt()
    assert (answer.code != 0, "finds none of the 1 files that Spark has read" in answer.err) == (True, True)
    checkpoint.read([read])
    app(splitter="window_data_manager='noop'")
    adopt(refused="window_data_manager is 'noop'")


def test_files_that_are_gone_or_too_old_are_counted(adopt, put, launched, checkpoint):
    gone = put("gone")
    checkpoint.read([put("a"), gone])
    gone.unlink()
    put("old", ago_millis=MAX_FILE_AGE_MILLIS + 60_001)
    put("just-in-time", ago_millis=MAX_FILE_AGE_MILLIS + 60_000)
    *_, launch, old, missing = adopt().out.splitlines()
    assert launch == "a launch reads: 2 files"
    assert old.startswith("  too old for Spark's default maxFileAge: ")
    assert old.endswith("/in/old")
    assert missing == "no longer there, or not where Found looks: 1 file"
    assert launched() == ["just-in-time", "old"]


def test_renamed_files_and_copies_of_what_spark_has_read_are_known(adopt, app, put, launched, checkpoint):
    app("'renamed': 'skip', 'skip_known_content': True")
    a, b = put("a"), put("b")
    checkpoint.read([a, b])
    assert adopt().code == 0
    a.rename(a.with_name("renamed"))
    put("copy", "b")
    put("c")
    assert launched() == ["c"]


def test_the_operator_must_be_able(adopt, put, checkpoint, dagkit):
    checkpoint.read([put("a")])
    adopt("--operator", "Reader", refused="Reader cannot take over files that Spark has read")
    adopt("--operator", "Finder").fails(2, "there is no operator Finder; name one with --operator: Found")
    adopt()
    dagkit("ledger", "adopt", "place", "--from-spark", "checkpoint").fails(2, "name the application")


def test_an_application_whose_files_are_found_in_its_graph_is_refused_and_what_is_no_checkpoint(
    adopt, put, checkpoint, write
):
    assert "[checkpoint-unreadable]" in adopt().err
    write("app.py", MATCHING)
    checkpoint.read([put("a")])
    for options in ((), ("--operator", "Match")):
        answer = adopt(*options, refused="only an input operator can remember files before the first launch")
        assert "FileSplitterInput in the place of MatchFiles" in answer.err
    assert not Path("place").exists()
