"""`dagkit files`: the input files of an application, and what became of each."""

import os
import sys
from getpass import getuser
from pathlib import Path
from urllib.parse import quote

import fsspec
import pytest

from tests.old_files import old_file

pytestmark = pytest.mark.slow

HEAD = """
from dagkit import State
from dagkit_operators import *

def populate_dag(dag, conf) -> None:
"""
APP = f"""{HEAD}
    splitter = dag.add_operator("Splitter", FileSplitterInput(scanner={{"files": ["in"], SCANNER}}, block_size=4))
    reader = dag.add_operator("Reader", LineReader(min_readers=1, max_readers=1))
    splitter >> reader >> dag.add_operator("Writer", RecordWriter(file_path="out"))
"""
MATCHING = f"""{HEAD}
    patterns = dag.add_operator("Patterns", Items(items=["in/*.txt"]))
    match, read = dag.add_operator("Match", MatchFiles()), dag.add_operator("Read", ReadFiles())
    patterns >> match >> read >> dag.add_operator("Writer", PartWriter(file_path="out"))
"""

REMOTE = MATCHING.replace('"in/*.txt"', '"memory://explained/**/*.txt"')
ARRIVING = f"""
def checked(line: str) -> str:
    assert line != "bad"
    return line

{HEAD}
    names = dag.add_operator("Names", Items[str](items=NAMES))
    infos = names >> dag.add_operator("Infos", Map[str, FileInfo](FileInfo))
    splitter = dag.add_operator("Splitter", FileSplitterBase(block_size=4, blocks_threshold=2))
    reader, check = dag.add_operator("Reader", LineReader()), dag.add_operator("Check", Map(checked))
    infos >> splitter >> reader >> check >> dag.add_operator("Writer", RecordWriter(file_path="out"))
"""
LISTED = f"""
from dagkit_operators import AbstractFileSplitter, FileInfo
from dagkit import State

class Listed(AbstractFileSplitter):
    done = State(False)

    def get_file_info(self) -> FileInfo | None:
        if not self.done:
            self.done = True
            return FileInfo("in/a.txt")

{HEAD}
    reader = dag.add_operator("Reader", LineReader())
    dag.add_operator("Splitter", Listed()) >> reader >> dag.add_operator("Writer", PartWriter(file_path="out"))
"""
CONTINUOUSLY = MATCHING.replace("MatchFiles()", "MatchFiles(continuously=True, interval_millis=0)")


@pytest.fixture
def files(dagkit, write):
    def of(source, **scanner):
        write("app.py", source.replace("SCANNER", ", ".join(f"'{key}': {value!r}" for key, value in scanner.items())))
        return lambda command, *options: dagkit("files", command, "app.py", "--path", "place", *options)

    return of


@pytest.fixture
def put(write):
    return lambda **lines: [write(f"in/{name}.txt", f"{line}\n") for name, line in lines.items()]


@pytest.fixture
def launch(launch):
    return lambda: launch("--path", "place")


def states(answer):
    here = f"{Path('in').absolute()}/"
    return {file["path"].removeprefix(here): (file["state"], file["reason"]) for file in answer.document["files"]}


def test_ls_lists_every_file_with_its_state_and_the_rule(dagkit, launch, files, write):
    ls = files(
        APP,
        recursive=False,
        ignore_file_pattern_regular_exp=".*[.]log",
        file_pattern_regular_exp=".*/[a-z]+[.][a-z]+",
        marker_file="{name}.done",
        trailer={"pattern": "END(?P<rows>[0-9]+)"},
    )
    for name in ["seen.txt", "new.txt", "wrong.txt", "b.log", "A1", ".hidden", "half.tmp", "sub/c.txt", "late.txt"]:
        write(f"in/{name}", "END0\n")
    write("in/seen.txt.done", "")
    expected = {
        "seen.txt": ("read", ""),
        "new.txt": ("new", ""),
        "wrong.txt": ("quarantined", "it has 0 rows, and its last line states 1"),
        "late.txt": ("pending", "it has no late.txt.done beside it (marker_file)"),
        "b.log": ("ignored", "it matches '.*[.]log' (ignore_file_pattern_regular_exp)"),
        "A1": ("ignored", "it does not match '.*/[a-z]+[.][a-z]+' (file_pattern_regular_exp)"),
        ".hidden": ("ignored", "it is hidden or unfinished by its name (skip_unfinished)"),
        "half.tmp": ("ignored", "it is hidden or unfinished by its name (skip_unfinished)"),
        "sub/c.txt": ("ignored", "it is in a folder inside the folder (recursive)"),
    }
    assert states(ls("ls", "--json", "--state", "new")) == {"seen.txt": ("new", "")}  # before the first launch
    launch()
    write("in/new.txt.done", "")
    write("in/wrong.txt", "END1\n")
    write("in/wrong.txt.done", "")
    for name in ("wrong.txt", "wrong.txt.done"):
        os.utime(f"in/{name}", (1_700_000_000, 1_700_000_000))  # what changed just now is pending
    found = states(ls("ls", "--json"))
    assert {name: state for name, state in found.items() if not name.endswith(".done")} == expected
    assert ls("ls", "--state", "new", "--state", "pending").out.splitlines() == [
        f"{state:<11}  Splitter  in/{name}{': ' + reason if reason else ''}"
        for name, (state, reason) in found.items()
        if state in ("new", "pending")
    ]
    assert set(states(ls("ls", "--json", "--like", ".*/in/s.*[.]txt"))) == {"seen.txt", "sub/c.txt"}
    assert states(ls("ls", "--json", "--operator", "Reader")) == {}
    assert ls("ls", "--like", "(").code == 2


def test_ls_ends_after_so_many_files_and_says_whether_there_are_more(dagkit, launch, files, write, monkeypatch):
    monkeypatch.setattr("dagkit.cli.inspecting.files._MOST", 2)
    ls = files(APP)
    for name in "abc":
        write(f"in/{name}.txt", "one\n")
    more = "there are more; --limit 0 lists all"
    shown = {options: ls("ls", *options) for options in [(), ("--limit", "1"), ("--limit", "3"), ("--limit", "0")]}
    assert [len(answer.out.splitlines()) for answer in shown.values()] == [2, 1, 3, 3]
    assert [more in answer.err for answer in shown.values()] == [True, True, False, False]
    assert [len(ls("ls", "--json", *options).document["files"]) for options in shown] == [3, 1, 3, 3]
    assert more not in ls("ls", "--state", "gone", "--limit", "1").err


@pytest.mark.parametrize("source", [APP, CONTINUOUSLY], ids=["FileSplitterInput", "MatchFiles"])
def test_ls_marks_a_file_that_is_read_again(source, launch, files, write):
    ls = files(source)
    for name in ("grown.txt", "same.txt"):
        write(f"in/{name}", "one\n")
    launch()
    write("in/grown.txt", "one\ntwo\n")
    write("in/new.txt", "new\n")
    assert states(ls("ls", "--json")) == {
        "grown.txt": ("new", "it was read before and has changed"),
        "new.txt": ("new", ""),
        "same.txt": ("read", ""),
    }
    assert "3 files, 1 of which were read before and are read again as a whole" in ls("ls").err
    launch()
    assert {state for state, _ in states(ls("ls", "--json")).values()} == {"read"}


def test_markers_and_known_content_are_ignored(launch, files, write, put):
    ls = files(APP, marker_file="_SUCCESS", skip_known_content=True)
    put(a="one")
    write("in/_SUCCESS", "")
    launch()
    put(b="one")
    assert states(ls("ls", "--json")) == {
        "a.txt": ("read", ""),
        "b.txt": ("ignored", "its content was read before (skip_known_content)"),
        "_SUCCESS": ("ignored", "it describes another file (marker_file)"),
    }


def test_files_that_are_gone_are_listed_from_the_ledger_and_renamed_ones_are_ignored_where_asked(
    dagkit, launch, files, put
):
    ls = files(APP, renamed="skip")
    put(a="one")
    launch()
    Path("in/a.txt").rename("in/b.txt")
    renamed = ("ignored", "it was read under another name (renamed)")
    assert states(ls("ls", "--json")) == {"a.txt": ("gone", ""), "b.txt": renamed}
    answer = dagkit("files", "ls", "place")
    assert (answer.out, "give the application" in answer.err) == ("read         Splitter  in/a.txt\n", True)


def test_files_that_are_no_longer_searched_for_are_not_called_gone(launch, files, put):
    put(a="one")
    files(APP)
    launch()
    ignoring = files(APP, ignore_file_pattern_regular_exp=".*a[.]txt")
    assert [file["state"] for file in ignoring("ls", "--json").document["files"]] == ["ignored", "read"]
    Path("in").rename("elsewhere")
    Path("in").mkdir()
    assert states(ignoring("ls", "--json")) == {"a.txt": ("gone", "")}


def test_files_of_an_operator_that_does_not_list_them_are_read(launch, files, put):
    ls = files(LISTED)
    put(a="one")
    launch()
    assert states(ls("ls", "--json")) == {"a.txt": ("read", "")}


def test_explain_names_blocks_windows_items_and_outputs(dagkit, launch, files, write):
    explain = files(APP)
    write("in/ä.txt", "one\ntwo\nsix\n")
    launch()
    write("in/ä.txt", "seven\n")
    launch()
    launch()
    path, out = Path("in").absolute() / "ä.txt", Path("out").absolute()
    document = explain("explain", "in/ä.txt", "--json").document
    assert (document["path"], document["now"]) == (str(path), [{"finder": "Splitter", "state": "read", "reason": ""}])
    first, second = document["readings"]
    assert (first["finder"], first["source"], first["taken_by"], first["pending"]) == ("Splitter", str(path), 1, 0)
    assert first["blocks"] == [{"number": n, "start": 4 * n, "end": 4 * n + 4} for n in range(3)]
    outputs = [f"{out}/{number}" for number in range(3)]
    assert first["windows"] == [{"window": 1, "operator": "Reader", "bytes": 12, "items": 3, "outputs": outputs}]
    assert second["source"].startswith(f"{path}@")
    assert [(window["window"], window["bytes"], window["items"]) for window in second["windows"]] == [(2, 6, 1)]
    lines = dagkit("files", "explain", "place", "in/ä.txt").out.splitlines()
    assert lines[0] == "in/ä.txt"
    assert [line for line in lines if line.startswith("  window")] == [
        "  window 1: Reader read 12 bytes and sent 3 items",
        "  window 2: Reader read 6 bytes and sent 1 item",
    ]
    assert lines[-1].startswith("    which wrote to ")


def test_items_are_not_reported_of_a_window_that_read_other_files_too(launch, files, put):
    explain = files(APP)
    put(a="one", b="two")
    launch()
    (reading,) = explain("explain", "in/a.txt", "--json").document["readings"]
    assert [(window["bytes"], window["items"]) for window in reading["windows"]] == [(4, None)]
    wrote = [line for line in explain("explain", "in/a.txt").out.splitlines() if "which wrote to" in line]
    assert len(wrote) == 2
    assert all(line.endswith(", as for other files that it read") for line in wrote)
    lines = explain("explain", "elsewhere").out.splitlines()[1:]
    assert lines == ["no operator finds a file there now", "the ledger does not name it"]


def test_a_file_may_be_named_by_the_end_of_its_path(dagkit, launch, files, write):
    explain = files(APP.replace('"in"', '"in/x", "in/y"'))
    for name in ("x/a", "x/b", "y/b"):
        write(f"in/{name}.txt", "one\n")
    launch()
    for answer in (explain("explain", "a.txt"), dagkit("files", "explain", "place", "a.txt")):
        assert (answer.code, answer.out.splitlines()[0]) == (0, "in/x/a.txt")
    explain("explain", "b.txt").fails(2, "2 files end in /b.txt: in/x/b.txt, in/y/b.txt")
    assert explain("explain", "y/b.txt").out.startswith("in/y/b.txt\n")


def test_a_file_that_an_operator_in_the_graph_matched_is_explained(dagkit, launch, files, write):
    of = files(MATCHING)
    write("in/a.txt", "one\ntwo\n")
    write("in/empty.txt", "")
    write("in/b.log", "x\n")
    assert states(of("ls", "--json", "--state", "new")) == {"a.txt": ("new", "")}
    launch()
    write("in/c.txt", "new\n")
    assert states(of("ls", "--json")) == {
        "a.txt": ("read", ""),
        "c.txt": ("new", ""),
        "empty.txt": ("pending", "it is empty"),
        "b.log": ("ignored", "it does not match 'in/*.txt', or is hidden or unfinished"),
    }
    document = of("explain", "in/a.txt", "--json").document
    assert document["now"] == [{"finder": "Match", "state": "read", "reason": ""}]
    (reading,) = document["readings"]
    assert [(read["operator"], read["bytes"], read["items"]) for read in reading["windows"]] == [("Read", 8, 2)]


@pytest.fixture
def bucket():
    memory = fsspec.filesystem("memory")
    memory.pipe("/explained/a.txt", b"one\ntwo\n")
    memory.pipe("/explained/a.txt@b/c.txt", b"another\n")
    yield memory
    memory.rm("/explained", recursive=True)


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize("source", [APP.replace('"in"', '"memory://explained"'), REMOTE], ids=["splitter", "match"])
def test_a_remote_file_is_explained(source, dagkit, launch, files):
    of, path = files(source), "memory://explained/a.txt"
    launch()
    document = of("explain", path, "--json").document
    assert [(now["state"], now["reason"]) for now in document["now"]] == [("read", "")]
    (reading,) = document["readings"]
    assert (sum(window["bytes"] for window in reading["windows"]), reading["taken_by"], reading["pending"]) == (8, 1, 0)
    assert "no committed window has taken it" not in of("explain", path).out
    (recorded,) = dagkit("files", "explain", "place", path, "--json").document["readings"]
    assert recorded["source"] == reading["source"]
    assert {file["state"] for file in of("ls", "--json").document["files"]} == {"read"}


def test_files_that_arrive_at_a_splitter_in_the_graph_are_listed_and_explained(dagkit, launch, files, write):
    write("in/a@b", "one\ntwo\nsix\n")
    write("in/gone", "x\n")
    here = Path("in").absolute()
    of = files(ARRIVING.replace("NAMES", repr([f"{here}/a@b", "in/gone"])))
    assert of("ls", "--json").document["files"] == []
    launch()
    Path("in/gone").unlink()
    assert states(of("ls", "--json")) == {"a@b": ("read", ""), "gone": ("gone", "")}
    assert {file["finder"] for file in of("ls", "--json").document["files"]} == {"Splitter"}
    recorded = dagkit("files", "ls", "place", "--json").document["files"]
    assert {(file["path"], file["state"]) for file in recorded} == {(f"{here}/a@b", "read"), (f"{here}/gone", "read")}
    document = of("explain", "in/a@b", "--json").document
    assert document["now"] == [{"finder": "Splitter", "state": "read", "reason": ""}]
    arrived, read = document["readings"]
    assert (arrived["finder"], arrived["source"], arrived["receiver"]) == ("Infos", f"{here}/a@b", "Splitter")
    assert [(window["bytes"], window["outputs"]) for window in arrived["windows"]] == [(None, []), (None, [])]
    assert (read["finder"], read["source"], read["found_in"]) == ("Splitter", f"{here}/a@b@0", [1, 2])
    assert read["blocks"] == [{"number": n, "start": 4 * n, "end": 4 * n + 4} for n in range(3)]
    assert sum(window["bytes"] for window in read["windows"]) == 12
    text = of("explain", "in/a@b").out
    assert "found by Infos at" in text
    assert "Splitter passed it on" in text


def test_a_file_that_a_splitter_in_the_graph_has_not_begun_waits(dagkit, launch, files, write):
    here = Path("in").absolute()
    of = files(ARRIVING.replace("NAMES", repr([f"{here}/{number}" for number in range(4)])))
    for number, line in enumerate(("one", "two", "bad", "six")):
        write(f"in/{number}", f"{line}\n")
    assert dagkit("launch", "app.py", "--once", "--reference", "--no-sync", "--path", "place").code
    waits = ("waiting", "it waits for Splitter")
    assert states(of("ls", "--json")) == {"0": ("read", ""), "1": ("read", ""), "2": waits, "3": waits}


@pytest.mark.parametrize("source", [APP, MATCHING], ids=["FileSplitterInput", "MatchFiles"])
def test_what_is_no_regular_file_is_listed_with_its_kind(source, dagkit, launch, files, write):
    of = files(source)
    write("in/a.txt", "one\n")
    os.mkfifo("in/fifo.txt")
    Path("in/zero.txt").symlink_to("/dev/zero")
    Path("in/link.txt").symlink_to("nowhere")
    kinds = {"fifo.txt": "a FIFO", "zero.txt": "a character device", "link.txt": "a link that leads to no file"}
    ignored = {name: ("ignored", f"it is {kind}, and only regular files are read") for name, kind in kinds.items()}
    assert states(of("ls", "--json")) == ignored | {"a.txt": ("new", "")}
    launch()
    for name, (_, reason) in ignored.items():
        (now,) = of("explain", f"in/{name}", "--json").document["now"]
        assert now["reason"] == reason


@pytest.mark.parametrize(("source", "finder"), [(APP, "Splitter"), (CONTINUOUSLY, "Match")], ids=["splitter", "match"])
def test_a_forgotten_file_is_read_again_by_the_next_launch_once(source, finder, launch, files, put):
    of = files(source)
    put(a="one", b="two")
    launch()
    document = of("forget", "in/a.txt", "--at-launch", "--json").document
    assert (document["operator"], document["path"]) == (finder, str(Path("in").absolute() / "a.txt"))
    launch()
    launch()
    a, b = (of("explain", f"in/{name}.txt", "--json").document for name in "ab")
    assert [state["state"] for state in a["now"]] == ["read"]
    assert [sum(len(reading["windows"]) for reading in read["readings"]) for read in (a, b)] == [2, 1]


def test_forget_names_the_file_that_no_operator_knows(launch, files, put):
    of = files(APP)
    put(a="one")
    launch()
    put(new="two")
    answer = of("forget", "in/new.txt", "--at-launch")
    printed = "".join(answer.err.split())  # the message is folded to the width of the terminal, wherever a path ends
    unknown = f"nooperatorisknowntoknow{Path('in').absolute()}/new.txt;nameonewith--operator"
    assert (answer.code, unknown in printed) == (2, True)


def test_a_file_that_follows_the_application_leads_to_explain(dagkit, files):
    files(APP)
    answer = dagkit("files", "app.py", "in/a.txt")
    assert answer.code == 2
    assert "`dagkit files explain APP|PATH in/a.txt` shows what became of a file" in answer.err


def with_short_lines(source):
    """The application, whose reader sets files aside that have a line of more than four bytes."""
    for reader in ("LineReader(", "ReadFiles("):
        source = source.replace(reader, f"{reader}on_bad_file='quarantine', longest_line=4, chunk_size=4, ")
    return source


@pytest.mark.parametrize("source", [APP, MATCHING], ids=["blocks", "files found in the graph"])
def test_a_file_that_was_set_aside_is_quarantined_until_it_is_given_up(source, dagkit, launch, files, put):
    put(a="one", b="two lines")
    ls = files(with_short_lines(source))
    launch()
    bad = str(Path("in/b.txt").absolute())
    reason = f"set aside: LineTooLong: {bad}: the line at byte 0 is longer than 4 bytes"
    expected = {"a.txt": ("read", ""), "b.txt": ("quarantined", reason)}
    assert states(ls("ls", "--json")) == expected
    assert states(dagkit("files", "ls", "place", "--json")) == expected
    assert [now["reason"] for now in ls("explain", "in/b.txt", "--json").document["now"]] == [reason]
    assert "  10 bytes set aside or given up, and not read" in ls("explain", "in/b.txt").out.splitlines()
    dagkit("work", "give-up", "app.py", bad, "--path", "place", "--at-launch", "--reason", "not worth it")
    launch()
    state, by = states(ls("ls", "--json"))["b.txt"]
    assert (state, by) == ("given-up", f"by {getuser()}: not worth it")
    assert states(dagkit("files", "ls", "place", "--json")) == {"a.txt": ("read", ""), "b.txt": (state, by)}
    assert "  10 bytes set aside or given up, and not read" in ls("explain", "in/b.txt").out.splitlines()
    put(b="ok")
    launch()
    assert states(ls("ls", "--json"))["b.txt"] == ("read", "")


def test_a_file_waits_until_a_window_has_read_it(dagkit, launch, files, put):
    put(a="one", b="two")
    ls = files(APP.replace("LineReader(", "LineReader(longest_line=2, chunk_size=2, "))
    assert dagkit("launch", "app.py", "--once", "--reference", "--no-sync", "--path", "place").code
    untaken = ("waiting", "no window has taken it yet")
    expected = {"a.txt": untaken, "b.txt": untaken}
    assert states(ls("ls", "--json")) == states(dagkit("files", "ls", "place", "--json")) == expected
    assert "Splitter  in/a.txt: no window has taken it yet" in ls("ls", "--state", "waiting").out
    explained = ls("explain", "in/a.txt").out.splitlines()
    assert "  no committed window has taken it yet; one that runs may read it" in explained
    assert "  4 bytes wait" in explained
    files(APP)
    launch()
    assert states(ls("ls", "--json")) == {"a.txt": ("read", ""), "b.txt": ("read", "")}


def test_a_file_that_is_followed_is_read_as_far_as_it_goes(launch, files, put):
    ls = files(MATCHING.replace("ReadFiles()", "TailFiles()"))
    put(a="one")
    launch()
    assert states(ls("ls", "--json")) == {"a.txt": ("read", "it is followed: what is appended to it is read")}


def test_a_pattern_that_each_launch_scans_does_not_wait_between_two_launches(dagkit, launch, files, put):
    files(MATCHING)
    put(a="one")
    launch()
    assert dagkit("work", "place").err == "no work waits, was set aside or was given up\n"
    again = dagkit("launch", "app.py", "--once", "--reference", "--no-sync", "--path", "place")
    assert "resuming after window" in again.err
    assert "pending" not in again.err


@pytest.mark.skipif(sys.platform == "darwin", reason="its filesystems refuse such names")
@pytest.mark.parametrize(("source", "finder"), [(APP, "Splitter"), (CONTINUOUSLY, "Match")], ids=["splitter", "match"])
def test_a_file_whose_name_is_not_utf_8_is_explained_and_forgotten(source, finder, launch, files):
    of = files(source)
    path = os.fsdecode(os.fsencode(f"{Path('in').absolute()}/") + b"a\xff.txt")
    old_file(Path(path), "one\n")
    launch()
    for name in (path, f"file://{quote(os.fsencode(path))}"):
        explained = of("explain", name, "--json").document
        assert ([now["state"] for now in explained["now"]], len(explained["readings"])) == (["read"], 1)
        assert of("forget", name, "--at-launch", "--json").document["operator"] == finder
    launch()
    assert sum(len(reading["windows"]) for reading in of("explain", path, "--json").document["readings"]) == 2


TWO_FINDERS = f"""{HEAD}
    lines = dag.add_operator("Lines", FileSplitterInput("in")) >> dag.add_operator("Read lines", LineReader())
    lines >> dag.add_operator("Line writer", PartWriter(file_path="lines"))
    found = dag.add_operator("Patterns", Items(items=["in/*"])) >> dag.add_operator("Match", MatchFiles())
    read = dag.add_operator("Read", ReadFiles(on_bad_file="quarantine", longest_line=4, chunk_size=4))
    found >> read >> dag.add_operator("Writer", PartWriter(file_path="out"))
"""


def test_a_file_that_two_operators_found_has_a_state_for_each(launch, files, put):
    put(a="one", b="two lines")
    ls = files(TWO_FINDERS)
    launch()
    listed = {(file["finder"], Path(file["path"]).name): file["state"] for file in ls("ls", "--json").document["files"]}
    assert listed == {
        ("Lines", "a.txt"): "read",
        ("Lines", "b.txt"): "read",
        ("Match", "a.txt"): "read",
        ("Match", "b.txt"): "quarantined",
    }


@pytest.mark.parametrize("source", [APP, MATCHING], ids=["blocks", "files found in the graph"])
def test_a_file_that_was_set_aside_replaced_and_read_is_read(source, dagkit, launch, files, put):
    put(a="one", b="two lines")
    ls = files(with_short_lines(source))
    launch()
    assert states(ls("ls", "--json"))["b.txt"][0] == "quarantined"
    put(b="ok")
    launch()
    assert states(ls("ls", "--json")) == {"a.txt": ("read", ""), "b.txt": ("read", "")}
    assert states(dagkit("files", "ls", "place", "--json"))["b.txt"] == ("read", "")
    assert [now["state"] for now in ls("explain", "in/b.txt", "--json").document["now"]] == ["read"]
    aside = dagkit("work", "ls", "place", "--json").document
    assert "b.txt" in str(aside)


def test_batches_that_a_reader_sent_count_as_items(launch, files, write):
    write("in/a.csv", "n\n1\n2\n3\n")
    context = 'CsvReader(reader_context=CsvContext(types={"n": "int64"}, sends="batches"), '
    ls = files(APP.replace("LineReader(", context).replace("RecordWriter", "ParquetPartWriter").replace("=4", "=40"))
    launch()
    (reading,) = ls("explain", "in/a.csv", "--json").document["readings"]
    assert [(window["bytes"], window["items"]) for window in reading["windows"]] == [(8, 1)]
    assert "  window 1: Reader read 8 bytes and sent 1 item" in ls("explain", "in/a.csv").out.splitlines()
