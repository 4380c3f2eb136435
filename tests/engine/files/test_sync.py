"""Files reach the disk while work continues; a waiting caller knows that all of them did, or which did not."""

import errno
import os
import threading
from pathlib import Path
from typing import BinaryIO

import pytest

from dagkit.engine.files import pieces as syncing_module
from dagkit.engine.files.pieces import Syncing
from tests.patience import within


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
