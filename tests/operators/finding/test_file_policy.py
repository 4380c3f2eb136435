"""What each finder does with a file to which something happens: the rows of docs/file-policy.md."""

import gzip
import hashlib
import os
import shutil
import time
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any

import fsspec
import pytest
from pydantic import ValidationError

from dagkit import Dag, Until
from dagkit.engine.program.points import Point
from dagkit.ranges import NEXT_LAUNCH
from dagkit.testing import Alone, FakeClock
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import (
    DirectoryScanner,
    FileSplitterBase,
    FileSplitterInput,
    Items,
    LineReader,
    MatchFiles,
    QuarantinedFile,
    ReadFiles,
)
from dagkit_operators.filesystem import identities
from dagkit_operators.filesystem.access import Found, looked_up, opened_here
from dagkit_operators.filesystem.identities import Identities
from dagkit_operators.finding import match, splitter
from dagkit_operators.finding.completeness import IncompleteFiles
from dagkit_operators.finding.contents import Examined, StillChanging, content_digest, settled_hash
from dagkit_operators.finding.seen_files import SeenFiles
from tests.cases import cases
from tests.engine.cast import Desk, arrived
from tests.old_files import aged
from tests.operators.finding.cast import Matching, Restarted, Running, collected, write

BOTH = pytest.mark.parametrize("finder", [Restarted, Matching], ids=["FileSplitterInput", "MatchFiles"])
EACH = pytest.mark.parametrize(
    "finder", [Restarted, Running, Matching], ids=["FileSplitterInput", "FileSplitterInput in one launch", "MatchFiles"]
)
KEPT_OF_GONE = 3
SPLITTERS = pytest.mark.parametrize("finder", [Restarted, Running], ids=["restarted", "in one launch"])


@pytest.fixture
def folder(tmp_path):
    """A folder with one file, which both finders read."""
    return write(tmp_path / "in" / "a.log", "one\n", at=1000).parent


@pytest.fixture
def found(finder, folder):
    """A finder that has found the file of the folder."""
    found = finder(folder)
    assert found.look() == ["a.log"]
    return found


def rotate(folder: Path) -> None:
    (folder / "a.log.1.gz").write_bytes(gzip.compress((folder / "a.log").read_bytes()))
    (folder / "a.log").unlink()


def overwrite_in_the_same_second(folder: Path) -> None:
    (folder / "a.log").write_text("two\n")
    os.utime(folder / "a.log", ns=(0, 1000 * 10**9 + 10**6))


def other(folder: Path) -> Path:
    return write(folder.parent / "other", "other\n", at=2000)


CHANGES = {
    "a new file": (lambda folder: write(folder / "b.log", "two\n", at=2000), "b.log"),
    "a late file with an old time": (lambda folder: write(folder / "late.log", "late\n", at=-1000), "late.log"),
    "a copy": (lambda folder: shutil.copy2(folder / "a.log", folder / "b.log"), "b.log"),
    "a file that rotation compressed": (rotate, "a.log.1.gz"),
    "a file that is overwritten in its place": (lambda folder: shutil.copy2(other(folder), folder / "a.log"), "a.log"),
    "a file whose name another one gets": (lambda folder: shutil.move(other(folder), folder / "a.log"), "a.log"),
    "a file that grew, as a whole": (lambda folder: write(folder / "a.log", "one\ntwo\n", at=2000), "a.log"),
    "one that is overwritten with the same length in the same second": (overwrite_in_the_same_second, "a.log"),
}


@EACH
@pytest.mark.parametrize("happens", CHANGES)
def test_what_is_new_or_has_changed_is_read_once(happens, found, folder):
    change, name = CHANGES[happens]
    assert found.look() == []
    change(folder)
    assert [found.look(), found.look()] == [[name], []]


def test_a_grown_file_is_not_sent_again_where_asked(folder, caplog):
    found = Matching(folder, grown="skip")
    assert found.look() == ["a.log"]
    write(folder / "a.log", "one\ntwo\n", at=2000)
    assert [found.look(), found.look()] == [[], []]
    assert caplog.records == []
    write(folder / "a.log", "two\nthree\n", at=3000)
    assert [found.look(), found.look()] == [["a.log"], []]


def test_a_file_that_grows_after_it_was_listed_is_sent_as_it_is_known(folder, monkeypatch):
    """Otherwise what was appended in between would be known, and never be sent."""

    def listed(file: Found, now_millis: int) -> int:
        if file.length == 4:
            write(folder / "a.log", "one\ntwo\n", at=2000)
        return 0

    monkeypatch.setattr(match, "settles_in_millis", listed)
    found = Matching(folder)
    found.alone.work(str(folder))
    assert [(info.length, info.modified_millis) for info in found.alone.sent()] == [(8, 2_000_000)]
    assert found.look() == []


def test_a_grown_file_is_pending_until_it_is_complete(folder):
    found = Matching(folder, marker_file="{name}.done")
    (folder / "a.log.done").touch()
    assert found.look() == ["a.log"]
    (folder / "a.log.done").unlink()
    write(folder / "a.log", "one\ntwo\n", at=2000)
    assert [found.look(), found.look()] == [[], []]
    (folder / "a.log.done").touch()
    assert [found.look(), found.look()] == [["a.log"], []]


@pytest.mark.parametrize("reader", ["files", "blocks"])
def test_a_file_that_is_found_cut_off_and_grows_is_read_once(reader, tmp_path, caplog):
    """The reader leaves it to the element that is sent after it grew."""
    path, content = tmp_path / "a.gz", gzip.compress(b"one\ntwo\nthree\n")
    path.write_bytes(content[:-9])
    aged(path)
    found = Alone(MatchFiles(continuously=True))
    read = Alone(ReadFiles() if reader == "files" else LineReader())

    def arriving() -> Any:
        found.work(str(tmp_path))
        (info,) = found.sent()
        if reader == "files":
            return info
        split = Alone(FileSplitterBase())
        split.work(info)
        (block,) = split.sent()
        return block

    cut_off = arriving()
    path.write_bytes(content)
    aged(path)
    read.work(cut_off)
    assert read.sent() == []
    assert f"{path} was found before it was complete; it is read when it is found again" in caplog.messages
    read.work(arriving())
    assert [getattr(line, "value", line) for line in read.sent()] == ["one", "two", "three"]


def test_match_files_counts_files_that_are_read_again(folder):
    found = Matching(folder)
    write(folder / "b.log", "one\n", at=1000)
    write(folder / "c.log", "one\n", at=1000)
    assert (found.look(), found.alone.metrics["files_read_again"]) == (["a.log", "b.log", "c.log"], 0)
    (folder / "a.log").rename(folder / "d.log")
    write(folder / "a.log", "new\n", at=1500)
    assert (found.look(), found.alone.metrics["files_read_again"]) == (["a.log"], 0)
    write(folder / "b.log", "one\ntwo\n", at=2000)
    write(folder / "c.log", "other\n", at=2000)
    states = {
        Path(state.path).name: (state.state, state.reason) for state in found.alone.operator.file_states([str(folder)])
    }
    again = ("new", "it was read before and has changed")
    assert states == {"a.log": ("seen", ""), "b.log": again, "c.log": again, "d.log": ("seen", "")}
    assert (found.look(), found.alone.metrics["files_read_again"]) == (["b.log", "c.log"], 2)
    assert found.alone.metrics["first_read_again"] == f"{folder}/b.log"


@pytest.mark.parametrize("grown", [None, "skip"])
@pytest.mark.parametrize(("content", "skipped"), [("one\ntwo\n", True), ("two\nthree\n", True), ("1\n", False)])
def test_a_remote_file_that_was_overwritten_is_read_again(content, skipped, grown, tmp_path):
    """Without a version, nothing distinguishes one that is longer from one that has grown."""
    bucket, place = fsspec.filesystem("memory"), f"memory:/{tmp_path}"
    bucket.pipe(f"{tmp_path}/a.log", b"one\n")
    found = Matching(place, grown=grown)
    assert [found.look(), found.look()] == [["a.log"], []]
    bucket.pipe(f"{tmp_path}/a.log", content.encode())
    assert [found.look(), found.look()] == [[] if grown == "skip" and skipped else ["a.log"], []]
    bucket.rm(str(tmp_path), recursive=True)


URL = "webhdfs://host/in/a @1.csv"


@pytest.mark.parametrize(
    ("recorded", "listed", "is_known"),
    [
        ([f"{URL} @4.3e8"], (4, 1000), True),
        ([f"{URL} @4.3e8"], (4, 2000), False),
        ([f"{URL} @4.3e8"], (5, 1000), False),
        ([f"{URL} @4.0"], (4, 1000), True),
        ([f"{URL} @4.3e8"], (4, 0), True),
        ([f"{URL} @4.3e8"], (4, 2000, "e1"), True),
        ([f"{URL} version=e1"], (5, 2000), True),
        ([f"{URL} version=e1"], (4, 1000, "e2"), False),
        ([URL], (4, 1000, "e1"), True),
        ([URL], (4, 1000), True),
        ([URL, f"{URL} @4.3e8"], (5, 2000), False),
        ([f"{URL} @4.3e8", f"{URL} @5.7d0"], (5, 2000), True),
        (["webhdfs://host/in/b.csv"], (4, 1000), False),
    ],
)
def test_a_remote_file_without_a_version_is_known_by_length_and_time(recorded, listed, is_known):
    """Ledgers before that hold the URL alone, and a listing may have no time."""
    recognised = Identities(recorded, by_length=True).identify(Found(URL, *listed))
    state = f"version={listed[2]}" if len(listed) == 3 else f"@{listed[0]:x}.{listed[1]:x}"
    assert (recognised.identity, recognised.was_known) == (f"{URL} {state}", is_known)
    assert recognised.was_other == (not is_known and recorded[0].startswith(URL))


@pytest.mark.parametrize("content", ["one\ntwo\n", "x" * 300])
@pytest.mark.parametrize("length", [4, 256])
def test_what_an_older_ledger_knows_by_its_beginning_is_not_read_again(content, length, folder):
    """Such an identity has no name, and at most 256 as its length; later ones have both."""
    write(folder / "a.log", content[:length], at=1000)
    whole = Identities([]).identify(Found(str(folder / "a.log"), 0, 0)).identity
    assert whole is not None
    number, *rest, _ = whole.split("-")
    older = "-".join([number.partition(".")[2], *rest])
    write(folder / "a.log", content, at=2000)
    for known, again in [(older, []), (whole, ["a.log"] if len(content) > length else [])]:
        found = Matching(folder, known=[known])
        assert [found.look(), found.look()] == [again, []]


def test_the_splitter_counts_files_that_are_read_again(folder):
    found = Running(folder)
    write(folder / "b.log", "one\n", at=1000)
    assert (found.look(), found.alone.metrics["files_read_again"]) == (["a.log", "b.log"], 0)
    write(folder / "c.log", "new\n", at=1500)
    (folder / "a.log").rename(folder / "d.log")
    assert (found.look(), found.alone.metrics["files_read_again"]) == (["c.log"], 0)
    for at in (2000, 3000):
        write(folder / "b.log", f"one\ntwo {at}\n", at=at)
        write(folder / "c.log", f"other {at}\n", at=at)
        write(folder / f"{at}.log", "new\n", at=at)
        assert found.look() == [f"{at}.log", "b.log", "c.log"]
        assert found.alone.metrics["files_read_again"] == 2
        assert found.alone.metrics["first_read_again"] == f"{folder}/b.log"


def test_an_application_that_knows_no_paths_reads_on_as_before(folder, caplog):
    """The digests of older ledgers do not show whether a path was seen."""
    seen = SeenFiles(by_path=False)
    known = seen.add(Found(str(folder / "a.log"), 4, 1_000_000))
    found = Running(folder)
    found.alone = Alone(found.alone.operator, state={"known": known, "next_block_id": 1}, now=found.clock.now)
    assert found.look() == []
    write(folder / "a.log", "one\ntwo\n", at=2000)
    assert [found.look(), found.look()] == [["a.log"], []]
    assert found.restart().look() == []
    assert caplog.records == []


@EACH
def test_a_renamed_file_is_not_read_again(found, folder):
    (folder / "a.log").rename(folder / "b.log")
    assert [found.look(), found.look()] == [[], []]


def test_a_renamed_file_is_read_again_where_asked(folder):
    found, before = Restarted(folder, renamed="read"), Restarted(folder)
    assert before.look() == ["a.log"]
    found.alone = Alone(found.alone.operator, state=before.alone.state, now=found.clock.now)
    (folder / "a.log").rename(folder / "b.log")
    assert [found.look(), found.look()] == [["b.log"], []]


@EACH
@pytest.mark.parametrize("path", ["in/a.log", "in"], ids=["a file", "its folder, as if it were not mounted"])
def test_a_deleted_file_does_not_disturb_and_is_known_if_it_returns(path, found, folder, tmp_path):
    (tmp_path / path).rename(tmp_path / "away")
    assert found.look() == []
    (tmp_path / "away").rename(tmp_path / path)
    assert found.look() == []


@EACH
def test_a_deleted_file_is_known_if_a_copy_with_its_time_takes_its_place(found, folder, tmp_path):
    (folder / "a.log").rename(tmp_path / "gone")
    assert found.look() == []
    shutil.copy2(tmp_path / "gone", folder / "a.log")
    (tmp_path / "gone").unlink()
    assert [found.look(), found.look()] == [[], []]


@BOTH
def test_hidden_and_unfinished_names_are_skipped_until_the_file_has_its_own(found, folder):
    for name in [".b.log", "b.log.tmp", "b.log._COPYING_"]:
        (folder / name).write_text(f"{name}\n")
        assert found.look() == []
        (folder / name).rename(folder / "b.log")
        assert found.look() == ["b.log"]
        (folder / "b.log").unlink()


@BOTH
def test_a_file_that_two_inputs_name_is_read_once(finder, folder):
    found = finder(folder, folder / "a.log")
    assert [found.look(), found.look()] == [["a.log"], []]


@pytest.mark.parametrize(("ago_millis", "read_after"), [(19, 1), (20, 0), (-19, 1), (1000, 1), (2000, 0), (-2000, 0)])
@pytest.mark.parametrize("rescan", ["files", "folders"])
def test_a_local_file_is_not_read_within_the_tick_of_its_last_change(ago_millis, read_after, rescan, folder, caplog):
    """An overwrite within the tick would keep its time. Whole seconds are times of filesystems with coarse ticks."""
    found = Running(folder, rescan=rescan, minimum_age_millis=0)
    at = int(found.clock.now().timestamp() * 1000) - ago_millis
    os.utime(folder / "a.log", ns=(0, at * 10**6))
    os.utime(folder, (1000, 1000))
    looks = [found.look()]
    (folder / "a.log").write_text("two\n")
    os.utime(folder / "a.log", ns=(0, (at + (0 if read_after else 1)) * 10**6))
    looks.append(found.look())
    assert looks == [[], ["a.log"]] if read_after else [["a.log"], ["a.log"] if rescan == "files" else []]
    assert caplog.messages.count(f"{folder}/a.log is being changed, and is left for a later scan") == read_after


def test_a_scan_waits_for_the_tick_so_that_a_launch_with_one_scan_reads_what_was_just_written(folder):
    os.utime(folder / "a.log", ns=(0, time.time_ns() + 15 * 10**6))
    alone = Alone(FileSplitterInput(scanner={"files": [str(folder)], "minimum_age_millis": 0}), until=Until.ONCE)
    alone.look()
    assert [Path(block.path).name for block in alone.sent()] == ["a.log"]


@BOTH
def test_an_overwrite_between_the_edges_is_read_again(finder, folder):
    found = finder(folder)
    for at in (1000, 2000, 3000):
        write(folder / "a.log", "x" * 400 + f"{at}" * 50 + "x" * 400, at)  # its edges and its length stay
        assert [found.look(), found.look()] == [["a.log"], []]


def test_an_overwrite_is_noticed_by_the_ends_where_asked(folder):
    write(folder / "a.log", "x" * 1000, at=1000)
    found = Matching(folder, overwritten_by="ends")
    assert found.look() == ["a.log"]
    os.utime(folder / "a.log", (2000, 2000))
    assert found.look() == []
    write(folder / "a.log", "y" + "x" * 999, at=2000)
    assert found.look() == ["a.log"]


def test_a_known_file_is_opened_only_if_its_times_have_changed(folder, monkeypatch):
    opened: list[str] = []

    def counted(path: str) -> FileIO:
        opened.append(path)
        return opened_here(path)

    monkeypatch.setattr(identities, "opened_here", counted)
    monkeypatch.setattr(identities, "is_settled", lambda *_: True)  # as if the file were older than a tick
    found = Matching(folder)
    assert found.look() == ["a.log"]
    opened.clear()
    assert (found.look(), opened) == ([], [])
    (folder / "a.log").rename(folder / "b.log")
    assert (found.look(), opened) == ([], [f"{folder}/b.log"])


@EACH
def test_a_file_is_read_when_so_many_scans_have_found_it_unchanged(finder, folder):
    found = finder(folder, stable_scans=2)
    assert [found.look(), found.look()] == [[], []]
    write(folder / "a.log", "one\ntwo\n", at=2000)
    assert [found.look() for _ in range(4)] == [[], [], ["a.log"], []]


@pytest.mark.parametrize("finder", [Running, Matching], ids=["FileSplitterInput", "MatchFiles"])
def test_a_file_is_read_when_its_last_change_is_long_enough_ago(finder, folder, caplog):
    found = finder(folder, minimum_age_millis=7000)
    write(folder / "a.log", "one\n", at=int(found.clock.now().timestamp()))
    assert [found.look() for _ in range(4)] == [[], [], ["a.log"], []]
    assert caplog.messages[:1] == [
        f"pending files: 1; {folder}/a.log was changed within the last 7000 ms (minimum_age_millis)"
    ]


def test_by_default_a_pending_file_is_logged_only_if_it_is_still_being_written(folder, caplog):
    found = Running(folder)
    write(folder / "a.log", "one\n", at=int(found.clock.now().timestamp()))
    assert (found.look(), caplog.messages) == ([], [])
    write(folder / "a.log", "one\ntwo\n", at=int(found.clock.now().timestamp()))
    why = "was changed less than 2 s ago, and may still be written"
    assert (found.look(), caplog.messages) == ([], [f"pending files: 1; {folder}/a.log {why}"])
    assert [found.look(), found.look()] == [["a.log"], []]
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(
    "finder", [Running, partial(Running, rescan="folders"), Matching], ids=["files", "folders", "MatchFiles"]
)
@pytest.mark.parametrize(("template", "marker"), [("_SUCCESS", "_SUCCESS"), ("{name}.done", "a.log.done")])
def test_a_file_is_read_when_its_marker_is_there_and_markers_are_not_read(template, marker, finder, folder):
    os.utime(folder, (1000, 1000))
    found = finder(folder, marker_file=template)
    assert [found.look(), found.look()] == [[], []]
    (folder / marker).touch()
    os.utime(folder, (1000, 1000))
    assert [found.look(), found.look()] == [["a.log"], []]


def test_a_pattern_is_scanned_again_while_files_are_pending(folder):
    alone = Alone(MatchFiles(completeness={"marker_file": "{name}.done"}))
    write(folder / "b.log", "two\n", at=2000)
    (folder / "b.log.done").touch()
    sent = []
    for _ in range(2):
        alone.work(str(folder), alone.deferred and alone.deferred.residual)
        sent += [(Path(info.path).name, info.is_found_again) for info in alone.sent()]
        assert (alone.deferred.delay == NEXT_LAUNCH) == (len(sent) == 2)
        (folder / "a.log.done").touch()
    assert sent == [("b.log", True), ("a.log", True)]


def test_a_time_in_the_future_delays_a_file_only_if_its_age_matters(folder):
    (folder / "_SUCCESS").touch()
    write(folder / "a.log", "one\n", at=4_000_000_000)
    assert Running(folder, marker_file="_SUCCESS").look() == ["a.log"]
    assert Running(folder, minimum_age_millis=1).look() == []


def test_a_file_that_changes_between_its_scan_and_its_division_is_pending_again(folder):
    found = Running(folder, minimum_age_millis=1, blocks_threshold=1)
    write(folder / "b.log", "two\n", at=2000)
    assert found.look() == ["a.log"]
    write(folder / "b.log", "two\nthree\n", at=int(found.clock.now().timestamp()) + 7)
    assert [found.look(), found.look(), found.look()] == [[], [], ["b.log"]]


@BOTH
@pytest.mark.parametrize("algorithm", ["md5", "sha256"])
@pytest.mark.parametrize("form", ["{}", "{}  a.log", "{} *in/a.log", "# comment\n{}  b.log\n{}  a.log"])
def test_a_file_is_read_when_its_checksum_agrees(form, algorithm, finder, folder):
    found = finder(folder, checksum_file=f"{{name}}.{algorithm}")
    assert found.look() == []
    checksum = folder / f"a.log.{algorithm}"
    digest = hashlib.new(algorithm, b"one\n").hexdigest()
    checksum.write_text(digest[:-1])  # not all of it was written
    assert found.look() == []
    checksum.write_text(form.replace("{}  b.log", "0" * len(digest) + "  b.log").format(digest.upper()))
    assert [found.look(), found.look()] == [["a.log"], []]


CHECKSUM, CONTROL = {"checksum_file": "{name}.md5"}, {"control_file": "{name}.ctl"}
ROWS = {"pattern": "END,(?P<rows>[0-9]+)"}
SUM = {"pattern": "(?:END|T);(?P<rows>[0-9]+);(?P<sum>.*)", "sum_column": 2, "delimiter": ";", "header_lines": 1}


@BOTH
@pytest.mark.parametrize(
    ("scanner", "stated", "reason"),
    [
        (CHECKSUM, "0" * 32, f"md5 is 5bbf5a52328e7439ae6e719dfe712200, and a.log.md5 states {'0' * 32}"),
        (CONTROL, "rows=2\nbytes=4", "it has 1 rows, and a.log.ctl states 2"),
        (CONTROL, "Bytes: 5\n", "it has 4 bytes, and a.log.ctl states 5"),
    ],
)
@pytest.mark.parametrize("content", ["one\n", "two\n3\n"], ids=["the statement", "the file"])
def test_a_file_that_contradicts_what_is_stated_is_quarantined_once_until_it_is_corrected(
    *, scanner, stated, reason, content, finder, folder
):
    found = finder(folder, **scanner)
    (name,) = scanner.values()
    control = write(folder / name.format(name="a.log"), stated, at=1000)
    assert found.look() == []
    assert found.quarantined() == [QuarantinedFile(f"{folder}/a.log", 4, 1_000_000, reason=reason)]
    assert [found.look(), found.quarantined()] == [[], []]
    write(folder / "a.log", content, at=2000)
    checksum = hashlib.md5(content.encode(), usedforsecurity=False).hexdigest()
    write(control, checksum if scanner == CHECKSUM else f"bytes={len(content)}", at=3000)
    assert [found.look(), found.look()] == [["a.log"], []]
    assert found.alone.operator.refused == {}


@pytest.fixture
def few(monkeypatch):
    """Files that are gone are forgotten when they are four."""
    for module in (splitter, match):
        monkeypatch.setattr(module, "KEPT_OF_GONE", KEPT_OF_GONE)


@BOTH
@pytest.mark.usefixtures("few")
def test_quarantined_files_that_are_gone_are_forgotten_once_they_are_many(finder, tmp_path):
    found = finder(tmp_path, trailer=ROWS)
    for number in range(KEPT_OF_GONE + 3):
        write(tmp_path / f"{number}.csv", "END,2\n", at=1000)
    assert found.look() == []
    assert len(found.quarantined()) == len(found.alone.operator.refused) == KEPT_OF_GONE + 3
    (tmp_path / "0.csv").unlink()
    assert [found.look(), found.quarantined()] == [[], []]
    assert len(found.alone.operator.refused) == KEPT_OF_GONE + 3, "it may be away for a moment"
    for number in range(1, KEPT_OF_GONE + 3):
        (tmp_path / f"{number}.csv").unlink()
    write(tmp_path / "0.csv", "END,3\n", at=2000)
    assert found.look() == []
    assert list(found.alone.operator.refused) == [f"{tmp_path}/0.csv"]
    assert len(found.quarantined()) == 1
    (tmp_path / "0.csv").unlink()
    write(tmp_path / "0.csv", "END,3\n", at=2000)
    assert [found.look(), found.quarantined()] == [[], []], "it is still known"


@pytest.mark.usefixtures("few")
def test_quarantined_files_are_not_gone_if_only_another_pattern_matches_them(tmp_path):
    found = Matching(tmp_path / "a*.csv", tmp_path / "b*.csv", trailer=ROWS)
    for number in range(KEPT_OF_GONE + 3):
        write(tmp_path / f"a{number}.csv", "END,2\n", at=1000)
    write(tmp_path / "b.csv", "one\nEND,1\n", at=1000)
    assert [found.look(), found.look()] == [["b.csv"], []]
    assert len(found.alone.operator.refused) == KEPT_OF_GONE + 3


@pytest.mark.parametrize("changed", ["a.log", "a.log.ctl"])
@BOTH
def test_a_file_that_is_corrected_within_the_tick_of_its_last_change_is_read(finder, changed, folder):
    found = finder(folder, **CONTROL)
    at = int(found.clock.now().timestamp() * 1000) - 19

    def write_at_once(name: str, content: str) -> None:
        (folder / name).write_text(content)
        os.utime(folder / name, ns=(0, at * 10**6))

    write(folder / "a.log.ctl", "rows=1\n", at=2000)
    write_at_once(changed, "\n\n\n\n" if changed == "a.log" else "rows=3\n")
    assert [found.look(), found.quarantined()] == [[], []]
    write_at_once(changed, "one\n" if changed == "a.log" else "rows=1\n")
    assert [found.look(), found.look()] == [["a.log"], []]


@pytest.mark.parametrize("finder", ["FileSplitterInput", "MatchFiles"])
@pytest.mark.parametrize("crashes", [False, True])
def test_a_quarantined_file_reaches_its_receiver_once_whatever_happens(crashes, finder, folder, tmp_path):
    (folder / "a.log.ctl").write_text("rows=2\n")

    def draw(dag: Dag, conf: object) -> None:
        if finder == "MatchFiles":
            found = dag.add_operator("match", MatchFiles(continuously=True, completeness=CONTROL))
            dag.add_operator("patterns", Items(items=(str(folder),))) >> found
        else:
            found = dag.add_operator("splitter", FileSplitterInput(scanner={"files": [str(folder)], **CONTROL}))
        collected(dag, found.quarantined, lambda file: file.path)

    desk = Desk(tmp_path, draw, clock=FakeClock())
    if crashes:
        assert desk.crash(CrashAfter(Point.RUNNING, 1)) == 1
    desk.run(windows=1)
    assert arrived(desk.run(windows=1)) == [f"{folder}/a.log"]


@pytest.mark.parametrize(("rows", "read"), [(3, ["b.gz"]), (2, [])])
def test_the_rows_of_a_compressed_file_are_those_of_its_content(rows, read, tmp_path):
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"one\ntwo\nthree"))
    write(tmp_path / "b.gz.ctl", f"rows={rows}\n")
    assert Restarted(tmp_path, **CONTROL).look() == read


@pytest.mark.parametrize(
    ("scanner", "reason"),
    [(CONTROL, "its rows cannot be counted: "), ({"trailer": ROWS}, "its totals cannot be computed: ")],
    ids=["control file", "trailer"],
)
def test_a_truncated_compressed_file_is_quarantined(scanner, reason, tmp_path):
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"one\ntwo\nEND,2\n")[:-9])
    write(tmp_path / "b.gz.ctl", "rows=3\n")
    found = Restarted(tmp_path / "b.gz", **scanner)
    assert found.look() == []
    (quarantined,) = found.quarantined()
    assert quarantined.reason.startswith(reason)


@pytest.mark.parametrize(
    ("scanner", "broken", "reason"),
    [
        (CONTROL, "rows=", "is not described by the a.csv.ctl beside it (control_file)"),
        ({"trailer": ROWS}, "a\nEND,", "has no last line that states its totals (trailer)"),
    ],
)
def test_a_file_whose_totals_are_not_stated_is_pending(scanner, broken, reason, tmp_path, caplog):
    name = "a.csv" if "trailer" in scanner else "a.csv.ctl"
    write(tmp_path / "a.csv", "a\nEND,1\n", at=1000)
    write(tmp_path / name, broken, at=1000)
    found = Restarted(tmp_path, **scanner)
    assert [found.look(), found.quarantined()] == [[], []]
    assert caplog.messages == [f"pending files: 1; {tmp_path}/a.csv {reason}"]
    write(tmp_path / name, "a\nEND,1\n" if "trailer" in scanner else "rows=2\n", at=2000)
    assert [found.look(), found.look()] == [["a.csv"], []]


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    ("trailer", "content"),
    [
        (ROWS, "END,0"),
        (ROWS, "a\nb\nEND,2"),
        (ROWS, "a\r\nb\r\nEND,2\r\n"),
        (ROWS, "\n\nEND,2\n"),
        ({**ROWS, "header_lines": 1}, "name\na\nEND,1\n"),
        (SUM, 'x;amount\na;0.1\nb;0.2\nc;"-1"\nEND;3;-0.70\n'),
    ],
)
def test_a_file_is_read_when_its_trailer_agrees(trailer, content, compress, tmp_path):
    (tmp_path / "a.csv").write_bytes(compress(content.encode()))
    found = Restarted(tmp_path, trailer=trailer)
    assert [found.look(), found.look()] == [["a.csv"], []]


SUMMED = "its totals cannot be computed: "


@pytest.mark.parametrize(
    ("trailer", "content", "reason"),
    [
        (ROWS, "a\nEND,2\n", "it has 1 rows, and its last line states 2"),
        ({**ROWS, "header_lines": 2}, "a\nEND,1\n", "it has 0 rows, and its last line states 1"),
        (SUM, "x;y\na;1\nb;2\nT;2;4\n", "column 2 has the sum 3, and its last line states 4"),
        (SUM, "x;y\na;1\nT;1;many\n", "column 2 has the sum 1, and its last line states many"),
        (SUM, "x;y\na;1\nb\nT;2;1\n", f"{SUMMED}line 3 has no number in column 2"),
        (SUM, "x;y\na;NaN\nT;1;NaN\n", f"{SUMMED}line 2 has no number in column 2"),
        (SUM, "x;y\na;1e60\nb;1\nT;2;1e60\n", f"{SUMMED}the sum to line 3 has more than 60 digits"),
    ],
)
def test_a_file_that_contradicts_its_trailer_is_quarantined_once_until_it_is_corrected(
    trailer, content, reason, tmp_path
):
    write(tmp_path / "a.csv", content, at=1000)
    found = Restarted(tmp_path, trailer=trailer)
    assert found.look() == []
    assert [file.reason for file in found.quarantined()] == [reason]
    assert [found.look(), found.quarantined()] == [[], []]
    header, total = "x\n" * trailer.get("header_lines", 0), "END;1;5" if "sum_column" in trailer else "END,1"
    write(tmp_path / "a.csv", f"{header}a;5\n{total}\n", at=2000)
    assert [found.look(), found.look()] == [["a.csv"], []]


def test_a_last_line_that_is_longer_than_what_is_kept_is_no_trailer(tmp_path):
    write(tmp_path / "a.csv", "a\n" + "b" * (3 << 20) + "END,1", at=1000)
    assert Restarted(tmp_path, trailer=ROWS).look() == []


GROUPS = "its named groups are not `rows`, `sum` or both"
COLUMN = "set sum_column exactly if the pattern has a group named `sum`"
BESIDE = "it names no file beside the file"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        *(({"marker_file": template}, BESIDE) for template in ("", "{name}", "done/{name}")),
        ({"checksum_file": "{name}.crc"}, r"its name does not end in one of [.]md5"),
        ({"trailer": {"pattern": "END,([0-9]+)"}}, GROUPS),
        ({"trailer": {"pattern": "END,(?P<lines>[0-9]+)"}}, GROUPS),
        ({"trailer": {"pattern": "END,("}}, "it is no regular expression"),
        ({"trailer": {"pattern": "(?P<sum>[0-9]+)"}}, COLUMN),
        ({"trailer": {**ROWS, "sum_column": 1}}, COLUMN),
        ({"trailer": {**ROWS, "delimiter": ";;"}}, "it is no single character"),
    ],
)
def test_settings_that_name_no_other_file_no_algorithm_or_no_totals_are_refused(settings, problem, tmp_path):
    with pytest.raises(ValidationError, match=problem):
        DirectoryScanner(files=[str(tmp_path)], **settings)


@SPLITTERS
@cases(
    "happens",
    ("copied", lambda folder: write(folder / "b.log", "one\n", at=2000)),
    ("renamed", lambda folder: (folder / "a.log").rename(folder / "b.log")),
    ("compressed by rotation", rotate),
)
def test_known_content_is_skipped_where_asked(happens, finder, folder):
    found = finder(folder, skip_known_content=True)
    assert found.look() == ["a.log"]
    happens(folder)
    assert [found.look(), found.look()] == [[], []]
    write(folder / "a.log", "two\n", at=3000)
    assert [found.look(), found.look()] == [["a.log"], []]


def test_a_file_whose_time_alone_changed_does_not_count_as_read_again_if_known_content_is_skipped(folder):
    found = Running(folder, skip_known_content=True)
    assert found.look() == ["a.log"]
    write(folder / "a.log", "one\n", at=3000)
    write(folder / "b.log", "two\n", at=3000)
    assert (found.look(), found.alone.metrics["files_read_again"]) == (["b.log"], 0)
    write(folder / "a.log", "other\n", at=4000)
    assert (found.look(), found.alone.metrics["files_read_again"]) == (["a.log"], 1)


def test_of_two_files_with_one_content_the_older_is_read(folder, caplog):
    write(folder / "0.log", "one\n", at=2000)
    (folder / "empty").touch()
    (folder / "also empty").touch()
    found = Restarted(folder, skip_known_content=True)
    assert [found.look(), found.look()] == [["a.log", "also empty", "empty"], []]
    assert caplog.messages == [f"{folder}/0.log has the content of a file that was split before, and is skipped"]


def test_content_that_changes_between_its_scan_and_its_division_is_examined_again(folder):
    write(folder / "b.log", "two\n", at=2000)
    found = Running(folder, skip_known_content=True, blocks_threshold=1)
    assert found.look() == ["a.log"]
    write(folder / "b.log", "one\n", at=3000)
    assert [found.look(), found.look(), found.look()] == [[], [], []]
    write(folder / "b.log", "three\n", at=4000)
    assert [found.look(), found.look()] == [["b.log"], []]


def test_a_truncated_compressed_file_is_like_no_other_and_is_read(folder):
    (folder / "b.gz").write_bytes(gzip.compress(b"one\n")[:-9])
    assert Restarted(folder, skip_known_content=True).look() == ["a.log", "b.gz"]


def test_a_file_that_vanishes_while_it_is_examined_does_not_end_the_launch(tmp_path):
    gone = Found(str(tmp_path / "gone"), 4, 1000)
    assert list(Examined(content_digest).examine([gone])) == []
    (tmp_path / "gone.ctl").write_text("rows=1\n")
    incomplete = IncompleteFiles(DirectoryScanner(files=[str(tmp_path)], **CONTROL))
    assert list(incomplete.complete([gone], 0)) == []
    assert incomplete.pending == 1


@SPLITTERS
def test_a_renamed_file_is_skipped_and_another_one_of_its_name_is_read(finder, folder, caplog):
    found = finder(folder)
    write(folder / "a.log", "one\n", at=1000)
    write(folder / "b.log", "two\n", at=1000)
    assert found.look() == ["a.log", "b.log"]
    (folder / "a.log").rename(folder / "a.1")
    write(folder / "a.log", "three\n", at=1000)
    assert found.look() == ["a.log"]
    assert f"{folder}/a.1 was split under another name, and is skipped" in caplog.messages
    caplog.clear()
    assert [found.look(), caplog.messages] == [[], []]
    (folder / "a.1").rename(folder / "a.2")
    with (folder / "b.log").open("a") as file:
        file.write("more\n")
    os.utime(folder / "b.log", (2, 2))
    (folder / "b.log").rename(folder / "b.1")
    assert [found.look(), found.look()] == [["b.1"], []]


def test_a_file_that_is_renamed_during_a_scan_is_read_once(folder):
    found = Running(folder, blocks_threshold=1)
    write(folder / "b.log", "two\n", at=1000)
    assert found.look() == ["a.log"]
    for name in "ab":  # one was divided, and one was found and waits
        (folder / f"{name}.log").rename(folder / f"{name}.1")
    assert [found.look() for _ in range(4)] == [[], ["b.1"], [], []]


def test_another_file_that_reuses_the_inode_is_read(folder):
    found = Restarted(folder)
    write(folder / "a.log", "one\n", at=1000)
    inode = (folder / "a.log").stat().st_ino
    assert found.look() == ["a.log"]
    (folder / "a.log").rename(folder / "b.log")
    write(folder / "b.log", "two\n", at=1000)  # the same inode, length and time
    assert (folder / "b.log").stat().st_ino == inode
    assert found.look() == ["b.log"]


def test_a_file_with_two_hard_links_is_read_by_each_name(folder):
    found = Restarted(folder)
    write(folder / "a.log", "one\n", at=1000)
    assert found.look() == ["a.log"]
    os.link(folder / "a.log", folder / "b.log")
    assert found.look() == ["b.log"]
    (folder / "a.log").unlink()
    (folder / "b.log").rename(folder / "c.log")
    assert found.look() == []


def test_empty_files_and_directories_are_not_taken_for_renamed(folder):
    found = Restarted(folder, directories=True)
    write(folder / "a.log", "", at=1000)
    (folder / "sub").mkdir()
    assert found.look() == ["a.log", "sub"]
    (folder / "a.log").rename(folder / "b.log")
    (folder / "sub").rename(folder / "other")
    assert found.look() == ["b.log", "other"]


LATER = 10**13


def test_a_hash_is_taken_only_of_a_state_that_no_later_change_can_be_mistaken_for(tmp_path):
    settled = looked_up(str(write(tmp_path / "file", "abcdef")))  # it changed last a second after 1970
    assert settled_hash(settled, 4, LATER) == hashlib.sha256(b"abcd").hexdigest()
    with pytest.raises(StillChanging, match="file"):
        settled_hash(settled, 6, 1000)
    for change in (lambda: Path(settled.path).write_bytes(b"ABCDEF"), Path(settled.path).unlink):
        change()
        with pytest.raises(StillChanging, match="file"):
            settled_hash(settled, 6, LATER)
