"""Pieces become files: all at once, once, and again after the process that placed them was killed."""

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, ClassVar

import fsspec
import pytest

from dagkit.engine.files import folders
from dagkit.engine.files import pieces as pieces_module
from dagkit.engine.files.folders import LocalFolder, RemoteFolder, folder_at, put_in_place
from dagkit.engine.files.pieces import Piece, PiecesLost, look_at
from dagkit.errors import RunFailure
from dagkit.ground.urls import parent, resolved
from dagkit.testing.crashes import Crash
from dagkit_operators.filesystem.access import looked_up, opened
from tests.processes import run_program


@pytest.fixture
def folder(tmp_path):
    return LocalFolder(tmp_path / "out")


def pieces(tmp_path: Path, *contents: str) -> list[Piece]:
    staged = tmp_path / "staged"
    staged.mkdir(exist_ok=True)
    made = []
    for number, content in enumerate(contents):
        path = staged / f"{number}.part"
        path.write_text(content)
        made.append(Piece(str(path), len(content)))
    return made


def gone(made: list[Piece]) -> bool:
    return not any(Path(piece.path).exists() for piece in made)


CONTENTS = pytest.mark.parametrize(
    "contents", [["one"], ["one", "", "three"], [""]], ids=["one piece", "several pieces", "an empty piece"]
)


def stop_at(monkeypatch: pytest.MonkeyPatch, stop_at: int) -> None:
    """Let the n-th call of the operating system not come back: before it is done, or after."""
    left = count(stop_at, -1)

    def counted(call: Callable[..., object]) -> Callable[..., object]:
        def step(*given: object, **named: object) -> object:
            if next(left) == 1:
                raise Crash("here")
            done = call(*given, **named)
            if next(left) == 1:
                raise Crash("here")
            return done

        return step

    shutil = pieces_module.shutil
    for owner, name in ((Path, "replace"), (Path, "unlink"), (Path, "mkdir"), (os, "fsync"), (shutil, "copyfileobj")):
        monkeypatch.setattr(owner, name, counted(getattr(owner, name)))


@pytest.mark.parametrize("across", [False, True], ids=["on one disk", "across disks"])
@CONTENTS
def test_a_process_killed_over_it_may_do_it_again(tmp_path, monkeypatch, contents, across):
    """It is killed one step later each time, until it is no longer stopped."""
    if across:
        refuse_renaming_across(monkeypatch)
    for step in range(1, 200):
        home = tmp_path / str(step)
        home.mkdir()
        made, out = pieces(home, *contents), LocalFolder(home / "out")
        with monkeypatch.context() as patched:
            stop_at(patched, step)
            try:
                out.put_in_place(made, out.path_of("a.txt"), durable=True)
            except Crash:
                ended = False
            else:
                ended = True
        out.put_in_place(made, out.path_of("a.txt"), durable=True)
        assert [(path.name, path.read_text()) for path in out.path.iterdir()] == [("a.txt", "".join(contents))]
        assert gone(made)
        if ended:
            break
    assert 4 < step < 199


def refuse_renaming_across(monkeypatch: pytest.MonkeyPatch) -> None:
    """Staged pieces and outputs lie on two disks."""
    renamed = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if (self.parent.name == "staged") != (Path(target).parent.name == "staged"):
            raise OSError(errno.EXDEV, "Invalid cross-device link", str(self), None, str(target))
        return renamed(self, target)

    monkeypatch.setattr(Path, "replace", replace)


def test_a_copy_removes_what_a_killed_one_left_of_its_own_file_alone(tmp_path, folder, monkeypatch):
    refuse_renaming_across(monkeypatch)
    folder.make()
    left, others = ".a.0123456789abcdef.finishing", {".a.txt.0123456789abcdef.finishing", ".a.finishing"}
    for name in [left, *others]:
        (folder.path / name).touch()
    folder.put_in_place(pieces(tmp_path, "one"), folder.path_of("a"), durable=False)
    assert {path.name for path in folder.path.iterdir()} == {"a", *others}


@CONTENTS
def test_two_drivers_may_put_the_same_file_in_place(tmp_path, folder, monkeypatch, contents):
    made, file = pieces(tmp_path, *contents), folder.path_of("a.txt")
    renamed = Path.replace

    def replace(self: Path, target: Path) -> Path:
        with monkeypatch.context() as once:
            once.setattr(Path, "replace", renamed)
            folder.put_in_place(made, file, durable=False)  # the other one is faster
        return renamed(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    folder.put_in_place(made, file, durable=False)
    assert Path(file).read_text() == "".join(contents)
    assert gone(made)


@pytest.mark.parametrize(
    ("lost", "cut", "file"),
    [([0, 1], False, None), ([1], False, None), ([0, 1], False, "short"), ([], True, None)],
    ids=["all and the file", "one, and no file was made", "all, and the file is another one", "one is cut"],
)
def test_removed_or_cut_pieces_are_missed(tmp_path, folder, lost, cut, file):
    made, path = pieces(tmp_path, "one", "two"), Path(folder.path_of("a.txt"))
    for number in lost:
        Path(made[number].path).unlink()
    if cut:
        os.truncate(made[1].path, 2)
    if file is not None:
        path.parent.mkdir()
        path.write_text(file)
    with pytest.raises(PiecesLost, match=r"staged pieces of .*a\.txt are gone or cut, and it is not complete"):
        folder.put_in_place(made, str(path), durable=False)
    assert [Path(piece.path).exists() for piece in made] == [number not in lost for number in (0, 1)]
    assert path.exists() == (file is not None)


NEARLY_FULL = """
import resource, sys
from dagkit.engine.files.pieces import Piece
from dagkit.errors import RunFailure
from dagkit.engine.files.folders import put_in_place

*pieces, file = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, resource.RLIM_INFINITY))
try:
    put_in_place([Piece(path, 100_000) for path in pieces], file, durable=False)
except RunFailure as told:
    print(told)
"""


def test_a_disk_that_takes_a_part_of_the_last_piece_costs_nothing(tmp_path, folder):
    made, file = pieces(tmp_path, "a" * 100_000, "b" * 100_000), folder.path_of("a.txt")
    command = [sys.executable, "-c", NEARLY_FULL, *[piece.path for piece in made], file]
    told = run_program(command).stdout
    assert "a.txt is committed and cannot be put in place: File too large" in told
    assert not Path(file).exists()
    assert not gone(made)
    folder.put_in_place(made, file, durable=False)
    assert Path(file).read_text() == "a" * 100_000 + "b" * 100_000


def test_a_file_that_cannot_be_where_it_belongs_keeps_its_pieces(tmp_path, folder):
    made, file = pieces(tmp_path, "one"), folder.path_of("a.txt")
    Path(file).mkdir(parents=True)
    with pytest.raises(RunFailure, match=r"a\.txt is committed and cannot be put in place: .* nothing of it is lost"):
        folder.put_in_place(made, file, durable=False)
    assert not gone(made)
    Path(file).rmdir()
    folder.put_in_place(made, file, durable=False)
    assert Path(file).read_text() == "one"


@pytest.mark.parametrize("name", ["", "/a", "../a", "a/../b", "a//b", "a/", "."])
def test_a_name_that_leads_out_of_its_folder_is_refused(folder, name):
    with pytest.raises(ValueError, match="is no name for a file in a folder"):
        folder.path_of(name)


def test_a_relative_place_is_taken_from_home(tmp_path):
    assert folder_at("out", str(tmp_path)) == LocalFolder(tmp_path / "out")
    assert folder_at("/out", str(tmp_path)) == LocalFolder(Path("/out"))
    for place in ("file:///out%20put", "file:/out%20put"):
        assert folder_at(place) == LocalFolder(Path("/out put"))


def test_a_url_means_the_same_to_readers_and_to_writers(tmp_path):
    """Pieces are staged, files are finished and found again: what is quoted in a URL is not in the name."""
    for place in ((tmp_path / "a b").as_uri(), "memory://places/a%20b"):
        staged = folder_at(place).below("staged")
        staged.make()
        with staged.create("0.part") as stream:
            stream.write(b"content")
        file = folder_at(place).path_of("c d.txt")
        put_in_place([Piece(staged.path_of("0.part"), 7)], file, durable=False)
        assert [found.length for found in look_at([file]) if found] == [7]
        with opened(looked_up(file).path) as stream:
            buffer = memoryview(bytearray(7))
            assert (stream.readinto(buffer), bytes(buffer)) == (7, b"content")
    assert [path.name for path in (tmp_path / "a b").glob("*.txt")] == ["c d.txt"]


def test_options_of_a_url_stay_behind_the_names_that_are_put_into_it():
    folder = folder_at("s3://bucket/a%20b/?region=eu-west-1&scheme=http")
    assert isinstance(folder, RemoteFolder)
    file = folder.below("c d").path_of("e?.txt")
    assert file == "s3://bucket/a%20b/c%20d/e%3F.txt?region=eu-west-1&scheme=http"
    assert resolved(file).path == "bucket/a b/c d/e?.txt"
    again = folder_at(parent(file))
    assert isinstance(again, RemoteFolder)
    assert (again.path, again.filesystem) == ("bucket/a b/c d", folder.filesystem)


def read(file: str) -> str:
    return Path(file).read_text() if "://" not in file else fsspec.filesystem("memory").cat_file(file).decode()


@CONTENTS
@pytest.mark.parametrize("source", ["", "memory://places/staged"], ids=["from here", "from a store"])
@pytest.mark.parametrize("target", ["", "memory://places/out"], ids=["to here", "to a store"])
def test_pieces_and_file_may_lie_in_different_stores(tmp_path, *, source, target, contents, monkeypatch):
    fsspec.filesystem("memory").store.clear()
    staged, out = folder_at(source or tmp_path / "staged"), folder_at(target or tmp_path / "out")
    staged.make()
    made = []
    for number, content in enumerate(contents):
        with staged.create(f"{number}.part") as stream:
            stream.write(content.encode())
        made.append(Piece(staged.path_of(f"{number}.part"), len(content)))
    file = out.path_of("below/a.txt")

    def cut_off(pieces: list[str], sink: BinaryIO) -> None:
        sink.write(b"half of")
        raise Crash("in the middle")

    with monkeypatch.context() as patched:
        patched.setattr(folders, "pour", cut_off)
        with suppress(Crash):
            put_in_place(made, file, durable=True)
    assert out.length(file) in (None, sum(map(len, contents)))  # it is not there, or one piece was moved
    for _ in range(2):
        put_in_place(made, file, durable=True)
        assert [staged.length(piece.path) for piece in made] == [None] * len(made)
        assert (read(file), out.length(file)) == ("".join(contents), sum(map(len, contents)))
    with pytest.raises(PiecesLost):
        put_in_place(made, out.path_of("below/another.txt"), durable=True)


def test_a_store_that_does_not_move_onto_a_file_is_helped():
    class Strict:
        """As hdfs does it."""

        there: ClassVar = {"out/a": "old", "staged/0": "new"}

        def move(self, source: str, target: str) -> None:
            if target in self.there:
                raise OSError("it exists")
            self.there[target] = self.there.pop(source)

        def get_file_info(self, file: str) -> Any:
            return SimpleNamespace(is_file=file in self.there)

        def delete_file(self, file: str) -> None:
            del self.there[file]

    store = Strict()
    RemoteFolder(store, "hdfs://host/out", "out")._move("staged/0", "out/a")
    assert store.there == {"out/a": "new"}


def test_folders_that_were_made_for_a_file_survive_a_power_cut(tmp_path, monkeypatch):
    synced: list[Path] = []
    monkeypatch.setattr(folders, "sync_folder", synced.append)
    for name in ("c.txt", "d.txt"):
        put_in_place(pieces(tmp_path, "one"), str(tmp_path / "a" / "b" / name), durable=True)
    assert synced == [tmp_path, tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b"]
