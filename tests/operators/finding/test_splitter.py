"""What the splitter finds is described once, in one order, whatever it is interrupted by; what changed, once more."""

import logging
import os
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import dagkit_operators.finding.splitter as splitting
from dagkit import Config, Dag, State, Until
from dagkit.compiler import compile_application
from dagkit.engine.failures import InputRefused
from dagkit.engine.reports.run_events import Committed, Found, RunEvent, Started
from dagkit.errors import InputUnreadable
from dagkit.ranges import OffsetRange
from dagkit.testing import Alone, FakeClock
from dagkit_operators import (
    Block,
    DirectoryScanner,
    FileMetadata,
    FileSplitterInput,
    FixedLengthReader,
    LineReader,
    Map,
)
from dagkit_operators.filesystem import access, listing
from dagkit_operators.finding import seen_files
from dagkit_operators.finding.seen_files import CHARACTERS, SeenFiles, digest
from tests.engine.cast import Collect, Desk, Script, arrived
from tests.patience import within

Splitter = Alone[FileSplitterInput]


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def folder(tmp_path):
    """Twelve files of eleven bytes, one a second."""
    folder = tmp_path / "input"
    folder.mkdir()
    for number in range(12):
        write(folder / f"file{number}.txt", f"f{number:02}l0\nf{number:02}l1", at=number)
    return folder


def write(path: Path, content: str, at: int) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(content)
    os.utime(path, (at, at))
    return path


def splitter(clock: FakeClock, *files: Path | str, until: Until = Until.STOPPED, **properties: object) -> Splitter:
    scanner = {"files": [str(file) for file in files], **properties.pop("scanner", {})}
    return Alone(FileSplitterInput(scanner=scanner, **properties), now=clock.now, until=until)


def window(splitter: Splitter) -> tuple[list[FileMetadata], list[Block]]:
    splitter.look()
    return splitter.sent("files_metadata_output"), splitter.sent()


def names(infos: list[FileMetadata]) -> list[str]:
    return [Path(info.path).name for info in infos]


@pytest.mark.parametrize(
    ("length", "size", "stretches"),
    [
        (11, 2, [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10), (10, 11)]),
        (10, 5, [(0, 5), (5, 10)]),
        (5, 100, [(0, 5)]),
        (0, 2, []),
    ],
)
def test_blocks_lie_end_to_end_and_the_last_says_so(length, size, stretches, tmp_path, clock):
    path = write(tmp_path / "file", "x" * length, at=7)
    infos, blocks = window(splitter(clock, path, block_size=size))
    now = int(clock.now().timestamp() * 1000)
    described = FileMetadata(str(path), length, 7000, len(stretches), relative_path="file", discovered_millis=now)
    assert infos == [described]
    facts = {"length": length, "modified_millis": 7000, "found_again": True}
    assert blocks == [
        Block(number, str(path), start, end, end == length, "", facts, number - 1 if number else None)
        for number, (start, end) in enumerate(stretches)
    ]


def test_twelve_files_are_seventy_two_blocks_numbered_over_all_files(folder, clock):
    infos, blocks = window(splitter(clock, folder, block_size=2))
    assert names(infos) == [f"file{number}.txt" for number in range(12)]
    assert [block.block_id for block in blocks] == list(range(72))


@pytest.mark.parametrize(("threshold", "windows"), [(10, 8), (2, 36), (72, 1), (71, 2)])
def test_no_window_has_more_blocks_than_the_threshold(threshold, windows, folder, clock):
    at_work = splitter(clock, folder, block_size=2, blocks_threshold=threshold)
    counts = [len(window(at_work)[1]) for _ in range(windows + 1)]
    assert counts == [min(threshold, 72 - threshold * number) for number in range(windows)] + [0]


def test_a_window_begins_no_more_files_than_the_threshold(tmp_path, clock):
    for number in range(5):
        write(tmp_path / f"{number}", "", at=number)
    at_work = splitter(clock, tmp_path, blocks_threshold=2)
    assert [len(window(at_work)[0]) for _ in range(4)] == [2, 2, 1, 0]


@pytest.mark.parametrize("until", [Until.ONCE, Until.IDLE])
def test_if_the_port_of_files_is_open_no_number_of_empty_ones_hides_what_comes_after_them(until, tmp_path):
    """A look that nothing came of is the last of such a launch."""
    for number in range(3):
        write(tmp_path / "input" / f"{number}", "", at=number)
    write(tmp_path / "input" / "data", "one\ntwo\n", at=9)

    def draw(dag: Dag, conf: object) -> None:
        scanner = DirectoryScanner(files=(str(tmp_path / "input"),))
        split = dag.add_operator("split", FileSplitterInput(scanner=scanner, blocks_threshold=1))
        read, end = dag.add_operator("read", LineReader()), dag.add_operator("end", Map(lambda block: block.end))
        dag.add_stream("blocks", split.blocks_metadata_output, read.blocks_metadata_input)
        dag.add_stream("read", read.blocks_metadata_output, end.input)
        end >> dag.add_operator("collect", Collect())

    ends = arrived(Desk(tmp_path, draw, until=until, clock=FakeClock()).run(windows=9))
    assert max(ends) == 8  # a slow machine reads the block in several parts


def test_a_file_is_emitted_in_the_window_in_which_its_blocks_begin(folder, clock):
    at_work = splitter(clock, folder, block_size=2, blocks_threshold=2)
    assert [len(window(at_work)[0]) for _ in range(6)] == [1, 0, 0, 1, 0, 0]


@pytest.mark.parametrize("threshold", [1, 2, 5, 7, 10, 100])
def test_a_restart_after_any_window_changes_nothing(threshold, folder, clock):
    """The state is all that is needed to go on, in the middle of a file too."""
    (expected_infos, expected) = window(splitter(clock, folder, block_size=2))
    for stop in range(72 // threshold + 2):
        at_work = splitter(clock, folder, block_size=2, blocks_threshold=threshold)
        infos, blocks = [], []
        for number in range(72 // threshold + 2):
            if number == stop:
                at_work = at_work.restarted()
            found = window(at_work)
            infos += found[0]
            blocks += found[1]
        assert (infos, blocks) == (expected_infos, expected), stop


def test_a_huge_file_costs_a_counter(tmp_path, clock):
    path = tmp_path / "huge"
    with path.open("wb") as huge:
        huge.truncate(10**12)
    at_work = splitter(clock, path, block_size=10**6, blocks_threshold=3)
    ends = [[block.end for block in window(at_work)[1]] for _ in range(2)]
    assert ends == [[10**6, 2 * 10**6, 3 * 10**6], [4 * 10**6, 5 * 10**6, 6 * 10**6]]
    assert len(str(at_work.state)) - len(str(path)) < 400


def test_blocks_are_of_64_mib_and_a_window_has_a_thousand_unless_set_otherwise(tmp_path, clock):
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(2000 * (64 << 20))
    (info,), blocks = window(splitter(clock, tmp_path))
    assert (info.block_count, len(blocks), blocks[0].end) == (2000, 1000, 64 << 20)


def test_files_come_in_the_order_of_their_change_then_by_path(tmp_path, clock):
    for name, at in [("c", 1), ("a", 2), ("b", 2), ("d", 0)]:
        write(tmp_path / name, "x", at)
    assert names(window(splitter(clock, tmp_path))[0]) == ["d", "c", "a", "b"]


def test_it_looks_again_when_the_interval_is_over(folder, clock):
    at_work = splitter(clock, folder)
    assert len(window(at_work)[0]) == 12
    write(folder / "file13.txt", "new", at=13)
    clock.advance(millis=4999)
    assert window(at_work) == ([], [])
    assert at_work.operator.looks_again_in_millis() == 1
    clock.advance(millis=1)
    assert at_work.operator.looks_again_in_millis() == 0
    assert names(window(at_work)[0]) == ["file13.txt"]
    assert at_work.operator.looks_again_in_millis() == 5000


def test_it_looks_once_where_it_was_asked_to(folder, clock):
    at_work = splitter(clock, folder, until=Until.ONCE, block_size=2, blocks_threshold=50)
    assert len(window(at_work)[1]) == 50
    write(folder / "file13.txt", "new", at=13)
    clock.advance(seconds=60)
    assert len(window(at_work)[1]) == 22
    clock.advance(seconds=60)
    assert window(at_work) == ([], [])


def test_no_scan_begins_before_all_of_the_last_one_is_split(folder, clock):
    at_work = splitter(clock, folder, block_size=2, blocks_threshold=40)
    window(at_work)
    write(folder / "first.txt", "new", at=0)
    clock.advance(seconds=60)
    assert names(window(at_work)[0]) == [f"file{number}.txt" for number in range(7, 12)]
    assert names(window(at_work)[0]) == ["first.txt"]


def changed(path: Path) -> None:
    write(path, path.read_text() + "more", at=100)


def rewritten(path: Path) -> None:
    write(path, path.read_text().upper(), at=100)


def set_back(path: Path) -> None:
    write(path, path.read_text().upper(), at=-5)


def grown_within_an_instant(path: Path) -> None:
    write(path, path.read_text() + "more", at=int(path.stat().st_mtime))


@pytest.mark.parametrize("change", [changed, rewritten, set_back, grown_within_an_instant])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_file_that_changed_is_read_again_whole(change, restarts, folder, clock):
    at_work = splitter(clock, folder, block_size=8)
    window(at_work)
    change(folder / "file3.txt")
    at_work = at_work.restarted() if restarts else at_work
    clock.advance(seconds=5)
    infos, blocks = window(at_work)
    assert names(infos) == ["file3.txt"]
    assert [(block.block_id, block.start) for block in blocks] == [(24, 0), (25, 8)]
    clock.advance(seconds=5)
    assert window(at_work) == ([], [])


def test_readings_of_one_path_are_distinguished_by_their_versions(tmp_path, clock):
    path = write(tmp_path / "file", "x", at=1)
    at_work = splitter(clock, tmp_path, scanner={"scan_interval_millis": 0})
    found = [window(at_work)[1]]
    changed(path)
    found.append(window(at_work)[1])
    path.unlink()
    found.append(window(at_work)[1])
    write(path, "other", at=1)
    found.append(window(at_work)[1])
    assert [[block.version for block in blocks] for blocks in found] == [[""], ["1"], [], ["2"]]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_file_that_comes_late_with_an_old_time_is_found(restarts, folder, clock):
    at_work = splitter(clock, folder)
    window(at_work)
    at_work = at_work.restarted() if restarts else at_work
    write(folder / "moved_here.txt", "old", at=-1000)
    clock.advance(seconds=5)
    assert names(window(at_work)[0]) == ["moved_here.txt"]


def test_what_is_remembered_grows_with_what_is_there_and_not_with_what_was(folder, clock, monkeypatch):
    monkeypatch.setattr(splitting, "KEPT_OF_GONE", 3)
    at_work = splitter(clock, folder)
    window(at_work)
    remembered = []
    for path in sorted(folder.iterdir()):
        path.unlink()
        clock.advance(seconds=5)
        assert window(at_work) == ([], [])
        remembered.append(len(at_work.operator.known) // 16)
    assert remembered == [12] * 7 + [4, 4, 4, 4, 0]


@pytest.mark.parametrize("versions", [False, True])
def test_of_files_as_in_the_last_scan_only_portions_with_changes_are_looked_up(versions, monkeypatch):
    digests: list[access.Found] = []

    def counted(found: access.Found, *version: str) -> bytes:
        digests.append(found)
        return digest(found, *version)

    def scan(there: list[access.Found]) -> list[access.Found]:
        seen.begin_scan()
        return [found for unseen in seen.unseen(there, once=True) for found in unseen]

    monkeypatch.setattr(seen_files, "digest", counted)
    seen = SeenFiles()
    there = [access.Found(f"/in/{number:05}", 5, 1000, f"{number}" if versions else "") for number in range(5000)]
    assert scan(there) == there
    for found in there:
        seen.add(found)
    assert (scan(there), seen.gone) == ([], 0)
    digests.clear()
    assert (scan(there), seen.gone, digests) == ([], 0, [])
    there[7] = there[7]._replace(modified_millis=1001)
    del there[4000]
    new = access.Found("/in/00000a", 5, 1000)
    assert scan([*there[:3000], new, *there[3000:]]) == [there[7], new]
    assert seen.gone == (4 if versions else 2)
    assert len({found.path for found in digests}) < len(there)
    seen.look_at_each()
    assert scan(there) == [there[7]]
    seen.forget_gone()
    assert len(seen) == (len(there) - 1) * (2 if versions else 1)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_file_that_comes_back_as_it_was_is_not_read_twice(restarts, folder, clock):
    """As when a directory is not mounted for a while."""
    at_work = splitter(clock, folder)
    window(at_work)
    folder.rename(folder.with_name("away"))
    clock.advance(seconds=5)
    assert window(at_work) == ([], [])
    at_work = at_work.restarted() if restarts else at_work
    folder.with_name("away").rename(folder)
    clock.advance(seconds=5)
    assert window(at_work) == ([], [])


def test_a_file_that_vanished_before_it_was_split_is_passed_over(folder, clock, caplog):
    at_work = splitter(clock, folder, blocks_threshold=1)
    window(at_work)
    (folder / "file1.txt").unlink()
    with caplog.at_level(logging.WARNING):
        infos, _ = window(at_work)
    assert names(infos) == ["file2.txt"]
    assert caplog.records[0].getMessage().endswith("file1.txt is gone, and was not split; it is skipped")


def test_a_file_that_changed_before_it_was_split_is_split_as_it_is(folder, clock):
    at_work = splitter(clock, folder, blocks_threshold=1)
    window(at_work)
    changed(folder / "file1.txt")
    infos, blocks = window(at_work)
    assert (infos[0].length, blocks[0].end) == (15, 15)
    for _ in range(11):
        window(at_work)
    clock.advance(seconds=5)
    assert window(at_work) == ([], [])


def test_a_directory_that_was_never_there_is_an_error(tmp_path, clock):
    match = r"^cannot read /.*/nowhere: there is no such file .*\n  help: make it, or name another .*; relative paths "
    with pytest.raises(InputUnreadable, match=match):
        window(splitter(clock, tmp_path / "nowhere"))


def test_a_pattern_where_a_path_is_wanted_is_reported_as_a_pattern(tmp_path, clock):
    with pytest.raises(
        InputUnreadable, match=r"\*\.log: there is no .*\n  help: .* or ask for a pattern by file_pattern_regular_exp"
    ):
        window(splitter(clock, tmp_path / "*.log"))


def test_a_file_that_was_read_may_be_cleared_away(tmp_path, clock, caplog):
    path = write(tmp_path / "file", "x", at=1)
    at_work = splitter(clock, path)
    window(at_work)
    path.unlink()
    clock.advance(seconds=5)
    with caplog.at_level(logging.WARNING):
        assert window(at_work) == ([], [])
    assert "there is no such file or directory; each scan looks for it again" in caplog.text


def test_a_root_that_is_gone_does_not_hide_the_others(tmp_path, clock):
    first, second = write(tmp_path / "a" / "file", "x", at=1), tmp_path / "b"
    second.mkdir()
    at_work = splitter(clock, first, second)
    window(at_work)
    first.unlink()
    write(second / "new", "x", at=2)
    clock.advance(seconds=5)
    assert names(window(at_work)[0]) == ["new"]


def found_below(folder: Path, **properties: object) -> set[str]:
    scanner = DirectoryScanner(files=[str(folder)], **properties)
    return {Path(found.path).relative_to(folder).as_posix() for found in scanner.scan()}


@pytest.fixture
def tree(tmp_path):
    for name in ["a.txt", "b.csv", "sub/c.txt", ".hidden", ".git/d.txt", "e.txt.tmp", "f._COPYING_", "_g", "sub/h.tmp"]:
        write(tmp_path / name, "x", at=1)
    return tmp_path


def test_hidden_and_unfinished_files_are_passed_over_unless_asked_for(tree):
    assert found_below(tree) == {"a.txt", "b.csv", "sub/c.txt", "_g"}
    assert len(found_below(tree, skip_unfinished=False)) == 9


def test_directories_inside_are_left_out_where_asked(tree):
    assert found_below(tree, recursive=False) == {"a.txt", "b.csv", "_g"}


def test_patterns_match_whole_paths(tree):
    assert found_below(tree, file_pattern_regular_exp=r".*[.]txt") == {"a.txt", "sub/c.txt"}
    assert found_below(tree, file_pattern_regular_exp=r"a[.]txt") == set()
    assert found_below(tree, ignore_file_pattern_regular_exp=r".*/sub/.*") == {"a.txt", "b.csv", "_g"}


def test_a_file_that_is_named_is_read_whatever_it_is_called(tree):
    (found,) = DirectoryScanner(files=[str(tree / ".hidden")]).scan()
    assert found.path == str(tree / ".hidden")


def test_a_hidden_directory_that_is_named_is_scanned(tree):
    assert found_below(tree / ".git") == {"d.txt"}


def test_a_file_that_two_names_lead_to_is_found_once(tree, clock):
    assert len(window(splitter(clock, tree, tree / "sub", (tree / "sub").as_uri()))[0]) == 4


def test_links_are_followed_and_circles_end(tmp_path):
    write(tmp_path / "here" / "file", "x", at=1)
    (tmp_path / "here" / "again").symlink_to(tmp_path / "here")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "link").symlink_to(tmp_path / "here" / "file")
    (tmp_path / "there" / "broken").symlink_to(tmp_path / "nowhere")
    assert found_below(tmp_path) == {"here/file", "there/link"}


@pytest.mark.parametrize("rescan", ["files", "folders"])
def test_a_folder_that_links_lead_to_has_its_own_name(rescan, tmp_path, clock):
    write(tmp_path / "in" / "deep" / "sub" / "file", "x", at=1)
    write(tmp_path / "elsewhere" / "other", "x", at=1)
    for name in ("a", "z"):
        (tmp_path / "in" / name).symlink_to(tmp_path / "in" / "deep" / "sub")
        (tmp_path / "in" / "deep" / name).symlink_to(tmp_path / "in" / "deep")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "elsewhere")
    for folder in (tmp_path / "in", tmp_path / "in" / "deep", tmp_path / "in" / "deep" / "sub", tmp_path / "elsewhere"):
        os.utime(folder, (5, 5))
    at_work = splitter(clock, tmp_path / "in", scanner={"rescan": rescan})
    found = window(at_work)[0]
    assert {Path(file.path).relative_to(tmp_path).as_posix() for file in found} == {"in/deep/sub/file", "in/link/other"}
    write(tmp_path / "in" / "deep" / "sub" / "later", "x", at=1)
    clock.advance(seconds=5)
    assert [Path(file.path).relative_to(tmp_path).as_posix() for file in window(at_work)[0]] == ["in/deep/sub/later"]


def test_links_that_lead_nowhere_are_passed_over(tmp_path):
    file = write(tmp_path / "file", "x", at=1)
    for name, target in [("loop", "loop"), ("there", "back"), ("back", "there"), ("through", file / "within")]:
        (tmp_path / name).symlink_to(target)
    assert found_below(tmp_path) == {"file"}
    with pytest.raises(InputUnreadable, match=r"cannot read .*/loop: there is no such file"):
        list(DirectoryScanner(files=(str(tmp_path / "loop"),)).scan())


def test_a_path_that_is_too_long_is_skipped_and_logged(tmp_path, caplog):
    write(tmp_path / "file", "x", at=1)
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=folder)
        inner = os.open("d" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    with caplog.at_level(logging.WARNING):
        assert found_below(tmp_path) == {"file"}
    (record,) = caplog.records
    assert record.getMessage().endswith("is too long for a path; it is skipped")


def test_paths_are_absolute_wherever_the_worker_stands(folder, clock, monkeypatch):
    monkeypatch.chdir(folder.parent)
    _, blocks = window(splitter(clock, "input"))
    assert blocks[0].path == str(folder / "file0.txt")


def test_urls_of_filesystems_that_arrow_or_fsspec_know_are_scanned(clock):
    memory = fsspec.filesystem("memory")
    memory.pipe({"/scanned/a b.txt": b"x", "/scanned/sub/100%.txt": b"yy"})
    infos, blocks = window(splitter(clock, "memory://scanned"))
    assert sorted((info.path, info.length) for info in infos) == [
        ("memory://scanned/a b.txt", 1),
        ("memory://scanned/sub/100%.txt", 2),
    ]
    assert len(blocks) == 2


@pytest.mark.parametrize(
    ("given", "files"),
    [
        ("in,put", ("in,put",)),
        (Path("input"), ("input",)),
        (["a", Path("b")], ("a", "b")),
        (("a",), ("a",)),
    ],
)
def test_files_are_paths_of_any_form_one_or_many(given, files):
    assert DirectoryScanner(files=given).files == files


@pytest.mark.parametrize("text", ["a,b", "a, b", '["a", "b"]'])
def test_in_a_property_file_commas_part_the_paths(text):
    def populate_dag(dag: Dag, conf: Config) -> None:
        dag.add_operator("Splitter", FileSplitterInput())

    conf = Config.of({"dt.operator.Splitter.prop.scanner.files": text})
    graph = compile_application(populate_dag, conf).graph
    assert [path.strip() for path in graph.by_name["Splitter"].operator.scanner.files] == ["a", "b"]


@pytest.mark.parametrize("given", [(), [], [7], 7, None])
def test_without_paths_there_is_a_fault(given):
    assert FileSplitterInput(scanner={"files": given}).faults


def test_a_pattern_that_repeats_what_repeats_ends(tmp_path):
    """Python's matcher would be at it for years, and could not be interrupted."""
    (tmp_path / ("a" * 100 + "!")).touch()
    assert found_below(tmp_path, file_pattern_regular_exp=".*/(a+)+") == set()
    assert found_below(tmp_path, ignore_file_pattern_regular_exp=".*/(a+)+") == {"a" * 100 + "!"}


@pytest.mark.parametrize("field", ["file_pattern_regular_exp", "ignore_file_pattern_regular_exp"])
def test_a_pattern_that_looks_ahead_is_a_fault_that_says_what_there_is(field):
    (fault,) = FileSplitterInput(scanner={"files": ["a"], field: "(?!b).*"}).faults
    assert fault.path == f"scanner.{field}"
    assert fault.message.startswith("it is no regular expression: invalid perl operator: (?!; use the RE2 syntax")


@pytest.mark.parametrize("field", ["file_pattern_regular_exp", "ignore_file_pattern_regular_exp"])
def test_a_pattern_that_is_none_is_a_fault(field):
    (fault,) = FileSplitterInput(scanner={"files": ["input"], field: "*.txt"}).faults
    assert (fault.path, "no regular expression" in fault.message) == (f"scanner.{field}", True)


def test_without_a_clock_the_time_is_that_of_the_machine(folder):
    at_work = Alone(FileSplitterInput(scanner={"files": [str(folder)]}))
    assert len(window(at_work)[0]) == 12
    assert isinstance(at_work.operator._next_scan, datetime)


def test_what_is_known_is_written_once_a_look(clock, folder, monkeypatch):
    written: list[str] = []
    remember = State.__set__

    def watched(state: State[object], instance: object, value: object) -> None:
        if state.name == "known":
            written.append(str(value))
        remember(state, instance, value)

    monkeypatch.setattr(State, "__set__", watched)
    at_work = splitter(clock, folder, blocks_threshold=5)
    for _ in range(4):
        window(at_work)
    assert [len(known) // CHARACTERS for known in written] == [5, 10, 12]


def held_back(folder: Path, release: threading.Event) -> type[DirectoryScanner]:
    """A scanner whose second scan ends only after the event is set."""

    class HeldBack(DirectoryScanner):
        scans: ClassVar[list[int]] = []

        def scan(self, **given: Any) -> Iterator[Any]:
            self.scans.append(1)
            if len(self.scans) == 2:
                assert release.wait(within(30)), "the scan may end"
                write(folder / "found by the second scan", "five\n", at=50)
            yield from super().scan(**given)

    return HeldBack


@pytest.mark.slow
def test_a_scan_holds_no_window_up(tmp_path):
    """Windows are committed while a scan hangs; the files that it finds come after it has ended."""
    release, folder = threading.Event(), tmp_path / "input"
    for number in range(4):
        write(folder / f"{number}", "one\n", at=number)
    script = Script(looks=((1,), (2,), (3,)), pause_millis=10)

    def draw(dag: Dag, conf: object) -> None:
        scanner = held_back(folder, release)(files=(str(folder),), scan_interval_millis=0)
        split = dag.add_operator("split", FileSplitterInput(scanner=scanner))
        (
            split.blocks_metadata_output
            >> dag.add_operator("ends", Map(lambda block: block.end))
            >> dag.add_operator("collect", Collect())
        )
        dag.add_operator("script", script) >> dag.add_operator("other", Collect())

    committed: list[int] = []
    found: list[Found] = []
    started: list[int] = []

    def observe(event: RunEvent) -> None:
        match event:
            case Found(operator="split"):
                found.append(event)
            case Started() if len(found) == 2:
                started.append(event.window_id)
            case Committed():
                committed.append(event.window_id)
                if len(committed) == 3:
                    release.set()
                if event.window_id in started:
                    loop.stop()

    loop = Desk(tmp_path, draw, until=Until.STOPPED).loop(observers=[observe])
    loop.run()
    assert (arrived(loop), arrived(loop, "other")) == ([4, 4, 4, 4, 5], [1, 2, 3])


@pytest.mark.parametrize("until", [Until.ONCE, Until.IDLE])
def test_what_fails_in_a_scan_beside_the_loop_ends_the_launch_with_its_code(until, tmp_path):
    def draw(dag: Dag, conf: object) -> None:
        split = dag.add_operator("split", FileSplitterInput(scanner={"files": [str(tmp_path / "nowhere")]}))
        (
            split.blocks_metadata_output
            >> dag.add_operator("ends", Map(lambda block: block.end))
            >> dag.add_operator("collect", Collect())
        )

    with pytest.raises(InputRefused, match="nowhere: there is no such file") as raised:
        Desk(tmp_path, draw, until=until, clock=FakeClock()).run()
    assert raised.value.code == "input-unreadable"


@pytest.fixture
def old_folders(tmp_path):
    """Three folders with a file each, which changed last long ago."""
    for name in ("a", "b", "b/c"):
        write(tmp_path / "input" / name / f"{name[-1]}.txt", "one\n", at=1)
    for folder in sorted((tmp_path / "input").rglob("*/"), reverse=True):
        os.utime(folder, (100, 100))
    os.utime(tmp_path / "input", (100, 100))
    return tmp_path / "input"


def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the folders that are listed from now on."""
    names: list[str] = []
    entries = listing._entries
    monkeypatch.setattr(listing, "_entries", lambda folder: names.append(Path(folder).name) or entries(folder))
    return names


def test_only_folders_that_changed_are_listed_again_where_asked(old_folders, clock, monkeypatch):
    at_work = splitter(clock, old_folders, scanner={"rescan": "folders", "scan_interval_millis": 0})
    assert names(window(at_work)[0]) == ["a.txt", "b.txt", "c.txt"]
    seen = listed(monkeypatch)
    assert (window(at_work)[0], seen) == ([], [])
    write(old_folders / "b" / "c" / "new.txt", "two\n", at=2)
    assert (names(window(at_work)[0]), seen) == (["new.txt"], ["c"])
    (old_folders / "a" / "a.txt").unlink()
    assert window(at_work)[0] == []
    write(old_folders / "a" / "a.txt", "other\n", at=1)
    (described,), (block,) = window(at_work)
    assert (described.file_name, block.version) == ("a.txt", "4")


def test_a_folder_that_may_have_changed_within_a_tick_is_listed_again(old_folders, clock, monkeypatch):
    """A file that came in the tick after the listing leaves the folder's time as it was."""
    now = time.time()
    os.utime(old_folders / "a", (now, now))
    at_work = splitter(clock, old_folders, scanner={"rescan": "folders", "scan_interval_millis": 0})
    window(at_work)
    write(old_folders / "a" / "new.txt", "two\n", at=2)
    os.utime(old_folders / "a", (now, now))
    assert names(window(at_work)[0]) == ["new.txt"]


def test_every_file_is_looked_at_again_unless_asked_otherwise(old_folders, clock):
    at_work = splitter(clock, old_folders, scanner={"scan_interval_millis": 0})
    window(at_work)
    changed(old_folders / "a" / "a.txt")
    os.utime(old_folders / "a", (100, 100))
    assert names(window(at_work)[0]) == ["a.txt"]


def test_deleted_files_are_forgotten_though_their_folders_are_not_listed(old_folders, clock, monkeypatch):
    monkeypatch.setattr(splitting, "KEPT_OF_GONE", 0)
    for number in range(9):
        write(old_folders / "a" / f"{number}", "x", at=number)
    os.utime(old_folders / "a", (100, 100))
    at_work = splitter(clock, old_folders, scanner={"rescan": "folders", "scan_interval_millis": 0})
    window(at_work)
    for file in (old_folders / "a").iterdir():
        file.unlink()
    assert window(at_work) == ([], [])
    assert len(at_work.operator.known) // CHARACTERS == 2


@pytest.mark.parametrize("restarts", [False, True])
def test_without_a_window_data_manager_each_launch_reads_everything(restarts, folder, clock):
    at_work = splitter(clock, folder, window_data_manager="noop", block_size=8)
    assert len(window(at_work)[1]) == 24
    assert at_work.operator.known == ""
    at_work = at_work.restarted() if restarts else at_work
    clock.advance(seconds=5)
    _, blocks = window(at_work)
    versions = [block.version for block in blocks]
    assert versions == ([f"{24 + 2 * (n // 2):x}" for n in range(24)] if restarts else [])


@pytest.mark.parametrize(
    ("patterns", "words"),
    [
        ({}, "there is no file there"),
        ({"file_pattern_regular_exp": ".*[.]csv"}, "no file there passes file_pattern_regular_exp '.*[.]csv'"),
        (
            {"file_pattern_regular_exp": ".*[.]txt", "ignore_file_pattern_regular_exp": ".*"},
            "no file there passes file_pattern_regular_exp '.*[.]txt' and ignore_file_pattern_regular_exp '.*'",
        ),
    ],
)
def test_a_folder_in_which_nothing_is_found_is_reported(patterns, words, tmp_path, clock, caplog):
    if patterns:
        write(tmp_path / "a.txt", "x", at=1)
    at_work = splitter(clock, tmp_path, scanner=patterns)
    for _ in range(2):
        window(at_work)
        clock.advance(seconds=5)
    assert [record.getMessage() for record in caplog.records] == [f"scanner.files names {tmp_path}, and {words}"]


def test_a_file_that_is_read_in_order_is_one_block_that_one_reader_reads_on(tmp_path, clock):
    write(tmp_path / "file", "".join(f"{number}\n" for number in range(9)), at=1)
    at_work = splitter(clock, tmp_path, block_size=4, sequential_file_read=True)
    (described,), (block,) = window(at_work)
    assert (described.block_count, block.start, block.end, block.last) == (1, 0, 18, True)
    reader = Alone(LineReader(chunk_size=4))
    assert reader.operator.tracker(block, OffsetRange(0, 18)).try_split_at(9) is None
    assert reader.operator.tracker(block, OffsetRange(0, 18)).try_split(0.5) is None
    rest = reader.work(block, split_after=1)
    assert rest.start > 0
    before = [record.value for record in reader.sent()]
    reader.work(rest)
    assert before + [record.value for record in reader.sent()] == [str(number) for number in range(9)]


@pytest.mark.parametrize(
    ("place", "size"),
    [
        ("/data", 64 << 20),
        ("s3://bucket/data", 64 << 20),
        ("hdfs://host:9000/data", 128 << 20),
        ("hdfs://host/data?default_block_size=1048576", 1 << 20),
        ("viewfs://host/data?default_block_size=some", 128 << 20),
    ],
)
def test_blocks_are_as_long_as_those_of_the_filesystem(place, size):
    assert FileSplitterInput(scanner={"files": [place]}).get_default_block_size(place) == size


class InBlocks(MemoryFileSystem):  # type: ignore[misc]
    """A filesystem that reports a block size, as that of WebHDFS does."""

    protocol = "inblocks"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.removeprefix("inblocks://")))

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        size = (2 << 20) if path.endswith("large") else 4096
        return {**super().info(path, **options), "blockSize": size}


def test_a_filesystem_that_reports_blocks_is_asked_for_each_file(clock):
    fsspec.register_implementation("inblocks", InBlocks, clobber=True)
    for name in ("large", "small"):
        fsspec.filesystem("inblocks").pipe(f"/{name}", bytes(5 << 20))
    _, blocks = window(splitter(clock, "inblocks:///large"))
    assert [block.end - block.start for block in blocks] == [2 << 20, 2 << 20, 1 << 20]
    assert FixedLengthReader().context_for("inblocks:///large").stride == 2 << 20
    _, blocks = window(splitter(clock, "inblocks:///small"))
    assert [block.end for block in blocks] == [5 << 20], "blocks of a disk are no blocks of a file"
