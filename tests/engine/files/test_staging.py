"""What a window writes lies under a name of its attempt, and is closed when the window ends, however it ends."""

import errno
import os
import stat
import threading
from pathlib import Path
from typing import BinaryIO

import pytest

from dagkit.engine.files import pieces as syncing_module
from dagkit.engine.files import staging as staging_module
from dagkit.engine.files.folders import LocalFolder
from dagkit.engine.files.pieces import Syncing
from dagkit.engine.files.publish import is_finished, note_finished, pieces_of, sweep, sweep_attempts, sweep_windows
from dagkit.engine.files.staging import Part, StagingPlace
from dagkit.engine.program.failures import OperatorFailed
from dagkit.errors import RunFailure
from tests.engine.cast import files_in
from tests.engine.files.cast import part, staging
from tests.patience import within


def text_of(home: Path, part: Part) -> str:
    return (home / "app" / part.part).read_text()


def inode_of(home: Path, part: Part) -> int:
    return (home / "app" / part.part).stat().st_ino


@pytest.fixture
def stage(tmp_path):
    return staging(tmp_path)


@pytest.fixture
def files(stage):
    return stage.files("writer", "out")


@pytest.fixture
def synced(monkeypatch):
    """The files that were synced, and the threads that did it."""
    found, sync = [], os.fsync

    def seen(file: int) -> None:
        if stat.S_ISREG(os.fstat(file).st_mode):
            found.append((os.fstat(file).st_ino, threading.get_ident()))
        sync(file)

    monkeypatch.setattr(os, "fsync", seen)
    return found


def test_a_file_is_one_piece_for_each_stretch_of_work(tmp_path, stage, files):
    for order, word in ((0, "a"), (50, "c"), (0, "b")):
        stage.order = order
        files.open("1", block=1).write(word.encode())
    parts = stage.parts()
    assert [(part.order, text_of(tmp_path, part), part.length) for part in parts] == [(0, "ab", 2), (50, "c", 1)]
    assert {part.file for part in parts} == {str(tmp_path / "out" / "1")}
    assert {part.element_id for part in parts} == {1}


def test_pieces_are_closed_when_their_block_is(tmp_path, stage, files):
    files.open("1", block=1).write(b"one")
    files.open("2", block=2).write(b"two")
    stage.close_element(1)
    assert [path.read_text() for path in files_in(tmp_path / "app")] == ["one", ""]
    assert [part.length for part in stage.parts()] == [3, 3]


def test_files_that_were_declared_to_be_of_no_block_are_opened_for_none(stage):
    files = stage.files("writer", "out", of_blocks=False)
    files.open("all").write(b"a")
    assert [part.element_id for part in stage.parts()] == [None]
    with pytest.raises(ValueError, match=r"writer opens 7 for block 7, .*: leave of_blocks=False away"):
        files.open("7", block=7)


def test_a_file_may_be_finished_in_a_window_that_adds_nothing_to_it(tmp_path, stage, files):
    assert (stage.parts(), files_in(tmp_path)) == ([], []), "a window that writes nothing stages nothing"
    files.open("a").write(b"a")
    files.finish("a")
    files.finish("b")
    finished = [(Path(part.file).name, part.part != "", part.finished) for part in stage.parts()]
    assert finished == [("a", True, True), ("b", False, True)]


@pytest.mark.parametrize("most_open", [9, 1], ids=["all are open", "one is suspended"])
def test_an_attempt_that_failed_leaves_nothing_open(stage, files, monkeypatch, most_open):
    monkeypatch.setattr(staging_module, "MOST_OPEN", most_open)
    pieces = [files.open(name) for name in "ab"]
    stage.abandon()
    assert all(piece.stream.closed for piece in pieces)
    assert stage.parts() == []


def test_a_piece_that_cannot_be_closed_names_its_writer(tmp_path):
    stage = staging(tmp_path, window=3, slot=2)
    piece = stage.files("writer", "out").open("a")
    piece.stream.close()
    piece.stream = Full()
    with pytest.raises(OperatorFailed, match=r"writer failed in window 3, slot 2: StagingFailed: a piece of .*out/a"):
        stage.parts()
    assert piece.stream.closed


@pytest.mark.parametrize("durable", [False, True])
def test_a_piece_is_synced_while_work_goes_on_and_before_anybody_hears_of_it(tmp_path, synced, *, durable):
    stage = staging(tmp_path, durable=durable)
    files = stage.files("writer", "out")
    for number in range(3):
        files.open(f"{number}", block=number).write(b"text")
        stage.close_element(number)
    parts = stage.parts()
    assert sorted(file for file, _ in synced) == sorted(inode_of(tmp_path, part) for part in parts if durable)
    assert threading.get_ident() not in {thread for _, thread in synced}, "work waits for no file"


def test_a_piece_whose_file_was_closed_meanwhile_is_synced_as_all_others(tmp_path, synced, monkeypatch):
    monkeypatch.setattr(staging_module, "MOST_OPEN", 2)
    stage = staging(tmp_path, durable=True)
    files = stage.files("writer", "out")
    for number in range(5):
        files.open(f"{number}").write(b"text")
    assert {inode_of(tmp_path, part) for part in stage.parts()} <= {file for file, _ in synced}


def test_a_disk_that_fails_behind_the_work_names_the_writer_and_leaves_nothing_open(tmp_path, monkeypatch):
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "the disk is full")

    monkeypatch.setattr(os, "fsync", full)
    stage = staging(tmp_path, window=3, slot=2, durable=True)
    files = stage.files("writer", "out")
    held = [files.open(f"{number}", block=number) for number in range(3)]
    stage.close_element(0)
    stage.close_element(1)
    with pytest.raises(OperatorFailed, match=r"writer failed in window 3, slot 2: StagingFailed: a piece of .*out/0"):
        stage.parts()
    assert all(piece.stream.closed for piece in held)


@pytest.mark.parametrize("durable", [False, True])
def test_a_slot_has_few_files_open_however_many_it_writes(tmp_path, monkeypatch, *, durable):
    monkeypatch.setattr(staging_module, "MOST_OPEN", 4)
    stage = staging(tmp_path, durable=durable)
    files = stage.files("writer", "out")
    held = [files.open(f"{number}", block=number % 3) for number in range(30)]
    for word in (b"one ", b"two ", b"three"):
        for number in range(30):
            (held[number] if word == b"two " else files.open(f"{number}", block=number % 3)).write(word)
            assert sum(not piece.stream.closed for piece in held) <= 4
    stage.close_element(1)
    assert len(files_in(tmp_path / "app")) == 30
    parts = stage.parts()
    assert {text_of(tmp_path, part) for part in parts} == {"one two three"}
    assert {part.length for part in parts} == {13}
    assert len({part.file for part in parts}) == len(parts) == 30
    assert all(piece.stream.closed for piece in held)


def test_what_cannot_be_gone_on_with_is_written_in_several_pieces(tmp_path, stage, files, monkeypatch):
    monkeypatch.setattr(staging_module, "MOST_OPEN", 1)
    monkeypatch.setattr(LocalFolder, "appends", False)
    for word in (b"one ", b"two "):
        for number in range(2):
            files.open(f"{number}").write(word)
    parts = stage.parts()
    for name in ("0", "1"):
        pieces = pieces_of([each for each in parts if Path(each.file).name == name], str(tmp_path / "app"))
        assert [Path(piece.path).read_text() for piece in pieces] == ["one ", "two "]


class Full:
    """A file on a full disk: what waits in memory finds no room."""

    closed = False

    def flush(self) -> None:
        raise OSError(28, "No space left on device")

    def close(self) -> None:
        self.closed = True
        self.flush()


def test_a_piece_that_cannot_be_made_says_of_which_file(tmp_path, files):
    (tmp_path / "app").write_text("in the way")
    told = r"a piece of .*out/a cannot be staged in the application's folder: .*Not a directory|File exists"
    with pytest.raises(RunFailure, match=told):
        files.open("a")


def test_a_name_that_leads_out_of_the_directory_is_refused(files):
    with pytest.raises(ValueError, match="is no name for a file in a folder"):
        files.open("../a")


@pytest.mark.parametrize(
    ("element_id", "order"),
    [(1, "abcd"), (None, "cadb")],
    ids=["the file of an element, by stretch, window and slot", "any other, by window and slot"],
)
def test_the_order_of_pieces(element_id, order):
    places = {"c": (50, 1, 0), "b": (0, 2, 0), "a": (0, 1, 1), "d": (50, 1, 2), "": (0, 9, 9)}
    parts = [
        part(part=name, order=at[0], window=at[1], slot=at[2], element_id=element_id) for name, at in places.items()
    ]
    assert [piece.path for piece in pieces_of(parts, "/app")] == [f"/app/{name}" for name in order]


def test_a_file_of_no_element_is_one_piece_for_all_stretches(tmp_path, stage, files):
    for order, word in ((50, "a"), (0, "b")):
        stage.order = order
        files.open("all").write(word.encode())
    assert [(part.order, text_of(tmp_path, part)) for part in stage.parts()] == [(0, "ab")]


def staged(home: Path) -> list[str]:
    """What lies in the folders of windows: by window and attempt."""
    return ["/".join(path.relative_to(home / "app" / "staging").parts[:2]) for path in files_in(home / "app")]


@pytest.fixture
def three(tmp_path):
    """Two attempts at window 1, and one at window 2."""
    for window, attempt in ((1, "a"), (1, "b"), (2, "c")):
        stage = staging(tmp_path, window=window, attempt=attempt)
        stage.files("writer", "out").open("x")
        stage.parts()
    return tmp_path


@pytest.mark.parametrize(
    ("act", "later", "rest"),
    [
        (lambda place: sweep(place, {"2"}, upto=2), [], ["2/c"]),
        (lambda place: sweep(place, set(), upto=1), ["2"], ["2/c"]),
        (lambda place: sweep_windows(place, {"2", "7"}), None, ["1/a", "1/b"]),
        (lambda place: sweep_attempts(place, [StagingPlace(place, *at) for at in ((1, "a"), (2, "c"))]), None, ["1/b"]),
    ],
    ids=["what is not needed", "but not what later windows staged", "windows that are finished", "attempts"],
)
def test_staged_files_are_swept(three, act, later, rest):
    assert act(str(three / "app")) == later
    assert staged(three) == rest
    windows = {path.name for path in (three / "app" / "staging").iterdir()}
    assert windows == {name.partition("/")[0] for name in rest}


def test_what_another_driver_stages_while_attempts_are_swept_stays(three, monkeypatch):
    place = str(three / "app")
    listed, removed = LocalFolder.folders, Path.rmdir

    def come() -> None:
        stage = staging(three, window=2, attempt="others")
        stage.files("writer", "out").open("x")
        stage.parts()

    def folders(self: LocalFolder) -> list[str]:
        found = listed(self)
        come()
        return found

    def rmdir(self: Path) -> None:
        come()
        removed(self)

    monkeypatch.setattr(LocalFolder, "folders", folders)
    monkeypatch.setattr(Path, "rmdir", rmdir)
    sweep_attempts(place, [StagingPlace(place, 2, "c")])
    assert "2/others" in staged(three)


def test_the_last_window_whose_files_are_in_place_is_noted(tmp_path):
    place = str(tmp_path)
    assert not is_finished(place, 1)
    for window in (1, 1, 4):
        note_finished(place, window)
        assert is_finished(place, window)
    assert not is_finished(place, 1)


class Disk:
    """A disk that takes what it is given when it is let, or fails."""

    full_after = 1000

    def __init__(self) -> None:
        self.lets = threading.Semaphore(0)
        self.held: list[int] = []

    def sync(self, file: int) -> None:
        assert self.lets.acquire(timeout=within(30))
        if len(self.held) == self.full_after:
            raise OSError(errno.ENOSPC, "the disk is full")
        self.held.append(os.fstat(file).st_ino)

    def let(self, count: int) -> None:
        self.lets.release(count)


class Unsynced(Exception):
    pass


@pytest.fixture
def disk(monkeypatch):
    disk = Disk()
    monkeypatch.setattr(os, "fsync", disk.sync)
    yield disk
    disk.let(100)


def written(folder: Path, name: str) -> BinaryIO:
    stream = (folder / name).open("wb")
    stream.write(name.encode())
    return stream


def named(name: str) -> syncing_module.Blame:
    return lambda error: Unsynced(f"{name}: {error.strerror}")


def sync_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("dagkit-sync")]


def test_who_adds_a_file_goes_on_and_who_waits_finds_it_on_the_disk(tmp_path, disk):
    syncing = Syncing()
    streams = [written(tmp_path, name) for name in "abc"]
    for stream in streams:
        syncing.add(stream, named(stream.name))
    assert disk.held == []
    disk.let(3)
    syncing.wait()
    assert disk.held == [(tmp_path / name).stat().st_ino for name in "abc"]
    assert all(stream.closed for stream in streams)
    assert sync_threads() == []


def test_few_files_are_open_however_slow_the_disk_is(tmp_path, disk, monkeypatch):
    monkeypatch.setattr(syncing_module, "MOST_BEHIND", 2)
    syncing, streams = Syncing(), [written(tmp_path, str(number)) for number in range(9)]
    for number, stream in enumerate(streams):
        if number >= 2:
            disk.let(1)
        syncing.add(stream, named(str(number)))
        assert sum(not behind.closed for behind in streams[: number + 1]) <= 2
    disk.let(9)
    syncing.wait()
    assert len(disk.held) == 9


def test_what_is_abandoned_is_closed_and_nothing_runs_any_more(tmp_path, disk):
    syncing = Syncing()
    streams = [written(tmp_path, name) for name in "abc"]
    for stream in streams:
        syncing.add(stream, named("none"))
    abandoning = threading.Thread(target=syncing.abandon)
    abandoning.start()
    disk.let(len(streams))
    abandoning.join(timeout=within(30))
    assert not abandoning.is_alive()
    assert all(stream.closed for stream in streams)
    assert sync_threads() == []
    syncing.wait()
