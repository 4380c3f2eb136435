"""What is copied is what was there, byte for byte, whatever interrupts the copying."""

import gzip
import os
import random
import zlib
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from apps.file_copy.app import FileCopy
from dagkit.api.running import Until
from dagkit.engine.program.points import Point
from dagkit.engine.record.history import history
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.testing.crashes import Crash, CrashAfter
from tests.applications import launched, on_each_backend
from tests.old_files import aged

HERE = str(Path(__file__).parent)


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tree(tmp_path / "input")


CONTENTS = {"long.bin": 10_000, "deep/short": 3, "deep/empty": 0, ".hidden": 130, "deep/deeper/a b": 256}
BLOCK_SIZE = "dt.application.FileCopy.prop.blockSize"
CHECKSUMS = ("-D", "dt.application.FileCopy.prop.checksums=sums")


def tree(folder):
    """Files of no, few and many blocks, and directories with and without files."""
    (folder / "deep" / "deeper").mkdir(parents=True)
    (folder / "void" / "inner").mkdir(parents=True)
    content = random.Random(7)  # noqa: S311 - arbitrary bytes
    for name, length in CONTENTS.items():
        (folder / name).write_bytes(content.randbytes(length))
    (folder / "deep" / "z.gz").write_bytes(gzip.compress(content.randbytes(500)))
    for path in folder.rglob("*"):
        aged(path)
    return folder


def found_in(folder):
    """The content of each file, and None for each directory."""
    return {str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes() for path in folder.rglob("*")}


def copied(*options):
    launched(HERE, *options)


def listed():
    return "".join(path.read_text() for path in Path("sums").iterdir()).splitlines()


@on_each_backend
def test_the_copy_is_identical(backend, source):
    copied(backend, "-D", f"{BLOCK_SIZE}=128", *CHECKSUMS)
    assert found_in(Path("output/input")) == found_in(source)
    sums = {path: zlib.crc32(path.read_bytes()) for path in source.rglob("*") if path.is_file()}
    assert sorted(listed()) == sorted(f"{sums[path]:08x}  {path.relative_to(source.parent)}" for path in sums)
    (source / "later").write_bytes(b"more")
    aged(source / "later")
    copied(backend, "-D", f"{BLOCK_SIZE}=128", *CHECKSUMS)
    assert found_in(Path("output/input")) == found_in(source)


def test_the_lists_of_a_window_become_visible_with_its_files(source):
    copied("--reference", "--windows", "1", *CHECKSUMS)
    assert found_in(Path("output/input")) == found_in(source)
    assert len(listed()) == 6


@on_each_backend
def test_names_that_are_not_utf_8_are_copied_to_the_same_bytes(backend, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "input" / os.fsdecode(b"folder \xff%41")
    (folder / os.fsdecode(b"void\xfe")).mkdir(parents=True)
    (folder / os.fsdecode(b"long\xe4#?")).write_bytes(b"abc" * 2000)
    (folder / os.fsdecode(b"empty\xe4")).write_bytes(b"")
    for path in folder.iterdir():
        aged(path)
    for _ in range(2):  # two blocks in a window: the file is incomplete when a window ends
        copied(backend, "-D", "dt.operator.Splitter.prop.blocksThreshold=2", "-D", f"{BLOCK_SIZE}=1000")
    assert found_in(tmp_path / "output" / "input") == found_in(tmp_path / "input")
    lists = b"".join(path.read_bytes() for path in sorted((tmp_path / "checksums").iterdir()))
    assert sorted(lists.splitlines()) == [
        b"00000000  input/folder \xff%41/empty\xe4",
        b"%08x  input/folder \xff%%41/long\xe4#?" % zlib.crc32(b"abc" * 2000),
    ]
    assert verify(Ledger.open(".dagkit/FileCopy")).is_complete


def test_a_single_file_is_copied_into_the_target(source):
    copied("--reference", "-D", f"dt.application.FileCopy.prop.source={source / 'long.bin'}")
    assert found_in(Path("output")) == {"long.bin": (source / "long.bin").read_bytes()}


def copying(tmp_path, **properties):
    """A function that launches the application with a probe."""
    application = FileCopy(source=str(tmp_path / "input"), target=str(tmp_path / "output"), **properties)
    options = {"machine": Machine(backend="reference"), "path": tmp_path / "state", "durable": False}
    return partial(launch, application.populate_dag, until=Until.ONCE, **options)


@pytest.mark.slow
@pytest.mark.parametrize("checksums", [None, "sums"])
@pytest.mark.parametrize("point", Point)
def test_wherever_a_launch_is_killed_each_byte_is_copied_once(point, checksums, source, tmp_path):
    copy, crashes = copying(tmp_path, checksums=checksums, block_size=128), 0
    for number in range(1, 6):
        try:
            copy(probe=CrashAfter(point, number))
        except Crash:
            crashes += 1
    copy()
    assert found_in(tmp_path / "output" / "input") == found_in(source)
    assert verify(Ledger.open(str(tmp_path / "state"))).faults == ()
    assert [path for path in (tmp_path / "state" / "staging").rglob("*") if path.is_file()] == []
    assert crashes


def test_a_file_that_is_not_whole_is_invisible(source):
    os.truncate(source / "long.bin", 2_000_000)
    aged(source / "long.bin")
    one_block = ("--windows", "1", "-D", "dt.operator.Splitter.prop.blocksThreshold=1")
    copied("--reference", *one_block, "-D", f"{BLOCK_SIZE}=1000000")
    assert "long.bin" not in found_in(Path("output"))
    copied("--reference", "-D", f"{BLOCK_SIZE}=1000000")
    assert found_in(Path("output/input")) == found_in(source)


def test_links_are_followed_and_folders_keep_their_own_names(source, tmp_path):
    expected, elsewhere = found_in(source), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_bytes(b"linked")
    aged(elsewhere / "file")
    targets = {"aa": source / "deep", "zz": source / "deep", "link": elsewhere / "file", "folder": elsewhere}
    for name, target in (targets | {"nowhere": tmp_path / "gone"}).items():
        (source / name).symlink_to(target)
    copied("--reference")
    assert found_in(Path("output/input")) == expected | {"link": b"linked", "folder": None, "folder/file": b"linked"}


CHANGES = {"long.bin": b"x" * 10_000, "deep/short": b"longer", "deep/empty": b"x", ".hidden": b""}


def changed(source):
    """Change files to other content of the same and of other lengths, to none, and from none."""
    for number, (name, content) in enumerate(CHANGES.items()):
        (source / name).write_bytes(content)
        os.utime(source / name, (5000 + number, 5000 + number))


def test_a_source_that_changed_is_copied_again(source):
    copied("--reference")
    changed(source)
    for _ in range(2):
        copied("--reference")
        assert found_in(Path("output/input")) == found_in(source)


@pytest.mark.slow
@pytest.mark.parametrize("point", Point)
def test_a_crash_while_a_copy_is_replaced_leaves_the_new_copy(point, source, tmp_path):
    copy = copying(tmp_path, block_size=4096)
    copy()
    (*_, last) = history(Ledger.open(str(tmp_path / "state")))
    changed(source)
    with suppress(Crash):
        copy(probe=CrashAfter(point, last.checkpoint.window + 1))
    copy()
    assert found_in(tmp_path / "output" / "input") == found_in(source)


def test_a_newline_in_a_name_breaks_no_list_of_checksums(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "input").mkdir()
    (path := tmp_path / "input" / "a\n00000000  b\\c").write_bytes(b"abc")
    aged(path)
    copied("--reference", *CHECKSUMS)
    assert list(listed()) == ["\\352441c2  input/a\\n00000000  b\\\\c"]
