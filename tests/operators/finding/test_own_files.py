"""No application reads its own ledger and output as input, wherever links lead."""

import gzip
from pathlib import Path

import pyarrow.fs as pa_fs
import pytest

from dagkit.compiler import compile_application
from dagkit.ground.application_folder import OWN
from dagkit.ground.urls import resolved
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit.runs.inventory.listing import listed
from dagkit_operators import FileSplitterInput, Items, LineReader, MatchFiles, PartWriter, ReadFiles, RecordWriter
from dagkit_operators.filesystem.listing import files_below
from tests.engine.cast import chain
from tests.old_files import aged, old_file
from tests.operators.ways import lines_in

FOUND_BY = {
    "a splitter": lambda place: [FileSplitterInput(scanner={"files": [place]}), LineReader()],
    "a pattern": lambda place: [Items(items=[f"{place}/**"]), MatchFiles(), ReadFiles()],
    "a splitter with a pattern": lambda place: [
        FileSplitterInput(scanner={"files": [place], "file_pattern_regular_exp": ".*[.]txt"}),
        LineReader(),
    ],
}
BOTH = pytest.mark.parametrize("found_by", list(FOUND_BY)[:2])


def drawn(home: Path, place: Path, found_by: str, writer=PartWriter):
    steps = [*FOUND_BY[found_by](str(place)), writer(home / "out")]
    return chain(**{f"step {number}": step for number, step in enumerate(steps)})


def output_of(home: Path, draw, app: str = "app", launches: int = 2) -> list[str]:
    """The lines that some launches write. Between them, what they wrote becomes old enough to be read."""
    old = set(home.rglob("*"))
    for _ in range(launches):
        launch(draw, until="once", machine=Machine("reference"), path=home / app, durable=False)
        for path in {*home.rglob("*")} - old:
            aged(path)
    return lines_in(home / "out")


@pytest.mark.parametrize(
    ("found_by", "writer"), [("a splitter", PartWriter), ("a splitter", RecordWriter), ("a pattern", PartWriter)]
)
def test_a_link_to_a_parent_leads_an_application_to_neither_its_ledger_nor_its_output(
    found_by, writer, tmp_path, caplog
):
    old_file(tmp_path / "in/a.txt", "a\n")
    old_file(tmp_path / "beside.txt", "b\n")
    (tmp_path / "in/up").symlink_to("..")
    draw = drawn(tmp_path, tmp_path / "in", found_by, writer)
    assert output_of(tmp_path, draw, launches=3) == ["a", "b"]
    assert f"{tmp_path}/in/up/out is output of this application behind a link, and is skipped" in caplog.text
    found = listed(compile_application(draw), Ledger.open(tmp_path / "app"))
    states = {str(Path(file.path).relative_to(tmp_path / "in")): file.state for file in found}
    assert states == {"a.txt": "read", "up/beside.txt": "read", "up/out": "ignored"}


@BOTH
def test_an_application_does_not_read_its_own_folder_in_a_scanned_one(found_by, tmp_path):
    old_file(tmp_path / "data/a.txt", "a\n")
    old_file(tmp_path / "data/app/in/b.txt", "b\n")
    old_file(tmp_path / "data/ledger/c.txt", "c\n")
    draw = drawn(tmp_path, tmp_path / "data", found_by)
    assert output_of(tmp_path, draw, "data/app") == ["a", "b", "c"]


def test_a_folder_behind_a_link_is_read_if_the_pattern_excludes_what_is_written_to_it(tmp_path):
    old_file(tmp_path / "in/a.txt", "a\n")
    old_file(tmp_path / "out/b.txt", "b\n")
    (tmp_path / "in/out").symlink_to(tmp_path / "out")
    draw = drawn(tmp_path, tmp_path / "in", "a splitter with a pattern")
    assert output_of(tmp_path, draw) == ["a", "b", "b"]


def test_what_dagkit_keeps_in_an_application_s_folder_is_known(tmp_path):
    """A name that is missing in the list would be read as input."""
    for name in ("a", "b"):
        old_file(tmp_path / f"in/{name}.txt", name + "\n")
    old_file(tmp_path / "in/c.txt.gz", gzip.compress(b"c\n" * 100))
    output_of(tmp_path, drawn(tmp_path, tmp_path / "in", "a splitter"))
    assert {path.name for path in (tmp_path / "app").iterdir() if not path.name.startswith(".")} <= OWN


def test_an_application_s_folder_in_an_object_store_is_left_out(tmp_path):
    place = f"memory://own/{tmp_path.name}"
    filesystem, inner, _ = resolved(place)
    assert isinstance(filesystem, pa_fs.FileSystem)
    for name in ("a", "app/ledger/ledger.json", "app/heads/x", "app/status.json", "app/in/b", "heads/c"):
        filesystem.create_dir(f"{inner}/{name}".rpartition("/")[0])
        with filesystem.open_output_stream(f"{inner}/{name}") as file:
            file.write(b"x")
    names = sorted(found.path.removeprefix(f"{place}/") for found in files_below(place, recursive=True))
    assert names == ["a", "app/in/b", "heads/c"]
