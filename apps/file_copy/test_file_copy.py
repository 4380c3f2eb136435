"""What is copied is what was there, byte for byte, whatever interrupts the copying."""

import gzip
import os
import random
import zlib
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from apps.file_copy.app import FileCopy
from dagkit.api.running import Until
from dagkit.cli import main
from dagkit.engine.history.history import history
from dagkit.engine.points import Point
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.testing.crashes import Crash, CrashAfter

HERE = str(Path(__file__).parent)


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tree(tmp_path / "input")


def tree(folder):
    """Files of no, few and many blocks, and directories with and without files."""
    (folder / "deep" / "deeper").mkdir(parents=True)
    (folder / "void" / "inner").mkdir(parents=True)
    content = random.Random(7)  # noqa: S311 - arbitrary bytes
    for name, length in (
        ("long.bin", 10_000),
        ("deep/short", 3),
        ("deep/empty", 0),
        (".hidden", 130),
        ("deep/deeper/a b", 256),
    ):
        (folder / name).write_bytes(content.randbytes(length))
    (folder / "deep" / "z.gz").write_bytes(gzip.compress(content.randbytes(500)))
    return folder


def found_in(folder):
    """The content of each file, and None for each directory."""
    return {str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes() for path in folder.rglob("*")}


def launched(*options):
    answer = CliRunner().invoke(main, ["launch", HERE, "--once", "-q", *options])
    assert answer.exit_code == 0, answer.output


@pytest.mark.parametrize(
    "options",
    [["--reference"], pytest.param(["--cores", "2"], marks=[pytest.mark.slow, pytest.mark.spark, pytest.mark.trial])],
)
def test_the_copy_is_identical(options, source):
    size = ("-D", "dt.application.FileCopy.prop.blockSize=128")
    checksums = ("-D", "dt.application.FileCopy.prop.checksums=sums")
    launched(*options, *size, *checksums)
    assert found_in(Path("output/input")) == found_in(source)
    lists = "".join(path.read_text() for path in Path("sums").iterdir())
    assert sorted(lists.splitlines()) == sorted(
        f"{zlib.crc32(path.read_bytes()):08x}  {path.relative_to(source.parent)}"
        for path in source.rglob("*")
        if path.is_file()
    )
    (source / "later").write_bytes(b"more")
    launched(*options, *size, *checksums)
    assert found_in(Path("output/input")) == found_in(source)


def test_the_lists_of_a_window_become_visible_with_its_files(source):
    launched("--reference", "--windows", "1", "-D", "dt.application.FileCopy.prop.checksums=sums")
    assert found_in(Path("output/input")) == found_in(source)
    assert len("".join(path.read_text() for path in Path("sums").iterdir()).splitlines()) == 6


@pytest.mark.parametrize(
    "backend",
    ["--reference", pytest.param("--cores=2", marks=[pytest.mark.slow, pytest.mark.spark, pytest.mark.trial])],
)
def test_names_that_are_not_utf_8_are_copied_to_the_same_bytes(backend, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "input" / os.fsdecode(b"folder \xff%41")
    (folder / os.fsdecode(b"void\xfe")).mkdir(parents=True)
    (folder / os.fsdecode(b"long\xe4#?")).write_bytes(b"abc" * 2000)
    (folder / os.fsdecode(b"empty\xe4")).write_bytes(b"")
    # two blocks in a window: the file is incomplete when a window ends
    several = ("-D", "dt.operator.Splitter.prop.blocksThreshold=2", "-D", "dt.application.FileCopy.prop.blockSize=1000")
    launched(backend, *several)
    launched(backend, *several)
    assert found_in(tmp_path / "output" / "input") == found_in(tmp_path / "input")
    lists = b"".join(path.read_bytes() for path in sorted((tmp_path / "checksums").iterdir()))
    assert sorted(lists.splitlines()) == [
        b"00000000  input/folder \xff%41/empty\xe4",
        b"%08x  input/folder \xff%%41/long\xe4#?" % zlib.crc32(b"abc" * 2000),
    ]
    assert verify(Ledger.open(".dagkit/FileCopy")).is_complete


def test_a_single_file_is_copied_into_the_target(source):
    launched("--reference", "-D", f"dt.application.FileCopy.prop.source={source / 'long.bin'}")
    assert found_in(Path("output")) == {"long.bin": (source / "long.bin").read_bytes()}


@pytest.mark.slow
@pytest.mark.parametrize("checksums", [None, "sums"])
@pytest.mark.parametrize("point", Point)
def test_wherever_a_launch_is_killed_each_byte_is_copied_once(point, checksums, source, tmp_path):
    application = FileCopy(source=str(source), target=str(tmp_path / "out"), checksums=checksums, block_size=128)
    given: dict[str, Any] = {"machine": Machine(backend="reference"), "path": tmp_path / "state", "durable": False}
    copy, crashes = partial(launch, application.populate_dag, until=Until.ONCE, **given), 0
    for number in range(1, 6):
        try:
            copy(probe=CrashAfter(point, number))
        except Crash:
            crashes += 1
    copy()
    assert found_in(tmp_path / "out" / "input") == found_in(source)
    assert verify(Ledger.open(str(tmp_path / "state"))).faults == ()
    assert [path for path in (tmp_path / "state" / "staging").rglob("*") if path.is_file()] == []
    assert crashes


def test_a_file_that_is_not_whole_is_invisible(source):
    os.truncate(source / "long.bin", 2_000_000)
    options = ["--windows", "1", "-D", "dt.operator.Splitter.prop.blocksThreshold=1"]
    launched("--reference", *options, "-D", "dt.application.FileCopy.prop.blockSize=1000000")
    assert "long.bin" not in found_in(Path("output"))
    launched("--reference", "-D", "dt.application.FileCopy.prop.blockSize=1000000")
    assert found_in(Path("output/input")) == found_in(source)


def test_links_are_followed_and_folders_keep_their_own_names(source, tmp_path):
    expected = found_in(source)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_bytes(b"linked")
    (source / "aa").symlink_to(source / "deep")
    (source / "zz").symlink_to(source / "deep")
    (source / "link").symlink_to(tmp_path / "elsewhere" / "file")
    (source / "folder").symlink_to(tmp_path / "elsewhere")
    (source / "nowhere").symlink_to(tmp_path / "gone")
    launched("--reference")
    linked = {"link": b"linked", "folder": None, "folder/file": b"linked"}
    assert found_in(Path("output/input")) == expected | linked


def changed(source):
    """Change files to other content of the same and of other lengths, to none, and from none."""
    for number, (name, content) in enumerate(
        [("long.bin", b"x" * 10_000), ("deep/short", b"longer"), ("deep/empty", b"x"), (".hidden", b"")]
    ):
        (source / name).write_bytes(content)
        os.utime(source / name, (5000 + number, 5000 + number))


def test_a_source_that_changed_is_copied_again(source):
    launched("--reference")
    changed(source)
    launched("--reference")
    assert found_in(Path("output/input")) == found_in(source)
    launched("--reference")
    assert found_in(Path("output/input")) == found_in(source)


@pytest.mark.slow
@pytest.mark.parametrize("point", Point)
def test_a_crash_while_a_copy_is_replaced_leaves_the_new_copy(point, source, tmp_path):
    application = FileCopy(source=str(source), target=str(tmp_path / "output"), block_size=4096)

    def launched_here(probe=None):
        launch(
            application.populate_dag,
            until=Until.ONCE,
            machine=Machine(backend="reference"),
            path=tmp_path / "state",
            durable=False,
            probe=probe,
        )

    launched_here()
    (*_, last) = history(Ledger.open(str(tmp_path / "state")))
    changed(source)
    crash = CrashAfter(point, last.checkpoint.window + 1)
    with suppress(Crash):
        launched_here(crash)
    launched_here()
    assert found_in(tmp_path / "output" / "input") == found_in(source)
