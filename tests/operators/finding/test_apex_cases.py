"""The cases of Apex's FileSplitterInputTest, FileSplitterBaseTest and FileSplitterTest, under their names.

Apex's windows are looks here: each look of the splitter is a window.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dagkit import Context, Dag, InputOperator, InputPort, OutputPort, RowOperator, Shutdown, State, Until
from dagkit.engine.failures import InputRefused
from dagkit.engine.points import Point
from dagkit.ledger.audit.verify import verify
from dagkit.testing import Alone, FakeClock
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import (
    AbstractFileSplitter,
    Block,
    FileInfo,
    FileMetadata,
    FileSplitterBase,
    FileSplitterInput,
    Items,
    LineReader,
    Map,
    Record,
)
from dagkit_operators.filesystem.access import Found
from dagkit_operators.finding import splitting
from tests.engine.cast import Collect, Desk, arrived

INTERVAL = 100
THRESHOLD = 100


def add(folder: Path, number: int, content: str = "") -> Path:
    path = folder / f"file{number}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content or f"f{number:02}l0\nf{number:02}l1")
    os.utime(path, (number, number))
    return path


@pytest.fixture
def files(tmp_path):
    """Twelve files of eleven bytes."""
    return [add(tmp_path / "data", number) for number in range(12)]


@pytest.fixture
def data(files):
    return files[0].parent


def collected(dag: Dag, splitter: FileSplitterInput | FileSplitterBase) -> None:
    """What a splitter sends is collected by `files` and `blocks`."""
    file = dag.add_operator(
        "file", Map(lambda file: {"path": file.path, "length": file.length, "blocks": file.block_count})
    )
    block = dag.add_operator("block", Map(lambda block: {"id": block.block_id, "path": block.path, "end": block.end}))
    dag.add_stream("files", splitter.files_metadata_output, file.input)
    dag.add_stream("blocks", splitter.blocks_metadata_output, block.input)
    file >> dag.add_operator("files", Collect())
    block >> dag.add_operator("blocks", Collect())


class Case:
    """A splitter as the tests of Apex set it up."""

    def __init__(self, *inputs: Path, scanner: dict[str, object] | None = None, **properties: object) -> None:
        self.clock = FakeClock()
        settings = {"files": [str(path) for path in inputs], "scan_interval_millis": INTERVAL, "directories": True}
        settings |= {"file_pattern_regular_exp": r".*[.]txt"} | (scanner or {})
        splitter = FileSplitterInput(scanner=settings, **{"blocks_threshold": THRESHOLD, **properties})
        self.splitter = Alone(splitter, now=self.clock.now)

    def window(self) -> tuple[list[FileMetadata], list[Block]]:
        self.splitter.look()
        self.clock.advance(millis=INTERVAL)
        return self.splitter.sent("files_metadata_output"), self.splitter.sent()

    def counts(self) -> tuple[int, int]:
        files, blocks = self.window()
        return len(files), len(blocks)

    def recover(self) -> None:
        """In another process: only the saved state is there."""
        self.splitter = self.splitter.restarted()


def test_file_metadata(data, files):
    described, _ = Case(data).window()
    assert [file.path for file in described] == [str(path) for path in files]
    assert [file.file_name for file in described] == [path.name for path in files]
    assert [file.relative_path for file in described] == [f"data/{path.name}" for path in files]
    assert [list(file.block_ids) for file in described] == [[number] for number in range(12)]
    assert {(file.length, file.block_count, file.is_directory, file.data_offset) for file in described} == {
        (11, 1, False, 0)
    }
    assert {file.discovered_millis for file in described} == {int(FakeClock().now().timestamp() * 1000)}


def test_scanner_filter_for_duplicates(files):
    case = Case(files[0])
    assert [len(case.window()[0]) for _ in range(2)] == [1, 0]


def test_block_metadata_no_split(data, files):
    _, blocks = Case(data).window()
    assert [block.path for block in blocks] == [str(path) for path in files]


def test_block_metadata_with_split(data):
    assert Case(data, block_size=2).counts() == (12, 72)


def test_idempotency(data, tmp_path):
    """A window that runs again takes what the ledger holds: the splitter is not asked, and files may have changed."""

    def draw(dag: Dag, conf: object) -> None:
        splitter = FileSplitterInput(scanner={"files": [str(data)]}, block_size=2)
        collected(dag, dag.add_operator("splitter", splitter))

    desk = Desk(tmp_path, draw, clock=FakeClock())
    assert desk.crash(CrashAfter(Point.RUNNING, 1)) == 1
    for path in data.iterdir():
        path.write_text("changed")
    blocks = arrived(desk.run(windows=1), "blocks")
    assert [(block["id"], block["end"]) for block in blocks] == [
        (6 * file + number, min(2 * number + 2, 11)) for file in range(12) for number in range(6)
    ]


def test_time_scan(data):
    case = Case(data)
    assert case.counts() == (12, 12)
    add(data, 13)
    assert case.counts() == (1, 1)


def test_trigger(data):
    """Setting `trigger` sets the operator up again with its state, as `dagkit set` does, and it scans at once."""
    case = Case(data, scanner={"scan_interval_millis": 60_000})
    assert case.counts() == (12, 12)
    add(data, 13)
    assert case.counts() == (0, 0)
    state, scanner = case.splitter.state, case.splitter.operator.scanner.model_dump() | {"trigger": True}
    triggered = Alone(FileSplitterInput(scanner=scanner), state=state, now=case.clock.now, window_id=3)
    triggered.look()
    assert (len(triggered.sent("files_metadata_output")), len(triggered.sent())) == (1, 1)


def test_blocks_threshold(data):
    case = Case(data, block_size=2, blocks_threshold=10)
    counts = [case.counts() for _ in range(8)]
    assert [blocks for _, blocks in counts] == [10] * 7 + [2]
    assert sum(files for files, _ in counts) == 12


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
        with case.splitter.window():
            files, _ = case.window()
            assert (len(files), case.splitter.metrics["files_processed"]) == (begun, begun)


@pytest.mark.parametrize("recovered", range(8))
def test_idempotency_with_blocks_threshold(recovered, data):
    case = Case(data, block_size=2, blocks_threshold=10)
    before = [case.counts() for _ in range(recovered)]
    case.recover()
    counts = before + [case.counts() for _ in range(8 - recovered)]
    assert tuple(map(sum, zip(*counts, strict=True))) == (12, 72)


def test_first_window_after_recovery(data):
    case = Case(data, block_size=2, blocks_threshold=10)
    for _ in range(8):
        case.window()
    case.recover()
    add(data, 13, "f13l0\nf13l1\n")
    assert case.counts() == (1, 6)


def test_recovery_of_partial_file(data, files):
    case = Case(data, block_size=2, blocks_threshold=2)
    (first,), blocks = case.window()
    assert (first.path, len(blocks)) == (str(files[0]), 2)
    case.recover()
    assert [case.counts() for _ in range(2)] == [(0, 2), (0, 2)]
    (second,), blocks = case.window()
    assert (second.path, {block.path for block in blocks}) == (str(files[1]), {str(files[1])})


def test_recursive(data):
    case = Case(data)
    case.window()
    add(data / "child", 13)
    described, blocks = case.window()
    assert [(file.file_name, file.is_directory, file.block_count) for file in described] == [
        ("file13.txt", False, 1),
        ("child", True, 0),
    ]
    assert [file.relative_path for file in described] == ["data/child/file13.txt", "data/child"]
    assert len(blocks) == 1


def test_single_file(files):
    (described,), _ = Case(files[1]).window()
    assert (described.path, described.relative_path) == (str(files[1].absolute()), "file1.txt")


def test_recovery_of_block_metadata_iterator(data):
    """The rest of a file follows in a process that has seen nothing of its beginning."""
    case = Case(data, block_size=2, blocks_threshold=2)
    case.window()
    case.recover()
    files, blocks = case.window()
    assert (files, [(block.start, block.end, block.previous_block_id) for block in blocks]) == (
        [],
        [(4, 6, 1), (6, 8, 2)],
    )


def test_file_modification_test(data, files):
    case = Case(data)
    case.window()
    files[11].write_text(files[11].read_text() + "more")
    (described,), blocks = case.window()
    assert (described.path, [block.end for block in blocks]) == (str(files[11]), [15])
    assert case.counts() == (0, 0)


def test_multiple_nested_input(data):
    """Apex finds a file once for each input that holds it, 15 here; a file that two inputs hold is read once."""
    add(data / "sub", 13)
    described, _ = Case(data, data / "sub").window()
    assert sorted(file.file_name for file in described) == sorted(
        [f"file{number}.txt" for number in range(12)] + ["file13.txt", "sub"]
    )


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


class Messages(InputOperator):
    """Sends the path in each message, as the JMS input of the seed's example does."""

    kind = "test.messages/1"
    output = OutputPort(FileInfo)
    texts: tuple[str, ...]
    at = State(0)

    def emit_tuples(self) -> None:
        if self.at == len(self.texts):
            raise Shutdown
        for text in self.texts[self.at :]:
            self.output.emit(FileInfo(text))
        self.at = len(self.texts)


class Text(RowOperator):
    """The text of each record."""

    kind = "test.text/1"
    input = InputPort(Record[str])
    output = OutputPort(str)

    def process(self, item: Record[str]) -> Iterator[str]:
        yield item.value


def based(home: Path, paths: list[Path], conf: dict[str, object] | None = None, **properties: object) -> Desk:
    """An application in which files arrive at a splitter."""

    def draw(dag: Dag, conf: object) -> None:
        files = dag.add_operator("Files", Messages(texts=tuple(map(str, paths))))
        splitter = dag.add_operator("Splitter", FileSplitterBase(**properties))
        dag.add_stream("file-info", files.output, splitter.input)
        collected(dag, splitter)

    return Desk(home, draw, until=Until.ONCE, clock=FakeClock(), conf=conf or {})


def test_base_file_metadata(tmp_path, files):
    loop = based(tmp_path, files).run()
    assert arrived(loop, "files") == [{"path": str(path), "length": 11, "blocks": 1} for path in files]


def test_base_block_metadata_no_split(tmp_path, files):
    blocks = arrived(based(tmp_path, files).run(), "blocks")
    assert blocks == [{"id": number, "path": str(path), "end": 11} for number, path in enumerate(files)]


def test_base_block_metadata_with_split(tmp_path, files):
    desk = based(tmp_path, files, block_size=2)
    blocks = arrived(desk.run(), "blocks")
    assert ([block["id"] for block in blocks], desk.faults()) == (list(range(72)), [])


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


def test_base_splitter_in_app(tmp_path, files):
    desk = based(tmp_path, files, {"dt.operator.Splitter.prop.blocksThreshold": 4})
    loop = desk.run()
    assert (len(arrived(loop, "files")), loop.checkpoint.window) == (12, 3)


@pytest.mark.slow
@pytest.mark.parametrize("point", list(Point))
def test_base_blocks_are_the_same_wherever_a_launch_crashes(point, tmp_path, files):
    desk = based(tmp_path, files, block_size=2, blocks_threshold=10)
    desk.crash(*(CrashAfter(point, window) for window in (1, 2, 5)))
    assert [block["id"] for block in arrived(desk.run(), "blocks")] == list(range(72))
    assert desk.faults() == []


def test_base_lines_of_files_that_arrive_are_read_and_proven(tmp_path, files):
    """Of a path that arrives twice, both readings are recorded."""
    paths = [*files, files[3]]

    def draw(dag: Dag, conf: object) -> None:
        items = dag.add_operator("files", Messages(texts=tuple(map(str, paths))))
        splitter = dag.add_operator("splitter", FileSplitterBase(block_size=4))
        reader, collect = dag.add_operator("reader", LineReader()), dag.add_operator("collect", Collect())
        dag.add_stream("file-info", items.output, splitter.input)
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        reader.messages >> dag.add_operator("text", Text()) >> collect

    desk = Desk(tmp_path, draw, clock=FakeClock())
    lines = arrived(desk.run())
    assert sorted(lines) == sorted(line for path in paths for line in path.read_text().split("\n"))
    verdict = verify(desk.ledger())
    assert verdict.is_complete
    assert verdict.proven


def test_base_a_file_that_is_not_there_ends_the_launch_and_is_named(tmp_path):
    with pytest.raises(InputRefused, match=r"nowhere\.txt: there is no such file.*\n  help: make it, or send the path"):
        based(tmp_path, [tmp_path / "nowhere.txt"]).run()


def test_base_empty_files_and_directories_are_described_without_blocks(tmp_path):
    (tmp_path / "data").mkdir()
    empty = tmp_path / "empty"
    empty.touch()
    loop = based(tmp_path, [empty, tmp_path / "data"]).run()
    assert [(file["blocks"], file["length"]) for file in arrived(loop, "files")] == [(0, 0), (0, 0)]


def test_base_the_paths_may_come_from_a_function_without_types(tmp_path, files):
    def populate_dag(dag: Dag, conf: object) -> None:
        paths = dag.add_operator("paths", Items(items=[str(path) for path in files]))
        infos = paths >> dag.add_operator("infos", Map(lambda path: FileInfo(str(path))))
        splitter: FileSplitterBase = infos >> dag.add_operator("splitter", FileSplitterBase())
        collected(dag, splitter)

    loop = Desk(tmp_path / "desk", populate_dag, until=Until.ONCE).run()
    assert [(file["path"], file["length"]) for file in arrived(loop, "files")] == [(str(path), 11) for path in files]


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
    def draw(dag: Dag, conf: object) -> None:
        paths = (f"{files[2]}.done", str(files[3]), f"{files[5]}.done")
        messages = dag.add_operator("Files", Messages(texts=paths))
        splitter = dag.add_operator("Splitter", Beside(block_size=8))
        dag.add_stream("file-info", messages.output, splitter.input)
        collected(dag, splitter)

    desk = Desk(tmp_path, draw, until=Until.ONCE, clock=FakeClock())
    loop = desk.run()
    described = [(file["path"], file["length"], file["blocks"]) for file in arrived(loop, "files")]
    assert described == [(str(files[2]), 11, 2), (str(files[5]), 11, 2)]
    assert [(block["path"], block["end"]) for block in arrived(loop, "blocks")] == [
        (str(files[number]), end) for number in (2, 5) for end in (8, 11)
    ]
    assert desk.faults() == []


def test_base_a_relative_path_starts_where_the_application_was_launched(tmp_path, files):
    splitter = FileSplitterBase()
    splitter.setup(Context("application", "splitter", home=str(tmp_path)))
    assert splitter.initial_restriction(FileInfo("data/file0.txt")).stop == 12


# ---- FileSplitterTest: lines that are not padded


def test_lines_of_two_lengths(tmp_path):
    for number in range(12):
        add(tmp_path / "data", number, f"f{number}l0\nf{number}l1")
    assert Case(tmp_path / "data", block_size=2).counts() == (12, 62)
    case = Case(tmp_path / "data", block_size=2, blocks_threshold=10)
    counts = []
    for _ in range(7):  # testBlocksThreshold, and testIdempotencyWithBlocksThreshold: each in another process
        counts.append(case.counts())
        case.recover()
    assert [blocks for _, blocks in counts] == [10] * 6 + [2]
    assert sum(files for files, _ in counts) == 12


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


def test_authors_say_which_files_there_are_how_long_blocks_are_and_where_data_begins(files):
    listed = Alone(Listed(paths=tuple(map(str, files[:2]))), now=FakeClock().now)
    listed.look()
    described, blocks = listed.sent("files_metadata_output"), listed.sent()
    assert [(file.block_count, file.data_offset, file.modified_millis) for file in described] == [(3, 3, 7), (1, 3, 7)]
    assert [(block.start, block.end, block.previous_block_id, block.last) for block in blocks] == [
        (3, 4, None, False),
        (4, 8, 0, False),
        (8, 11, 1, True),
        (3, 11, None, True),
    ]


def test_a_relative_path_starts_where_the_application_was_launched(tmp_path, files, monkeypatch):
    """The ledger and the workers need whole paths, wherever an author's list of files comes from."""
    monkeypatch.chdir(tmp_path)
    listed = Alone(Listed(paths=("data/file0.txt",)), now=FakeClock().now)
    listed.look()
    (described,), blocks = listed.sent("files_metadata_output"), listed.sent()
    assert {described.path, *(block.path for block in blocks)} == {str(files[0])}
