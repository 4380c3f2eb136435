"""What the splitter finds is described once, in one order, whatever it is interrupted by; what changed, once more.

See also test_apex_cases.py and, for what happens to files, test_file_policy.py.
"""

import hashlib
import os
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import dagkit_operators.finding.splitter as splitting
from dagkit import Config, Dag, State, Until
from dagkit.compiler import compile_application
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.record.run_events import Committed, Found, RunEvent, Started
from dagkit.errors import ApplicationFaults, InputUnreadable
from dagkit.ranges import OffsetRange
from dagkit.testing import Alone, FakeClock
from dagkit_operators import (
    Block,
    DirectoryScanner,
    FileMetadata,
    FileSplitterInput,
    FixedLengthReader,
    LineReader,
    PartWriter,
)
from dagkit_operators.filesystem import access, listing
from dagkit_operators.finding import seen_files
from dagkit_operators.finding.seen_files import CHARACTERS, SeenFiles, digest
from tests.engine.cast import Collect, Desk, Script, arrived, chain
from tests.operators.finding.cast import Splitting, collected, stretches, write
from tests.operators.ways import lines_in
from tests.patience import within


@pytest.fixture
def folder(tmp_path):
    """Twelve files of eleven bytes, one a second."""
    for number in range(12):
        write(tmp_path / "input" / f"file{number:02}.txt", f"f{number:02}l0\nf{number:02}l1", at=number)
    return tmp_path / "input"


@pytest.mark.parametrize(
    ("length", "size", "blocks"),
    [
        (11, 2, [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10), (10, 11)]),
        (10, 5, [(0, 5), (5, 10)]),
        (5, 100, [(0, 5)]),
        (0, 2, []),
    ],
)
def test_blocks_lie_end_to_end_and_the_last_says_so(length, size, blocks, tmp_path):
    path = write(tmp_path / "file", "x" * length, at=7)
    now = int(FakeClock().now().timestamp() * 1000)
    described = FileMetadata(str(path), length, 7000, len(blocks), relative_path="file", discovered_millis=now)
    witness = hashlib.blake2b(b"x" * length, digest_size=8).hexdigest()
    facts = {"length": length, "modified_millis": 7000, "witness": witness, "found_again": True}
    assert Splitting(path, block_size=size).window() == (
        [described],
        [
            Block(number, str(path), start, end, end == length, "", facts, number - 1 if number else None)
            for number, (start, end) in enumerate(blocks)
        ],
    )


def test_a_window_begins_no_more_files_than_the_threshold(tmp_path):
    for number in range(5):
        write(tmp_path / f"{number}", "", at=number)
    split = Splitting(tmp_path, blocks_threshold=2)
    assert [split.counts() for _ in range(4)] == [(2, 0), (2, 0), (1, 0), (0, 0)]


@pytest.mark.parametrize("until", [Until.ONCE, Until.IDLE])
def test_if_the_port_of_files_is_open_no_number_of_empty_ones_hides_what_comes_after_them(until, tmp_path):
    """A look that nothing came of is the last of such a launch."""
    for number in range(3):
        write(tmp_path / "input" / f"{number}", "", at=number)
    write(tmp_path / "input" / "data", "one\ntwo\n", at=9)

    split = FileSplitterInput(tmp_path / "input", blocks_threshold=1)
    draw = chain(split=split, read=LineReader(), write=PartWriter(tmp_path / "out"))
    Desk(tmp_path, draw, until=until, clock=FakeClock()).run(windows=9)
    assert lines_in(tmp_path / "out") == ["one", "two"]


def test_a_huge_file_costs_a_counter(tmp_path):
    """By default blocks are of 64 MiB, and a window has a thousand."""
    path = tmp_path / "huge"
    with path.open("wb") as huge:
        huge.truncate(10**12)
    split = Splitting(path)
    ends = [block.end >> 20 for _ in range(2) for block in split.window()[1]]
    assert ends == [64 * number for number in range(1, 2001)]
    assert len(str(split.alone.state)) - len(str(path)) < 450


def test_files_come_in_the_order_of_their_change_then_by_path(tmp_path):
    for name, at in [("c", 1), ("a", 2), ("b", 2), ("d", 0)]:
        write(tmp_path / name, at=at)
    assert Splitting(tmp_path).names() == ["d", "c", "a", "b"]


def test_it_looks_once_where_it_was_asked_to(folder):
    split = Splitting(folder, until=Until.ONCE, block_size=2, blocks_threshold=50)
    assert len(split.window()[1]) == 50
    write(folder / "file13.txt", at=13)
    assert [len(split.window()[1]) for _ in range(2)] == [22, 0]


def test_no_scan_begins_before_all_of_the_last_one_is_split(folder):
    split = Splitting(folder, block_size=2, blocks_threshold=40)
    split.window()
    write(folder / "first.txt", at=0)
    assert [split.names(), split.names()] == [[f"file{number:02}.txt" for number in range(7, 12)], ["first.txt"]]


def test_readings_of_one_path_are_distinguished_by_their_versions(tmp_path):
    path, split = tmp_path / "file", Splitting(tmp_path)
    found = []
    for content in ("x", "more", None, "other"):
        if content is None:
            path.unlink()
        else:
            write(path, content)
        found.append([block.version for block in split.window()[1]])
    assert found == [[""], ["1"], [], ["2"]]


def test_what_is_remembered_grows_with_what_is_there_and_not_with_what_was(folder, monkeypatch):
    monkeypatch.setattr(splitting, "KEPT_OF_GONE", 3)
    split = Splitting(folder)
    split.window()
    remembered = []
    for path in sorted(folder.iterdir()):
        path.unlink()
        assert split.window() == ([], [])
        remembered.append(len(split.alone.operator.known) // CHARACTERS)
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


def test_a_file_that_vanished_before_it_was_split_is_passed_over_and_one_that_changed_is_split_as_it_is(folder, caplog):
    split = Splitting(folder, blocks_threshold=1)
    split.window()
    (folder / "file01.txt").unlink()
    write(folder / "file02.txt", "x" * 15, at=100)
    (info,), (block,) = split.window()
    assert (info.file_name, info.length, block.end) == ("file02.txt", 15, 15)
    assert caplog.messages[0].endswith("file01.txt is gone, and was not split; it is skipped")
    assert [split.counts()[0] for _ in range(11)] == [1] * 9 + [0, 0]


def test_a_pattern_where_a_path_is_wanted_is_reported_as_a_pattern(tmp_path):
    message = r"\*\.log: there is no .*\n  help: .* or ask for a pattern by file_pattern_regular_exp"
    with pytest.raises(InputUnreadable, match=message):
        Splitting(tmp_path / "*.log").window()


def test_a_file_that_was_read_may_be_cleared_away_and_does_not_hide_others(tmp_path, caplog):
    path = write(tmp_path / "file")
    (tmp_path / "b").mkdir()
    split = Splitting(path, tmp_path / "b")
    split.window()
    path.unlink()
    write(tmp_path / "b" / "new", "other")
    assert [split.names(), split.names()] == [["new"], []]
    assert "there is no such file or directory; each scan looks for it again" in caplog.text
    assert split.alone.operator.waits_for == ""


def test_a_folder_that_is_gone_is_reported_until_it_is_back_and_logged_once(tmp_path, caplog):
    (tmp_path / "in").mkdir()
    split = Splitting(tmp_path / "in", tmp_path)
    write(tmp_path / "in" / "first")
    split.window()
    (tmp_path / "in").rename(tmp_path / ".away")
    for _ in range(3):
        split.window()
        gone = f"{tmp_path}/in does not exist; each scan looks for it again"
        assert split.alone.operator.waits_for == gone
    assert caplog.text.count("each scan looks for it again") == 1
    (tmp_path / ".away").rename(tmp_path / "in")
    split.window()
    assert split.alone.operator.waits_for == ""


def found_below(folder: Path, **properties: object) -> set[str]:
    scanner = DirectoryScanner(files=[str(folder)], **properties)
    return {Path(found.path).relative_to(folder).as_posix() for found in scanner.scan()}


TREE = {"a.txt", "b.csv", "sub/c.txt", ".hidden", ".git/d.txt", "e.txt.tmp", "f._COPYING_", "_g", "sub/h.tmp"}


@pytest.mark.parametrize(
    ("properties", "found"),
    [
        ({}, {"a.txt", "b.csv", "sub/c.txt", "_g"}),
        ({"skip_unfinished": False}, TREE),
        ({"recursive": False}, {"a.txt", "b.csv", "_g"}),
        ({"file_pattern_regular_exp": r".*[.]txt"}, {"a.txt", "sub/c.txt"}),
        ({"file_pattern_regular_exp": r"a[.]txt"}, set()),
        ({"ignore_file_pattern_regular_exp": r".*/sub/.*"}, {"a.txt", "b.csv", "_g"}),
        ({"ignore_file_pattern_regular_exp": r".*/([a-z]+)+"}, {"a.txt", "b.csv", "sub/c.txt", "_g"}),
    ],
)
def test_hidden_and_unfinished_files_and_those_that_a_pattern_leaves_out_are_passed_over(properties, found, tmp_path):
    for name in TREE:
        write(tmp_path / name)
    assert found_below(tmp_path, **properties) == found


def test_what_is_named_is_read_whatever_it_is_called(tmp_path):
    path = write(tmp_path / ".git" / ".hidden")
    assert [found.path for found in DirectoryScanner(files=[str(path)]).scan()] == [str(path)]
    write(tmp_path / ".git" / "d.txt")
    assert found_below(tmp_path / ".git") == {"d.txt"}


def test_links_are_followed_and_circles_end(tmp_path):
    write(tmp_path / "here" / "file")
    (tmp_path / "here" / "again").symlink_to(tmp_path / "here")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "link").symlink_to(tmp_path / "here" / "file")
    assert found_below(tmp_path) == {"here/file", "there/link"}


@pytest.mark.parametrize("rescan", ["files", "folders"])
def test_a_folder_that_links_lead_to_has_its_own_name(rescan, tmp_path):
    deep, elsewhere = tmp_path / "in" / "deep", tmp_path / "elsewhere"
    write(deep / "sub" / "file")
    write(elsewhere / "other")
    for name in ("a", "z"):
        (tmp_path / "in" / name).symlink_to(deep / "sub")
        (deep / name).symlink_to(deep)
    (tmp_path / "in" / "link").symlink_to(elsewhere)
    for folder in (deep.parent, deep, deep / "sub", elsewhere):
        os.utime(folder, (5, 5))
    split = Splitting(tmp_path / "in", scanner={"rescan": rescan})
    assert {file.path for file in split.window()[0]} == {f"{deep}/sub/file", f"{tmp_path}/in/link/other"}
    write(deep / "sub" / "later")
    assert [file.path for file in split.window()[0]] == [f"{deep}/sub/later"]


def test_links_that_lead_nowhere_are_passed_over(tmp_path):
    file = write(tmp_path / "file")
    for name, target in [
        ("broken", "nowhere"),
        ("loop", "loop"),
        ("there", "back"),
        ("back", "there"),
        ("through", file / "within"),
    ]:
        (tmp_path / name).symlink_to(target)
    assert found_below(tmp_path) == {"file"}
    with pytest.raises(InputUnreadable, match=r"cannot read .*/loop: there is no such file"):
        list(DirectoryScanner(files=(str(tmp_path / "loop"),)).scan())


def test_a_path_that_is_too_long_is_skipped_and_logged(tmp_path, caplog):
    write(tmp_path / "file")
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=folder)
        inner = os.open("d" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    assert found_below(tmp_path) == {"file"}
    (message,) = caplog.messages
    assert message.endswith("is too long for a path; it is skipped")


def test_paths_are_absolute_wherever_the_worker_stands(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    assert Splitting("input").window()[1][0].path == str(folder / "file00.txt")


@pytest.mark.parametrize(
    ("given", "files"),
    [("in,put", ("in,put",)), (Path("input"), ("input",)), (["a", Path("b")], ("a", "b")), (("a",), ("a",))],
)
def test_files_are_paths_of_any_form_one_or_many(given, files):
    assert DirectoryScanner(files=given).files == files


@pytest.mark.parametrize("text", ["a,b", "a, b", '["a", "b"]'])
def test_in_a_property_file_commas_part_the_paths(text):
    conf = Config.of({"dt.operator.Splitter.prop.scanner.files": text})
    graph = compile_application(lambda dag, _: dag.add_operator("Splitter", FileSplitterInput()), conf).graph
    assert [path.strip() for path in graph.by_name["Splitter"].operator.scanner.files] == ["a", "b"]


@pytest.mark.parametrize("given", [(), [], [7], 7, None])
def test_without_paths_there_is_a_fault(given):
    assert FileSplitterInput(scanner={"files": given}).faults


@pytest.mark.parametrize("field", ["file_pattern_regular_exp", "ignore_file_pattern_regular_exp"])
@pytest.mark.parametrize(
    ("pattern", "problem"), [("(?!b).*", "invalid perl operator: (?!; use the RE2 syntax"), ("*.txt", "")]
)
def test_a_pattern_that_is_none_or_looks_ahead_is_a_fault_that_says_what_there_is(field, pattern, problem):
    (fault,) = FileSplitterInput(scanner={"files": ["a"], field: pattern}).faults
    assert fault.path == f"scanner.{field}"
    assert fault.message.startswith(f"it is no regular expression: {problem}")


def test_without_a_clock_the_time_is_that_of_the_machine(folder):
    alone = Alone(FileSplitterInput(scanner={"files": [str(folder)]}))
    alone.look()
    assert len(alone.sent()) == 12
    assert isinstance(alone.operator._looks.next, datetime)


def test_what_is_known_is_written_once_a_look(folder, monkeypatch):
    written: list[str] = []
    remember = State.__set__

    def watched(state: State[object], instance: object, value: object) -> None:
        if state.name == "known":
            written.append(str(value))
        remember(state, instance, value)

    monkeypatch.setattr(State, "__set__", watched)
    split = Splitting(folder, blocks_threshold=5)
    for _ in range(4):
        split.window()
    assert [len(known) // CHARACTERS for known in written] == [5, 10, 12]


class HeldBack(DirectoryScanner):
    """A scanner whose second scan ends only after the event is set."""

    release: ClassVar[threading.Event]
    scans: ClassVar[list[int]] = []

    def scan(self, **given: Any) -> Any:
        self.scans.append(1)
        if len(self.scans) == 2:
            assert self.release.wait(within(30)), "the scan may end"
            write(Path(self.files[0]) / "found by the second scan", "five\n", at=50)
        yield from super().scan(**given)


@pytest.mark.slow
def test_a_scan_holds_no_window_up(tmp_path):
    """Windows are committed while a scan hangs; the files that it finds come after it has ended."""
    folder = tmp_path / "input"
    HeldBack.release = threading.Event()
    HeldBack.scans.clear()
    for number in range(4):
        write(folder / f"{number}", "one\n", at=number)
    script = Script(looks=((1,), (2,), (3,)), pause_millis=10)

    def draw(dag: Dag, conf: object) -> None:
        scanner = HeldBack(files=(str(folder),), scan_interval_millis=0)
        split = dag.add_operator("split", FileSplitterInput(scanner=scanner))
        collected(dag, split.blocks_metadata_output, lambda block: block.end)
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
                    HeldBack.release.set()
                if event.window_id in started:
                    loop.stop()

    loop = Desk(tmp_path, draw, until=Until.STOPPED).loop(observers=[observe])
    loop.run()
    assert (arrived(loop), arrived(loop, "other")) == ([4, 4, 4, 4, 5], [1, 2, 3])


def test_files_that_were_found_and_not_sent_are_counted_until_they_are_sent(tmp_path):
    for number in range(3):
        write(tmp_path / f"in/{number}.txt")
    found: list[RunEvent] = []
    draw = chain(
        split=FileSplitterInput(str(tmp_path / "in"), blocks_threshold=1), read=LineReader(), collect=Collect()
    )
    Desk(tmp_path / "app", draw).run(observers=[found.append])
    assert [event.unsent for event in found if isinstance(event, Found)] == [2, 1, 0]


def test_what_fails_in_a_scan_beside_the_loop_ends_the_launch_with_its_code(tmp_path):
    draw = chain(split=FileSplitterInput(str(tmp_path / "nowhere")), collect=Collect())
    with pytest.raises(OperatorFailed, match="nowhere: there is no such file") as raised:
        Desk(tmp_path, draw, until=Until.IDLE, clock=FakeClock()).run()
    assert raised.value.code == "input-unreadable"


@pytest.fixture
def old_folders(tmp_path):
    """Three folders with a file each, which changed last long ago."""
    for name in ("a", "b", "b/c"):
        write(tmp_path / "input" / name / f"{name[-1]}.txt", "one\n")
    for folder in (*sorted((tmp_path / "input").rglob("*/"), reverse=True), tmp_path / "input"):
        os.utime(folder, (100, 100))
    return tmp_path / "input"


def test_only_folders_that_changed_are_listed_again_where_asked(old_folders, monkeypatch):
    split = Splitting(old_folders, scanner={"rescan": "folders"})
    assert split.names() == ["a.txt", "b.txt", "c.txt"]
    listed: list[str] = []
    entries = listing._entries
    monkeypatch.setattr(listing, "_entries", lambda folder: listed.append(Path(folder).name) or entries(folder))
    assert (split.names(), listed) == ([], [])
    write(old_folders / "b" / "c" / "new.txt", "two\n", at=2)
    assert (split.names(), listed) == (["new.txt"], ["c"])
    (old_folders / "a" / "a.txt").unlink()
    assert split.names() == []
    write(old_folders / "a" / "a.txt", "other\n")
    (described,), (block,) = split.window()
    assert (described.file_name, block.version) == ("a.txt", "4")


def test_a_folder_that_may_have_changed_within_a_tick_is_listed_again(old_folders):
    """A file that came in the tick after the listing leaves the folder's time as it was."""
    now = time.time()
    os.utime(old_folders / "a", (now, now))
    split = Splitting(old_folders, scanner={"rescan": "folders"})
    split.window()
    write(old_folders / "a" / "new.txt", "two\n", at=2)
    os.utime(old_folders / "a", (now, now))
    assert split.names() == ["new.txt"]


def test_deleted_files_are_forgotten_though_their_folders_are_not_listed(old_folders, monkeypatch):
    monkeypatch.setattr(splitting, "KEPT_OF_GONE", 0)
    for number in range(9):
        write(old_folders / "a" / f"{number}", at=number)
    os.utime(old_folders / "a", (100, 100))
    split = Splitting(old_folders, scanner={"rescan": "folders"})
    split.window()
    for file in (old_folders / "a").iterdir():
        file.unlink()
    assert split.window() == ([], [])
    assert len(split.alone.operator.known) // CHARACTERS == 2


@pytest.mark.parametrize("restarts", [False, True])
def test_without_a_window_data_manager_each_launch_reads_everything(restarts, folder):
    split = Splitting(folder, window_data_manager="noop", block_size=8)
    assert split.counts() == (12, 24)
    assert split.alone.operator.known == ""
    if restarts:
        split.restart()
    versions = [block.version for block in split.window()[1]]
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
def test_a_folder_in_which_nothing_is_found_is_reported_once(patterns, words, tmp_path, caplog):
    if patterns:
        write(tmp_path / "a.txt")
    split = Splitting(tmp_path, scanner=patterns)
    for _ in range(2):
        split.window()
    assert caplog.messages == [f"scanner.files names {tmp_path}, and {words}"]


def test_a_file_that_is_read_in_order_is_one_block_that_one_reader_reads_on(tmp_path):
    write(tmp_path / "file", "".join(f"{number}\n" for number in range(9)))
    (described,), (block,) = Splitting(tmp_path, block_size=4, sequential_file_read=True).window()
    assert (described.block_count, block.start, block.end, block.last) == (1, 0, 18, True)
    reader = Alone(LineReader(chunk_size=4))
    assert reader.operator.tracker(block, OffsetRange(0, 18)).try_split_at(9) is None
    assert reader.operator.tracker(block, OffsetRange(0, 18)).try_split(0.5) is None
    rest = reader.work(block, split_after=1)
    assert rest.start > 0
    reader.work(rest)
    assert [record.value for record in reader.sent()] == [str(number) for number in range(9)]


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


class InBlocks(MemoryFileSystem):
    """A filesystem that reports a block size, as that of WebHDFS does."""

    protocol = "inblocks"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    @classmethod
    def _strip_protocol(cls, path):
        return str(super()._strip_protocol(path.removeprefix("inblocks://")))

    def info(self, path, **options):
        return {**super().info(path, **options), "blockSize": (2 << 20) if path.endswith("large") else 4096}


def test_a_filesystem_that_reports_blocks_is_asked_for_each_file():
    fsspec.register_implementation("inblocks", InBlocks, clobber=True)
    for name in ("large", "small"):
        fsspec.filesystem("inblocks").pipe(f"/{name}", bytes(5 << 20))
    _, blocks = Splitting("inblocks:///large").window()
    assert stretches(blocks) == [(0, 2 << 20), (2 << 20, 4 << 20), (4 << 20, 5 << 20)]
    assert FixedLengthReader().context_for("inblocks:///large").stride == 2 << 20
    _, blocks = Splitting("inblocks:///small").window()
    assert stretches(blocks) == [(0, 5 << 20)], "blocks of a disk are no blocks of a file"


APEX = "com.datatorrent.lib.io.IdempotentStorageManager"


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("idempotentStorageManager", f"{APEX}$NoopIdempotentStorageManager", "noop"),
        ("idempotentStorageManager", f"{APEX}.FSIdempotentStorageManager", "ledger"),
        ("windowDataManager", "org.apache.apex.malhar.lib.wal.WindowDataManager$NoopWindowDataManager", "noop"),
        ("windowDataManager", "FSWindowDataManager", "ledger"),
        ("idempotent_storage_manager", "noop", "noop"),
    ],
)
def test_keys_may_name_the_window_data_manager_as_apex_does(tmp_path, key, text, value):
    conf = Config.of({f"dt.operator.splitter.prop.{key}": text})
    compiled = compile_application(chain(splitter=FileSplitterInput(tmp_path)), conf)
    assert compiled.plan.by_name["splitter"].properties["window_data_manager"] == value


@pytest.mark.parametrize("key", ["windowDataManager.recoveryPath", "window_data_manager.state_path"])
def test_a_key_for_the_place_of_a_window_data_manager_is_answered_with_where_the_ledger_is(tmp_path, key):
    conf = Config.of({f"dt.operator.splitter.prop.{key}": "/state"})
    with pytest.raises(ApplicationFaults, match=r"leave the key out: .* dt\.attr\.APPLICATION_PATH names the folder"):
        compile_application(chain(splitter=FileSplitterInput(tmp_path)), conf)
