"""The files that a file source of Structured Streaming has read, from the checkpoint of its query.

A checkpoint has a folder `offsets` with a file for each micro-batch that was planned, `commits` with one for each that
has ended, and `sources/N` with the log of source N. A line of that log names a file and the number of the log's batch
that took it; an offset of the source is such a number. Every tenth file of the log, as `9.compact`, repeats all lines
before it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from dagkit.errors import RunFailure, printable
from dagkit.ground.urls import absolute, below, is_url, local_path, plain, resolved, shown, without_links
from dagkit.ledger.format.hashing import hash_of

_VERSION = "v1"
_LOG = re.compile(r"([0-9]+)([.]compact)?")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(/.*)")
_SAME_SCHEME = {"s3a": "s3", "s3n": "s3"}
"""Schemes under which Hadoop and dagkit know the same store."""


def _checkpoint_unreadable(problem: str, remedy: str) -> RunFailure:
    """A folder is no checkpoint of a file source of Structured Streaming that can be read."""
    return RunFailure(problem, remedy, code="checkpoint-unreadable")


@dataclass(frozen=True, slots=True)
class ReadFiles:
    """The files that one source has read."""

    checkpoint: str
    query: str
    """The ID of the query."""
    source: int
    batch: int
    """The last micro-batch whose files are counted as read; -1 before the first."""
    in_flight: int | None
    """The micro-batch that was planned and has not ended, if there is one."""
    files: Mapping[str, int]
    """The files that were read: the time of change that Spark noted, in milliseconds, by `identity`."""
    unfinished: frozenset[str]
    """The files of the micro-batch in flight, if they are not counted as read."""

    @property
    def digest(self) -> str:
        """A digest of the files with their times."""
        return hash_of("".join(f"{time} {path}\n" for path, time in sorted(self.files.items())).encode())


def identity(place: str) -> str:
    """The form of a path by which a file is recognised, however Spark or dagkit writes it, and through any links."""
    url = _URL.fullmatch(place.partition("?")[0]) if is_url(place) else None
    if url is None:
        folder, _, name = local_path(place).rpartition("/")
        return f"{without_links(folder or '/').rstrip('/')}/{name}"
    scheme, host, _ = url.groups()
    path = plain(place).partition("://")[2].partition("/")[2]
    return f"{_SAME_SCHEME.get(scheme, scheme)}://{host or ''}/{path}"


def files_read(place: str, source: int | None, *, in_flight_is_read: bool) -> ReadFiles:
    """The files that a source has read, where there is one, the only file source.

    Raise `checkpoint-unreadable` if the folder is no checkpoint, or has no such source.
    """
    checkpoint = _Checkpoint(absolute(place))
    query = checkpoint.json_in("metadata").get("id", "")
    planned, ended = checkpoint.numbers("offsets"), checkpoint.numbers("commits")
    if not planned:
        raise _checkpoint_unreadable(
            f"{shown(checkpoint.place)} is no checkpoint of Structured Streaming: it has no offsets",
            "name the checkpointLocation of the query",
        )
    batch = max(ended, default=-1)
    in_flight = max(planned) if max(planned) > batch else None
    chosen = checkpoint.source(source, max(planned))
    if in_flight is not None and in_flight_is_read:
        batch = in_flight
    read_up_to = checkpoint.offset(batch, chosen) if batch >= 0 else -1
    planned_up_to = checkpoint.offset(max(planned), chosen)
    # Spark may have listed more files, which no micro-batch has taken.
    entries = list(checkpoint.entries(chosen, planned_up_to))
    return ReadFiles(
        checkpoint.place,
        str(query),
        chosen,
        batch,
        in_flight,
        {path: time for path, time, number in entries if number <= read_up_to},
        frozenset(path for path, _, number in entries if read_up_to < number <= planned_up_to),
    )


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """The folder of a checkpoint."""

    place: str

    def source(self, wanted: int | None, batch: int) -> int:
        """The number of the wanted source, or of the only file source."""
        offsets = self._offsets(batch)
        of_files = [number for number, text in enumerate(offsets) if _log_offset(text) is not None]
        if wanted is None and len(of_files) != 1:
            there = ", ".join(map(str, of_files)) or "none"
            raise _checkpoint_unreadable(
                f"{shown(self.place)} has {len(of_files)} file sources, and one must be chosen",
                f"choose one with --source; file sources: {there}",
            )
        chosen = of_files[0] if wanted is None else wanted
        if chosen not in of_files:
            raise _checkpoint_unreadable(
                f"source {chosen} of {shown(self.place)} is no file source that has read anything",
                f"file sources: {', '.join(map(str, of_files)) or 'none'}; only their lists of files can be taken over",
            )
        return chosen

    def offset(self, batch: int, source: int) -> int:
        """The offset of a file source after a micro-batch; -1 if it had read nothing."""
        offsets = self._offsets(batch)
        found = _log_offset(offsets[source]) if source < len(offsets) else None
        return -1 if found is None else found

    def entries(self, source: int, last: int) -> Iterator[tuple[str, int, int]]:
        """The files of a source's log up to a number, each with its time and the number of its batch."""
        folder = f"sources/{source}"
        logs = {int(match[1]): bool(match[2]) for match in map(_LOG.fullmatch, self._names(folder)) if match}
        first = max((number for number, is_compact in logs.items() if is_compact and number <= last), default=0)
        for number in range(first, last + 1):
            if number not in logs:
                raise _checkpoint_unreadable(
                    f"{shown(self.place)}/{folder} has no file {number}, so files that Spark has read are unknown",
                    "restore the checkpoint; without this file, the query itself cannot continue either",
                )
            name = f"{folder}/{number}{'.compact' if logs[number] else ''}"
            for line in self._lines(name):
                yield self._entry(name, line)

    def _entry(self, name: str, line: str) -> tuple[str, int, int]:
        try:
            entry = json.loads(line)
            return _unquoted(entry["path"]), int(entry["timestamp"]), int(entry["batchId"])
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise self._unreadable(name, f"a line names no file: {line[:100]!r}") from error

    def _offsets(self, batch: int) -> list[str]:
        """The offsets of the sources in a micro-batch, after the line of its metadata."""
        return self._lines(f"offsets/{batch}")[1:]

    def numbers(self, folder: str) -> list[int]:
        """The micro-batches for which the folder has a file."""
        return [int(name) for name in self._names(folder) if name.isdigit()]

    def json_in(self, name: str) -> Mapping[str, Any]:
        """A file that is one JSON object."""
        try:
            found = json.loads(self._text(name))
        except (ValueError, RecursionError) as error:
            raise self._unreadable(name, "it is not JSON") from error
        return found if isinstance(found, dict) else {}

    def _lines(self, name: str) -> list[str]:
        """The lines of a log's file after that of its version."""
        version, *lines = self._text(name).splitlines() or [""]
        if version != _VERSION:
            raise self._unreadable(name, f"its version is {version[:20]!r}, and dagkit reads {_VERSION}")
        return lines

    def _names(self, folder: str) -> list[str]:
        place = below(self.place, folder) if is_url(self.place) else f"{self.place}/{folder}"
        if not is_url(place):
            return [path.name for path in Path(place).iterdir()] if Path(place).is_dir() else []
        import pyarrow.fs as pa_fs  # noqa: PLC0415 - not loaded for local folders

        filesystem, inner, _ = resolved(place)
        return [one.base_name for one in filesystem.get_file_info(pa_fs.FileSelector(inner, allow_not_found=True))]

    def _text(self, name: str) -> str:
        place = below(self.place, name) if is_url(self.place) else f"{self.place}/{name}"
        try:
            if not is_url(place):
                return Path(place).read_bytes().decode()
            filesystem, inner, _ = resolved(place)
            with filesystem.open_input_stream(inner) as file:
                return bytes(file.read()).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise self._unreadable(name, str(error)) from error

    def _unreadable(self, name: str, why: str) -> RunFailure:
        return _checkpoint_unreadable(
            f"{shown(self.place)}/{name} cannot be read as part of a checkpoint of Structured Streaming: "
            f"{printable(why)}",
            "name the checkpointLocation of a query that Spark can continue",
        )


def _log_offset(text: str) -> int | None:
    """The offset of a file source; None for another source, and before the first file."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_of_files = isinstance(found, dict) and found.keys() == {"logOffset"} and type(found["logOffset"]) is int
    return int(found["logOffset"]) if is_of_files else None


def _unquoted(path: str) -> str:
    """The identity of a file that Spark names by a URL whose path is percent-quoted."""
    url = _URL.fullmatch(path)
    if url is None or url[1] == "file":
        return identity(unquote(url[3] if url else path))
    return f"{_SAME_SCHEME.get(url[1], url[1])}://{url[2] or ''}{unquote(url[3])}"
