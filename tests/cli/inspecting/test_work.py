"""`dagkit work`: the work that is not done, and requests to give it up or to retry it."""

import gzip
import os
from pathlib import Path

import pytest

from dagkit.engine.record.status_file import this_process
from tests.old_files import aged
from tests.processes import await_end

pytestmark = pytest.mark.slow

NAMELESS = 54_321
"""The number of a user that this machine does not know."""

APP = """
from dagkit_operators import FileSplitterInput, LineReader, RecordWriter

def populate_dag(dag, conf) -> None:
    splitter = dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["in"]}))
    splitter >> dag.add_operator("Reader", LineReader()) >> dag.add_operator("Writer", RecordWriter(file_path="out"))
"""


@pytest.fixture
def work(dagkit, write):
    """Run an application that stops at a damaged file, and return `dagkit work` for it."""
    write("app.py", APP)
    write("in/a.txt", "a\n")
    Path("in/b.gz").write_bytes(gzip.compress(b"b\n")[:-4])
    for file in Path("in").iterdir():
        aged(file)  # one scan finds both
    assert launch(dagkit).code != 0
    return lambda command, *arguments: dagkit("work", command, "app.py", *arguments, "--path", "place")


def launch(dagkit):
    return dagkit("launch", "app.py", "--once", "--reference", "--no-sync", "--path", "place")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_user_without_a_name_is_a_number(monkeypatch):
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setuid(NAMELESS)
            status = int(this_process().user != str(NAMELESS))
        finally:
            os._exit(status)
    await_end(child)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_file_is_given_up_by_its_path(dagkit, work):
    here = Path("in").absolute()
    found = [(each["state"], each["source"][: len(str(here))]) for each in work("ls", "--json").document["work"]]
    assert found == [("found", str(here))] * 2
    asked = work("give-up", "in/b.gz", "--reason", "damaged", "--at-launch")
    assert asked.out == "in/b.gz is given up between two windows, or when the next launch begins\n", asked.err
    assert launch(dagkit).code == 0
    assert [path.read_text() for path in Path("out").iterdir()] == ["a\n"]
    listed = work("ls").out.rstrip()
    assert (listed.startswith(f"given up   Reader  {here}/b.gz"), listed.endswith("damaged")) == (True, True)
    verified = dagkit("ledger", "verify", "place")
    assert (verified.code, f"given up: {here}/b.gz" in verified.out + verified.err) == (0, True)


@pytest.mark.parametrize("name", ["two\nlines.gz", os.fsdecode(b"\xff.gz")], ids=["lines", "bytes"])
def test_a_file_of_any_name_is_given_up_and_named_in_one_line(name, dagkit, work):
    Path("in/b.gz").rename(f"in/{name}")
    Path("place").rename("earlier")
    assert launch(dagkit).code != 0
    assert work("give-up", f"in/{name}", "--at-launch").code == 0
    assert launch(dagkit).code == 0
    verified = dagkit("ledger", "verify", "place")
    proof = [line for line in verified.out.splitlines() if line.startswith("Reader: ")]
    assert [line.partition(", given up: ")[2].rpartition("/")[2] for line in proof] == [
        {"two\nlines.gz": "two\\nlines.gz[0, 18)"}.get(name, "%FF.gz[0, 18)")
    ]


def test_a_request_that_is_no_text_is_refused(work):
    work("retry", "--operator", os.fsdecode(b"\xff"), "--at-launch").fails(
        3, "the request holds bytes that are no text"
    )


def test_a_range_in_percent_is_wrong_usage_and_without_a_driver_a_request_is_withdrawn(work):
    work("give-up", "in/a.txt[0.0 %, 50.0 %)", "--at-launch").fails(2, "leave out the range")
    work("retry", "--wait", "0").fails(8, "request-unanswered")


@pytest.mark.parametrize("command", ["work", "files", "items"])
@pytest.mark.parametrize("target", [("app.py", "--path", "place"), ("place",)], ids=["application", "folder"])
def test_an_operator_that_there_is_not_is_no_operator_without_work(dagkit, work, command, target):
    dagkit(command, *target, "--operator", "Raeder").fails(6, "there is no operator 'Raeder'", "did you mean 'Reader'?")
    assert dagkit(command, *target, "--operator", "Reader").code == 0
