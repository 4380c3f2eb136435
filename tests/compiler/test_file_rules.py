"""An application is refused if it would find what it writes, and not if a pattern or a folder keeps them apart."""

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
from tests.compiler.cast import codes, faults
from tests.compiler.sketches import in_a_row


class Notes(Operator):
    input = InputPort(object)
    files = OutputFiles(lambda notes: notes.folder)
    folder: str

    def process(self, item: object) -> None: ...


def scanning(scanner, *others, **settings):
    return in_a_row(FileSplitterInput(scanner=scanner, **settings), LineReader(), *others)


def matching(*patterns, out=None, **settings):
    writers = () if out is None else (PartWriter(file_path=out),)
    return in_a_row(Items[str](items=patterns), MatchFiles(**settings), ReadFiles(), *writers)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "input").mkdir()
    (tmp_path / "link").symlink_to("input")
    return tmp_path


@pytest.mark.parametrize("out", ["input", "input/out", "./x/../input/out", "link/out", "file:input/out"])
@pytest.mark.parametrize("root", ["input", "link", "input/", "."])
def test_output_in_a_scanned_folder_is_refused(root, out, here):
    out = out.replace("file:", f"file://{here}/")
    for writer in (RecordWriter(file_path=out), PartWriter(file_path=out), Notes(folder=out)):
        assert codes(scanning({"files": [root]}, writer)) == ["output-read"]


LOGS = {"files": ["input"], "file_pattern_regular_exp": r".*\.log"}
MARKED = {"files": ["input"], "marker_file": "{name}.done"}
BUCKET = {"files": ["s3://bucket/in?region=x"]}


@cases(
    "scanner, writer, refused",
    ("elsewhere", {"files": ["input"]}, PartWriter(file_path="output"), False),
    ("a name that begins alike", {"files": ["input"]}, PartWriter(file_path="input2"), False),
    ("above the input", {"files": ["input/deep"]}, PartWriter(file_path="input"), False),
    ("hidden", {"files": ["input"]}, PartWriter(file_path="input/.out"), False),
    ("deeper than is looked", {"files": ["input"], "recursive": False}, PartWriter(file_path="input/out"), False),
    ("of other names", LOGS, PartWriter(file_path="input"), False),
    ("named as markers are", MARKED, PartWriter(file_path="input", file_name="{partition}-{number}.done"), False),
    ("of the names looked for", LOGS, PartWriter(file_path="input", file_name="{partition}-{number}.log"), True),
    ("a file of its name", {"files": ["input/0"]}, RecordWriter(file_path="input"), True),
    ("elsewhere in a bucket", BUCKET, PartWriter(file_path="s3://bucket/out?region=x"), False),
    ("in a bucket", BUCKET, PartWriter(file_path="s3://bucket/in/out?region=x"), True),
)
def test_output_is_refused_that_a_scan_finds(scanner, writer, refused):
    assert codes(scanning(scanner, writer)) == ["output-read"] * refused


def test_output_that_a_scan_ignores_is_not_refused():
    scanner = {"files": ["input"], "ignore_file_pattern_regular_exp": r".*/out/.*"}
    assert codes(scanning(scanner, PartWriter(file_path="input/out"))) == []


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
    assert codes(matching("elsewhere", pattern, out=out)) == ["output-read"] * refused


def test_patterns_that_are_faulty_are_their_own_fault():
    assert codes(in_a_row(Items[str](), MatchFiles(), ReadFiles(), PartWriter(file_path="output"))) == [
        "property-invalid"
    ]


@pytest.mark.parametrize(("ignored", "refused"), [(None, True), (".*[.]json", False)])
def test_receipts_in_a_scanned_folder_are_refused(ignored, refused):
    scanner = {"files": ["."], "ignore_file_pattern_regular_exp": ignored}
    assert codes(scanning(scanner, receipts="receipts")) == ["output-read"] * refused


@pytest.mark.parametrize(("pattern", "refused"), [("**/*.json", True), ("input/*", False)])
def test_receipts_that_match_a_pattern_are_refused(pattern, refused):
    assert codes(matching(pattern, receipts="receipts")) == ["output-read"] * refused


def test_the_report_names_both_and_what_to_do(here):
    (fault,) = faults(scanning({"files": ["input"]}, RecordWriter(file_path="link")))
    found = "where 0 FileSplitterInput would find its files and read them"
    assert fault.problem == f"2 RecordWriter writes to {here}/link, {found}"
    assert fault.help == "let 2 RecordWriter write to a folder outside of the input, or exclude its files by a pattern"


OTHER_NAMES = "other-{partition}-{number}"


@cases(
    "first, other, reported",
    ("parts", PartWriter(file_path="out"), PartWriter(file_path="out"), True),
    ("through a link", PartWriter(file_path="input"), PartWriter(file_path="link"), True),
    ("blocks", RecordWriter(file_path="out"), RecordWriter(file_path="out"), True),
    ("of other names", PartWriter(file_path="out"), PartWriter(file_path="out", file_name=OTHER_NAMES), False),
    ("of another kind", PartWriter(file_path="out"), RecordWriter(file_path="out"), False),
    ("in another folder", PartWriter(file_path="out"), PartWriter(file_path="out/deep"), False),
)
def test_writers_that_name_their_files_alike_are_reported(first, other, reported):
    dag, splitter = Dag(), FileSplitterInput(scanner={"files": ["elsewhere"]})
    reader = dag.add_operator("splitter", splitter) >> dag.add_operator("reader", LineReader())
    writers = dag.add_operator("first", first), dag.add_operator("other", other)
    dag.add_stream("lines", reader.messages, *(writer.input for writer in writers))
    assert warnings(dag) == ["output-shared"] * reported


def test_receipts_of_two_inputs_may_share_a_folder():
    dag = Dag()
    for name in ("in", "other"):
        splitter = FileSplitterInput(scanner={"files": [name]}, receipts="receipts")
        dag.add_operator(name, splitter) >> dag.add_operator(f"reader of {name}", LineReader())
    assert warnings(dag) == []


def warnings(dag):
    return [note.code for note in compile_application(dag).notes if note.severity is Severity.WARNING]


def test_each_finder_is_asked_once_for_all_that_is_written():
    """The cost of the rule grows with the operators, and not with the pairs of finders and writers."""
    asked = []

    class Finder(FileSplitterInput):
        def would_find(self, paths, items):
            asked.append(len(paths))
            return super().would_find(paths, items)

    dag = Dag()
    for lane in range(3):
        splitter = dag.add_operator(f"Splitter{lane}", Finder(scanner=DirectoryScanner(files=("input",))))
        reader = dag.add_operator(f"Reader{lane}", LineReader())
        splitter.blocks_metadata_output >> reader
        reader.messages >> dag.add_operator(f"Writer{lane}", RecordWriter(file_path=f"out{lane}"))
    assert codes(dag) == []
    assert asked == [3, 3, 3]


class Follower(Operator):
    follows_files = True
    input = InputPort(FileInfo)

    def process(self, item: FileInfo) -> None: ...


MADE = {
    "tail": TailFiles,
    "read": ReadFiles,
    "split": FileSplitterBase,
    "own": Follower,
    "filter": lambda: Filter[FileInfo](predicate=lambda file: file.length > 0),
    "map": lambda: Map(function=lambda file: file),
}


def followed(names, grown):
    """The codes of the faults and of the advice, and whether Match learns that its files are followed.

    `names` are operators behind Match, all on its one stream; `filter` or `map` is in front of the others.
    """
    dag = Dag()
    match = dag.add_operator("Match", MatchFiles(continuously=True, grown=grown))
    dag.add_operator("Patterns", Items[str](items=["in/*"])) >> match
    files, ends = match.files, [dag.add_operator(name, MADE[name]()) for name in names.split()]
    if names.split()[0] in ("filter", "map"):
        first, *ends = ends
        files >> first
        files = first.output
    dag.add_stream("files", files, *[end.files if hasattr(end, "files") else end.input for end in ends])
    try:
        compilation = compile_application(dag)
    except ApplicationFaults as raised:
        return list(raised.codes), [], False
    advice = [note.code for note in compilation.notes if note.severity is Severity.ADVISORY]
    return [], advice, program_of(compilation).context_of("Match", 0, 1).is_followed


@pytest.mark.parametrize(
    ("names", "grown", "expected"),
    [
        ("tail", None, ([], [], True)),
        ("tail", "skip", ([], [], True)),
        ("tail", "read", (["file-doubled"], [], False)),
        ("own", None, ([], [], True)),
        ("filter tail", None, ([], [], True)),
        ("filter tail", "read", (["file-doubled"], [], False)),
        ("map tail", "read", (["file-doubled"], [], False)),
        ("read", None, ([], [], False)),
        ("read", "read", ([], [], False)),
        ("read", "skip", ([], ["guarantee-waived"], False)),
        ("split", "skip", ([], ["guarantee-waived"], False)),
        ("tail read", None, ([], ["guarantee-waived"], True)),
    ],
)
def test_a_file_that_is_followed_is_sent_once(names, grown, expected):
    assert followed(names, grown) == expected


def test_files_that_another_operator_finds_are_not_those_of_the_first():
    dag = in_a_row(Items[str](items=["lists/*"]), MatchFiles(), ReadFiles(), MatchFiles(), TailFiles())
    contexts = program_of(compile_application(dag)).contexts
    assert {name for name, context in contexts.items() if context.is_followed} == {"3 MatchFiles"}
