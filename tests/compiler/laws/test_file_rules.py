"""An application is refused if it would find what it writes, and not if a pattern or a folder keeps them apart."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from dagkit import Dag, InputPort, Operator, OutputFiles
from dagkit.compiler import compile_application
from dagkit.engine.program.lower import program_of
from dagkit.errors import ApplicationFaults, Severity
from dagkit_operators import (
    DirectoryScanner,
    FileInfo,
    FileSplitterBase,
    FileSplitterInput,
    Filter,
    Items,
    LineReader,
    Map,
    MatchFiles,
    PartWriter,
    ReadFiles,
    RecordWriter,
    TailFiles,
)
from tests.cases import cases


class Notes(Operator):
    """Writes files whose names are not known in advance."""

    input = InputPort(object)
    files = OutputFiles(lambda notes: notes.folder)
    folder: str

    def process(self, item: object) -> None: ...


def codes(populate_dag: Callable[[Dag, object], None]) -> list[str]:
    try:
        compile_application(populate_dag)
    except ApplicationFaults as faults:
        return list(faults.codes)
    return []


def scanning(scanner: dict[str, Any], writer: Operator) -> list[str]:
    def populate_dag(dag: Dag, conf: object) -> None:
        splitter = dag.add_operator("Splitter", FileSplitterInput(scanner=scanner))
        splitter >> dag.add_operator("Reader", LineReader()) >> dag.add_operator("Writer", writer)

    return codes(populate_dag)


def matching(*patterns: str, out: str) -> list[str]:
    def populate_dag(dag: Dag, conf: object) -> None:
        items = dag.add_operator("Patterns", Items[str](items=patterns))
        match, read = dag.add_operator("Match", MatchFiles()), dag.add_operator("Read", ReadFiles())
        items >> match >> read >> dag.add_operator("Writer", PartWriter(file_path=out))

    return codes(populate_dag)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder to work in, with input and a link that leads to it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "input").mkdir()
    (tmp_path / "link").symlink_to("input")
    return tmp_path


@pytest.mark.parametrize("out", ["input", "input/out", "./x/../input/out", "link/out", "file:input/out"])
@pytest.mark.parametrize("root", ["input", "link", "input/", "."])
def test_output_in_a_scanned_folder_is_refused(root, out, here):
    out = out.replace("file:", f"file://{here}/")
    for writer in (RecordWriter(file_path=out), PartWriter(file_path=out), Notes(folder=out)):
        assert scanning({"files": [root]}, writer) == ["output-read"]


@cases(
    "scanner, out",
    ("elsewhere", {"files": ["input"]}, "output"),
    ("a name that begins alike", {"files": ["input"]}, "input2"),
    ("above the input", {"files": ["input/deep"]}, "input"),
    ("hidden", {"files": ["input"]}, "input/.out"),
    ("deeper than is looked", {"files": ["input"], "recursive": False}, "input/out"),
    ("of other names", {"files": ["input"], "file_pattern_regular_exp": r".*\.log"}, "input"),
    ("ignored", {"files": ["input"], "ignore_file_pattern_regular_exp": r".*/out/.*"}, "input/out"),
    ("in a bucket", {"files": ["s3://bucket/in?region=x"]}, "s3://bucket/out?region=x"),
)
def test_output_that_no_scan_finds_is_none(scanner, out):
    assert scanning(scanner, PartWriter(file_path=out)) == []


def test_output_in_a_scanned_folder_of_a_bucket_is_refused():
    writer = PartWriter(file_path="s3://bucket/in/out?region=x")
    assert scanning({"files": ["s3://bucket/in?region=x"]}, writer) == ["output-read"]


def test_names_are_those_that_the_writer_gives():
    scanner = {"files": ["input"], "file_pattern_regular_exp": r".*\.log"}
    assert scanning(scanner, PartWriter(file_path="input", file_name="{partition}-{number}.log")) == ["output-read"]
    assert scanning({"files": ["input/0"]}, RecordWriter(file_path="input")) == ["output-read"]


@pytest.mark.parametrize(
    ("pattern", "out", "refused"),
    [
        ("input", "input", True),
        ("link", "input/out", True),
        ("input/*", "input", True),
        ("input/*", "input/out", False),
        ("input/**", "input/out", True),
        ("in*/*", "input", True),
        ("input/*.log", "input", False),
        ("input/**/part-*", "input/a/b", True),
        ("input/**", "input/.out", False),
    ],
)
def test_output_that_a_pattern_means_is_refused(pattern, out, refused):
    assert matching("elsewhere", pattern, out=out) == (["output-read"] if refused else [])


def test_patterns_that_are_faulty_are_their_own_fault():
    def populate_dag(dag: Dag, conf: object) -> None:
        items = dag.add_operator("Patterns", Items[str]())
        match, read = dag.add_operator("Match", MatchFiles()), dag.add_operator("Read", ReadFiles())
        items >> match >> read >> dag.add_operator("Writer", PartWriter(file_path="output"))

    assert codes(populate_dag) == ["property-invalid"]


def test_the_report_names_both_and_what_to_do(here):
    def populate_dag(dag: Dag, conf: object) -> None:
        splitter = dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["input"]}))
        (
            splitter
            >> dag.add_operator("Reader", LineReader())
            >> dag.add_operator("Writer", RecordWriter(file_path="link"))
        )

    with pytest.raises(ApplicationFaults) as raised:
        compile_application(populate_dag)
    (told,) = raised.value.diagnostics
    assert told.problem == f"Writer writes to {here}/link, where Splitter would find its files and read them"
    assert told.help == "let Writer write to a folder outside of the input, or exclude its files by a pattern"


def test_each_finder_is_asked_once_for_all_that_is_written():
    """The cost of the rule grows with the operators, and not with the pairs of finders and writers."""
    asked: list[int] = []

    class Finder(FileSplitterInput):
        def would_find(self, paths: Sequence[str], items: Sequence[object]) -> Iterator[str]:
            asked.append(len(paths))
            return super().would_find(paths, items)

    def populate_dag(dag: Dag, conf: object) -> None:
        for lane in range(3):
            splitter = dag.add_operator(f"Splitter{lane}", Finder(scanner=DirectoryScanner(files=("input",))))
            reader = dag.add_operator(f"Reader{lane}", LineReader())
            splitter.blocks_metadata_output >> reader
            reader.messages >> dag.add_operator(f"Writer{lane}", RecordWriter(file_path=f"out{lane}"))

    assert codes(populate_dag) == []
    assert asked == [3, 3, 3]


@pytest.mark.parametrize(("ignored", "refused"), [(None, True), (".*[.]json", False)])
def test_receipts_in_a_scanned_folder_are_refused(ignored, refused):
    def populate_dag(dag: Dag, conf: object) -> None:
        scanner = {"files": ["."], "ignore_file_pattern_regular_exp": ignored}
        splitter = dag.add_operator("Splitter", FileSplitterInput(scanner=scanner, receipts="receipts"))
        splitter >> dag.add_operator("Reader", LineReader())

    assert codes(populate_dag) == (["output-read"] if refused else [])


@pytest.mark.parametrize(("pattern", "refused"), [("**/*.json", True), ("input/*", False)])
def test_receipts_that_match_a_pattern_are_refused(pattern, refused):
    def populate_dag(dag: Dag, conf: object) -> None:
        match = dag.add_operator("Match", MatchFiles(receipts="receipts"))
        dag.add_operator("Patterns", Items[str](items=[pattern])) >> match >> dag.add_operator("Read", ReadFiles())

    assert codes(populate_dag) == (["output-read"] if refused else [])


def followed(*names: str, grown: str | None = None) -> tuple[list[str], list[str], bool]:
    """The codes of the faults and of the advice, and whether Match learns that its files are followed.

    `names` are operators behind Match, all on its one stream; `filter` is one in front of `tail`.
    """

    def populate_dag(dag: Dag, conf: object) -> None:
        match = dag.add_operator("Match", MatchFiles(continuously=True, grown=grown))
        dag.add_operator("Patterns", Items[str](items=["in/*"])) >> match
        made = {name: made_of() for name, made_of in MADE.items() if name in names}
        ends = [dag.add_operator(name, made[name]) for name in names]
        files = match.files
        if names[0] in ("filter", "map"):
            first, *ends = ends
            files >> first
            files = first.output
        dag.add_stream("files", files, *[end.files if hasattr(end, "files") else end.input for end in ends])

    try:
        compilation = compile_application(populate_dag)
    except ApplicationFaults as faults:
        return list(faults.codes), [], False
    advice = [each.code for each in compilation.notes if each.severity is Severity.ADVISORY]
    return [], advice, program_of(compilation).context_of("Match", 0, 1).is_followed


class Follower(Operator):
    """An author's own operator that follows files."""

    follows_files = True
    input = InputPort(FileInfo)

    def process(self, item: FileInfo) -> None: ...


MADE: dict[str, Callable[[], Operator]] = {
    "tail": TailFiles,
    "read": ReadFiles,
    "split": FileSplitterBase,
    "own": Follower,
    "filter": lambda: Filter[FileInfo](predicate=lambda file: file.length > 0),
    "map": lambda: Map(function=lambda file: file),
}


@pytest.mark.parametrize(
    ("names", "grown", "expected"),
    [
        (["tail"], None, ([], [], True)),
        (["tail"], "skip", ([], [], True)),
        (["tail"], "read", (["file-doubled"], [], False)),
        (["own"], None, ([], [], True)),
        (["filter", "tail"], None, ([], [], True)),
        (["filter", "tail"], "read", (["file-doubled"], [], False)),
        (["map", "tail"], "read", (["file-doubled"], [], False)),
        (["read"], None, ([], [], False)),
        (["read"], "read", ([], [], False)),
        (["read"], "skip", ([], ["guarantee-waived"], False)),
        (["split"], "skip", ([], ["guarantee-waived"], False)),
        (["tail", "read"], None, ([], ["guarantee-waived"], True)),
    ],
)
def test_a_file_that_is_followed_is_sent_once(names, grown, expected):
    assert followed(*names, grown=grown) == expected


def test_files_that_another_operator_finds_are_not_those_of_the_first():
    def populate_dag(dag: Dag, conf: object) -> None:
        lists = dag.add_operator("Patterns", Items[str](items=["lists/*"])) >> dag.add_operator("Lists", MatchFiles())
        match = lists >> dag.add_operator("Read", ReadFiles()) >> dag.add_operator("Match", MatchFiles())
        match >> dag.add_operator("Tail", TailFiles())

    program = program_of(compile_application(populate_dag))
    assert program.followed == {"Match"}
