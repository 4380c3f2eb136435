"""Files whose names are not UTF-8, as Linux allows, are found, read and known again as any other file."""

import gzip
import json
import os
from operator import attrgetter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.ground.urls import as_text, local_path, plain, shown
from dagkit.ledger.audit.verify import verify
from dagkit.testing import Alone, FakeClock, Rehearsal
from dagkit_operators import (
    FileOutput,
    FileSplitterInput,
    Items,
    LineReader,
    LineRejected,
    MatchFiles,
    PartWriter,
    ReadFiles,
    TailFiles,
)
from dagkit_operators.filesystem.access import looked_up
from tests.engine.cast import chain
from tests.old_files import old_file


@pytest.fixture
def folder(tmp_path):
    """A folder whose name is not UTF-8, with such a file and another one."""
    folder = tmp_path / os.fsdecode(b"in\xff")
    for name, text in ((os.fsdecode(b"a \xe4%41.log"), "one\n"), ("b.log", "two\n")):
        old_file(folder / name, text)
    return folder


def written(folder: Path) -> str:
    """The folder as a ledger holds it."""
    return f"file://{folder.parent}/in%FF"


def matched(pattern):
    match = Alone(MatchFiles())
    match.work(pattern)
    return match.sent()


@given(st.binary(min_size=1, max_size=30).filter(lambda name: b"\0" not in name))
def test_a_name_comes_back_from_its_text(name):
    path = f"/{os.fsdecode(name)}"
    text = as_text(path)
    assert json.loads(json.dumps(text, ensure_ascii=False).encode()) == text
    assert local_path(text) == path
    assert (text == path) == (name.decode(errors="ignore").encode() == name)


def test_patterns_match_the_name_as_it_is(folder):
    file = f"{written(folder)}/a%20%E4%2541.log"
    for pattern in (written(folder), f"{written(folder)}/a*.log", f"{folder}/a*", file):
        assert file in [match.path for match in matched(pattern)]
    scanner = {"files": folder, "file_pattern_regular_exp": r".*/a \?%41[.]log"}
    splitter = Alone(FileSplitterInput(scanner=scanner), now=FakeClock().now)
    splitter.look()
    assert len(splitter.sent()) == 1


def test_such_a_file_is_followed_under_another_name(folder):
    path = folder / os.fsdecode(b"a \xe4%41.log")
    tail, (file,) = Alone(TailFiles()), matched(as_text(str(path)))
    tail.work(file, tail.operator.initial_restriction(file))
    left = tail.deferred.residual
    with path.rename(folder / os.fsdecode(b"\xfe")).open("a") as renamed:
        renamed.write("three\n")
    tail = tail.restarted()
    tail.work(file, left)
    assert tail.sent() == ["three"]


def test_such_a_compressed_file_is_decompressed_and_named_where_it_is_wrong(folder):
    path = old_file(folder / os.fsdecode(b"\xff.gz"), gzip.compress(b"1\nx\n"))
    (file,) = matched(as_text(str(path)))
    with pytest.raises(LineRejected, match=r"/in\\udcff/\\udcff\.gz: the line at byte 2 is rejected"):
        Alone(ReadFiles(parse=int), connected=["messages"]).work(file)


@pytest.mark.slow
def test_an_application_reads_such_files_and_its_ledger_proves_it(folder, tmp_path):
    splitter, writer = FileSplitterInput(scanner={"files": folder}), PartWriter(file_path=tmp_path / "out")
    rehearsal = Rehearsal(chain(Splitter=splitter, Reader=LineReader(), Writer=writer))
    old_file(folder / "c\nd.log", "three\n")
    for _ in range(2):
        rehearsal.run()
    assert [path.read_text() for path in (tmp_path / "out").iterdir()] == ["one\ntwo\nthree\n"]
    assert verify(rehearsal.ledger).is_complete


def test_a_file_url_means_the_very_bytes(folder):
    found = looked_up(f"{written(folder)}/a%20%E4%2541.log")
    assert found is not None
    assert (plain(found.path), shown(found.path)) == (
        f"{folder}/a \udce4%41.log",
        f"{folder.parent}/in\\udcff/a \\udce4%41.log",
    )


class ByFirstWord(FileOutput[str]):
    """Writes each line to the file that its first word names, in bytes."""

    kind = "tests.by-first-word/1"

    def file_name(self, item: str) -> str:
        return os.fsdecode(item.split(maxsplit=1)[0].encode("latin-1"))

    def bytes_for(self, item: str) -> bytes:
        return item.encode() + b"\n"


@pytest.mark.parametrize("given", [{}, {"max_count": 2}, {"compression": "gzip"}], ids=["whole", "parts", "compressed"])
def test_an_application_writes_files_with_such_names(given, tmp_path):
    items = Items[str](items=["\xff 1", "file:\xfe 2", "\xff 3", "plain 4", "\xff 5"])
    writer = ByFirstWord(file_path=tmp_path / "out", **given)
    finished = PartWriter(file_path=tmp_path / "finished", format=attrgetter("name"))
    rehearsal = Rehearsal(chain(Items=items, Writer=writer, Finished=finished))
    rehearsal.run()
    read = gzip.open if given.get("compression") else Path.open
    lines = {}
    for path in sorted((tmp_path / "out").iterdir()):
        name = os.fsencode(path.name).split(b".")[0]
        with read(path, "rt") as file:
            lines[name] = lines.get(name, "") + file.read()
    assert lines == {b"\xff": "\xff 1\n\xff 3\n\xff 5\n", b"file:\xfe": "file:\xfe 2\n", b"plain": "plain 4\n"}
    (finished,) = (tmp_path / "finished").iterdir()
    assert sorted(map(local_path, finished.read_text().split())) == sorted(
        str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").iterdir()
    )
    assert verify(rehearsal.ledger).is_complete
