"""The cases of Apex's FileSplitterInputTest and FileSplitterBaseTest, under their names.

Apex's windows are looks here: each look of the splitter is a window.
"""

from pathlib import Path

import pytest

from dagkit import Context, Dag, Operator, State
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.program.points import Point
from dagkit.errors import InputUnreadable
from dagkit.ledger.audit.verify import verify
from dagkit.ranges import OffsetRange
from dagkit.testing import Alone, FakeClock
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import (
    AbstractFileSplitter,
    FileInfo,
    FileMetadata,
    FileSplitterBase,
    FileSplitterInput,
    Items,
    LineReader,
    Map,
    RecordWriter,
)
from dagkit_operators.filesystem.access import Found
from dagkit_operators.finding import splitting
from tests.cases import cases
from tests.engine.cast import Collect, Desk, arrived, chain
from tests.operators.finding.cast import Splitting, collected, stretches, write
from tests.operators.ways import placed


def add(folder: Path, number: int, content: str = "") -> Path:
    return write(folder / f"file{number:02}.txt", content or f"f{number:02}l0\nf{number:02}l1", at=number)


@pytest.fixture
def files(tmp_path):
    """Twelve files of eleven bytes, one a second."""
    return [add(tmp_path / "data", number) for number in range(12)]


@pytest.fixture
def data(files):
    return files[0].parent


class Case(Splitting):
    """A splitter as the tests of Apex set it up."""

    def __init__(self, *inputs, scanner=None, **properties):
        settings = {"directories": True, "file_pattern_regular_exp": r".*[.]txt", **(scanner or {})}
        super().__init__(*inputs, scanner=settings, **{"blocks_threshold": 100, **properties})


def test_file_metadata(data, files):
    case, now = Case(data), int(FakeClock().now().timestamp() * 1000)
    described, blocks = case.window()
    assert described == [
        FileMetadata(
            str(path), 11, 1000 * n, 1, relative_path=f"data/{path.name}", discovered_millis=now, first_block_id=n
        )
        for n, path in enumerate(files)
    ]
    assert [(info.file_name, info.block_ids) for info in described[1:2]] == [("file01.txt", range(1, 2))]
    assert [block.path for block in blocks] == [str(path) for path in files]
    assert case.counts() == (0, 0)


def test_idempotency(data, tmp_path):
    """A window that runs again takes what the ledger holds: the splitter is not asked, and files may have changed."""

    places = Map(lambda block: [block.block_id, block.end])
    draw = chain(splitter=FileSplitterInput(data, block_size=2), places=places, collect=Collect())
    desk = Desk(tmp_path, draw, clock=FakeClock())
    assert desk.crash(CrashAfter(Point.RUNNING, 1)) == 1
    for path in data.iterdir():
        path.write_text("changed")
    assert arrived(desk.run(windows=1)) == [
        [6 * file + number, min(2 * number + 2, 11)] for file in range(12) for number in range(6)
    ]


def test_time_scan(data):
    case = Case(data)
    case.alone.look()
    assert case.alone.operator.looks_again_in_millis() == 5000
    add(data, 13)
    case.clock.advance(millis=4999)
    case.alone.look()
    assert (len(case.alone.sent()), case.alone.operator.looks_again_in_millis()) == (12, 1)
    case.clock.advance(millis=1)
    assert case.alone.operator.looks_again_in_millis() == 0
    assert case.counts() == (13, 1)


def test_trigger(data):
    """Setting `trigger` sets the operator up again with its state, as `dagkit set` does, and it scans at once."""
    case = Case(data)
    case.alone.look()
    add(data, 13)
    case.alone.look()
    assert len(case.alone.sent()) == 12
    state, scanner = case.alone.state, case.alone.operator.scanner.model_dump() | {"trigger": True}
    case.alone = Alone(FileSplitterInput(scanner=scanner), state=state, now=case.clock.now, window_id=3)
    assert case.names() == ["file13.txt"]


@pytest.mark.parametrize(
    ("small_bytes", "counts"),
    [(1000, [2, 2, 4, 4]), (25, [2, 2, 3, 3, 2]), (0, [2] * 6)],
    ids=["small", "some", "large"],
)
def test_a_window_has_as_many_small_blocks_as_there_were_before(data, monkeypatch, small_bytes, counts):
    monkeypatch.setattr(splitting, "BLOCKS_THRESHOLD", 2)
    monkeypatch.setattr(splitting, "MOST_SMALL_BLOCKS", 6)
    monkeypatch.setattr(splitting, "SMALL_BYTES", small_bytes)
    case = Case(data, blocks_threshold=None)
    assert [case.counts()[1] for _ in counts] == counts


def test_files_processed_are_those_that_were_begun_in_a_window(data):
    case = Case(data, block_size=2, blocks_threshold=10)
    for begun in (2, 2, 1):
        with case.alone.window():
            assert (case.counts(), case.alone.metrics["files_processed"]) == ((begun, 10), begun)


@pytest.mark.parametrize("threshold", [1, 2, 5, 7, 10, 100])
def test_idempotency_with_blocks_threshold(threshold, data):
    """A restart after any window changes nothing: the state is all that is needed, in the middle of a file too."""
    _, expected = Case(data, block_size=2).window()
    assert [block.block_id for block in expected] == list(range(72))
    for stop in range(72 // threshold + 2):
        case, described, blocks = Case(data, block_size=2, blocks_threshold=threshold), [], []
        for number in range(72 // threshold + 2):
            if number == stop:
                case.restart()
            files, more = case.window()
            described += [file.first_block_id for file in files]
            blocks += more
        assert (described, blocks) == (list(range(0, 72, 6)), expected), stop


def test_recursive(data):
    case = Case(data)
    case.window()
    add(data / "child", 13)
    described, blocks = case.window()
    assert [(file.relative_path, file.is_directory, file.block_count) for file in described] == [
        ("data/child/file13.txt", False, 1),
        ("data/child", True, 0),
    ]
    assert len(blocks) == 1


@cases(
    "content, at",
    ("it grew", "f03l0\nf03l1more", 100),
    ("its time was set back", "F03L0\nF03L1", -5),
    ("it grew within an instant", "f03l0\nf03l1more", 3),
)
@pytest.mark.parametrize("restarts", [False, True])
def test_file_modification_test(content, at, restarts, data, files):
    case = Case(data, block_size=8)
    case.window()
    write(files[3], content, at)
    if restarts:
        case.restart()
    (described,), blocks = case.window()
    assert (described.path, described.first_block_id) == (str(files[3]), 24)
    assert stretches(blocks) == [(0, 8), (8, len(content))]
    assert case.counts() == (0, 0)


def test_multiple_nested_input(data):
    """Apex finds a file once for each input that holds it, 15 here; a file that several inputs hold is read once."""
    add(data / "sub", 13)
    described = Case(data, data / "sub", (data / "sub").as_uri()).names()
    assert sorted(described) == [*(f"file{number:02}.txt" for number in range(12)), "file13.txt", "sub"]


def test_empty_dir_copy(tmp_path):
    (tmp_path / "empty").mkdir()
    case = Case(tmp_path / "empty", scanner={"file_pattern_regular_exp": None})
    (described,), blocks = case.window()
    assert (described.file_name, described.is_directory, described.block_count, blocks) == ("empty", True, 0, [])
    assert case.counts() == (0, 0)


def test_directories_are_described_once_and_only_where_asked(data):
    add(data / "child", 13)
    case = Case(data)
    assert case.counts() == (14, 13)
    add(data / "child", 14)
    assert case.counts() == (1, 1)
    assert Case(data, scanner={"directories": False}).counts() == (14, 14)


# ---- FileSplitterBaseTest: the files arrive on the input port


def arriving(paths) -> dict[str, Operator]:
    """Files that arrive: a function without types makes them of their paths."""
    return {"Files": Items([str(path) for path in paths]), "Infos": Map(lambda path: FileInfo(str(path)))}


def based(home: Path, paths, splitter=None, **properties) -> Desk:
    """An application in which files arrive at a splitter, and that collects what this sends."""

    def draw(dag: Dag, _: object) -> None:
        split = placed(dag, **arriving(paths), Splitter=splitter or FileSplitterBase(**properties))["Splitter"]
        collected(dag, split.files_metadata_output, lambda file: [file.path, file.length, file.block_count], "files")
        collected(dag, split.blocks_metadata_output, lambda block: [block.block_id, block.path, block.end], "blocks")

    return Desk(home, draw, clock=FakeClock())


def test_base_file_metadata(tmp_path, files):
    loop = based(tmp_path, files).run()
    assert arrived(loop, "files") == [[str(path), 11, 1] for path in files]
    assert arrived(loop, "blocks") == [[number, str(path), 11] for number, path in enumerate(files)]


def test_base_blocks_threshold(tmp_path, files):
    """The files wait in the queue: windows follow each other without anything arriving."""
    desk = based(tmp_path, files, block_size=2, blocks_threshold=10)
    counts = []
    for window in range(1, 10):
        loop = desk.run(windows=1)
        if loop.checkpoint.window == window:
            counts.append((len(arrived(loop, "files")), len(arrived(loop, "blocks"))))
    assert [blocks for _, blocks in counts][:8] == [10, 20, 30, 40, 50, 60, 70, 72]
    assert (counts[-1], desk.faults()) == ((12, 72), [])


@pytest.mark.slow
@pytest.mark.parametrize("point", list(Point))
def test_base_blocks_are_the_same_wherever_a_launch_crashes(point, tmp_path, files):
    desk = based(tmp_path, files, block_size=2, blocks_threshold=10)
    desk.crash(*(CrashAfter(point, window) for window in (1, 2, 5)))
    assert [block_id for block_id, *_ in arrived(desk.run(), "blocks")] == list(range(72))
    assert desk.faults() == []


def test_base_lines_of_files_that_arrive_are_read_and_proven(tmp_path, files):
    """Of a path that arrives twice, both readings are recorded."""
    paths, write = [*files, files[3]], RecordWriter(tmp_path / "out")
    draw = chain(**arriving(paths), splitter=FileSplitterBase(block_size=4), reader=LineReader(), write=write)
    desk = Desk(tmp_path, draw, clock=FakeClock())
    desk.run()
    lines = b"".join(desk.outputs().values()).decode().splitlines()
    assert sorted(lines) == sorted(line for path in paths for line in path.read_text().split("\n"))
    verdict = verify(desk.ledger())
    assert (verdict.is_complete, len(verdict.proven) > 0) == (True, True)


def test_base_a_file_that_is_not_there_ends_the_launch_and_is_named(tmp_path):
    with pytest.raises(
        OperatorFailed, match=r"nowhere\.txt: there is no such file.*\n  help: make it, or send the path"
    ):
        based(tmp_path, [tmp_path / "nowhere.txt"]).run()


def test_base_empty_files_and_directories_are_described_without_blocks(tmp_path):
    places = [write(tmp_path / "empty", ""), tmp_path / "data"]
    places[1].mkdir()
    assert arrived(based(tmp_path, places).run(), "files") == [[str(place), 0, 0] for place in places]


@pytest.mark.parametrize(
    ("file", "path", "place"),
    [
        (None, "/data/a", "/data/a"),
        ("/data", "/data/a", "/data/a"),
        ("memory://x/y?a=b", "/data/a", "memory://x/data/a?a=b"),
        ("memory://x", "s3://bucket/a", "s3://bucket/a"),
    ],
)
def test_base_paths_without_a_scheme_are_on_the_filesystem_of_file(file, path, place):
    asked: list[str] = []

    class Asked(FileSplitterBase):
        def get_file_status(self, path: str) -> Found:
            asked.append(path)
            return Found(path, 3, 0)

    assert Asked(file=file).initial_restriction(FileInfo(path)).stop == 4
    assert asked == [place]


class Beside(FileSplitterBase):
    """Divides the file that each marker names, and leaves other items out."""

    kind = "test.beside/1"

    def get_file_info(self) -> FileInfo | None:
        arrived = super().get_file_info()
        assert arrived is not None, "an item arrived"
        data, is_marker, _ = arrived.path.partition(".done")
        return FileInfo(data) if is_marker else None


def test_base_authors_say_which_file_is_divided_for_an_item(tmp_path, files):
    desk = based(tmp_path, [f"{files[2]}.done", files[3], f"{files[5]}.done"], splitter=Beside(block_size=8))
    loop = desk.run()
    assert arrived(loop, "files") == [[str(files[2]), 11, 2], [str(files[5]), 11, 2]]
    assert [block[1:] for block in arrived(loop, "blocks")] == [[str(files[n]), end] for n in (2, 5) for end in (8, 11)]
    assert desk.faults() == []


def test_base_a_relative_path_starts_where_the_application_was_launched(tmp_path, files):
    splitter = FileSplitterBase()
    splitter.setup(Context("application", "splitter", home=str(tmp_path)))
    assert splitter.initial_restriction(FileInfo("data/file00.txt")).stop == 12


def test_base_a_file_may_have_an_identity_of_the_author(tmp_path):
    """This one looks like the beginning of those of dagkit, in which the length of the file comes second."""
    alone = Alone(FileSplitterBase())
    alone.work(FileInfo(str(write(tmp_path / "a.txt", "four")), identity="order-4"))
    assert stretches(alone.sent()) == [(0, 4)]


def test_base_work_that_has_not_begun_is_not_cut(tmp_path):
    """The driver cuts waiting work that takes longer than a window; the second part would not know of the first."""
    file, splitter = FileInfo(str(write(tmp_path / "a.txt", "x" * 100))), FileSplitterBase(block_size=30)
    waiting = splitter.tracker(file, OffsetRange(0, 101))
    assert (waiting.try_split(0.5), waiting.try_split_at(50)) == (None, None)
    alone = Alone(splitter)
    alone.work(file)
    assert stretches(alone.sent()) == [(0, 30), (30, 60), (60, 90), (90, 100)]


# ---- what authors override


class Listed(AbstractFileSplitter):
    """Splits files that a list names, behind their headers of three bytes."""

    kind = "test.listed/1"
    paths: tuple[str, ...]
    at = State(0)

    def get_file_info(self) -> FileInfo | None:
        if self.at == len(self.paths):
            return None
        self.at += 1
        return FileInfo(self.paths[self.at - 1])

    def get_default_block_size(self, path: str) -> int:
        return 4 if path.endswith("0.txt") else 100

    def get_file_status(self, path: str) -> Found | None:
        found = super().get_file_status(path)
        return None if found is None else found._replace(modified_millis=7)

    def get_data_offset(self, status: Found) -> int:
        return 3


def test_authors_say_which_files_there_are_how_long_blocks_are_and_where_data_begins(tmp_path, files, monkeypatch):
    """A relative path starts where the application was launched: the ledger and the workers need whole paths."""
    monkeypatch.chdir(tmp_path)
    listed = Alone(Listed(paths=("data/file00.txt", str(files[1]))), now=FakeClock().now)
    listed.look()
    assert [
        (file.path, file.block_count, file.data_offset, file.modified_millis)
        for file in listed.sent("files_metadata_output")
    ] == [(str(files[0]), 3, 3, 7), (str(files[1]), 1, 3, 7)]
    assert [(block.path, block.start, block.end, block.previous_block_id, block.last) for block in listed.sent()] == [
        (str(files[0]), 3, 4, None, False),
        (str(files[0]), 4, 8, 0, False),
        (str(files[0]), 8, 11, 1, True),
        (str(files[1]), 3, 11, None, True),
    ]


@pytest.mark.parametrize("path", ["a\0b", "", "x" * 300])
def test_a_path_that_arrives_and_can_be_no_file_is_missing(path):
    splitter = Alone(FileSplitterBase(on_missing="send"))
    splitter.work(FileInfo(path))
    assert splitter.sent("missing") == [FileInfo(path)]
    with pytest.raises(InputUnreadable, match="there is no such file or directory"):
        Alone(FileSplitterBase()).work(FileInfo(path))


def test_a_folder_that_arrives_is_reported(tmp_path, caplog):
    Alone(FileSplitterBase()).work(FileInfo(str(tmp_path)))
    assert f"{tmp_path} is a folder, and nothing of it is read: find the files in it by MatchFiles" in caplog.text
