"""Finding files by patterns that arrive on an input port."""

import logging
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import chain

from pydantic import NonNegativeInt, PrivateAttr

from dagkit import Context, InputPort, OutputPort, SplittableOperator, State
from dagkit.api.files import FileState
from dagkit.ranges import OFFSET_INFINITY, OffsetRange, RestrictionTracker
from dagkit.urls import absolute, shown
from dagkit_operators.compression.index_folder import IndexFolder
from dagkit_operators.compression.opening import content_length_of, found_codec
from dagkit_operators.filesystem.access import Found, exists, reading_from
from dagkit_operators.filesystem.identities import Identities
from dagkit_operators.filesystem.path_patterns import files_beside, files_like, is_pattern, missing, would_match
from dagkit_operators.finding.splitter import KEPT_OF_GONE
from dagkit_operators.payloads import BLOCK_SIZE, FileInfo

_THEN = "or give another pattern"
_log = logging.getLogger(__name__)


def _only(path: str | None, files: Iterator[Found]) -> Iterator[Found]:
    return (found for found in files if path in (None, found.path))


class MatchFiles(SplittableOperator[str]):
    """Finds the files that match patterns, and sends each once; with `continuously`, also files that appear later.

    A pattern is the path or URL of a file, of a folder with all its content, or one with `*`, `?`, `[]` or `**`. Files
    are sent in the order of their last change, and by path if that is equal. An empty file is skipped until it has
    content.

    A local file is recognised by its inode and by the first and last bytes of its known content. So it is not sent
    again after it grew or was renamed; a file that reuses its name or inode is a new file. A remote file is recognised
    by its name, and an object of S3, Google Cloud Storage or Azure also by its version or etag.
    """

    kind = "files.match/1"
    partitionable = False
    reads_positions = False
    patterns = InputPort(str)
    files = OutputPort(FileInfo)

    continuously: bool = False
    """Whether a pattern is scanned repeatedly for as long as the application runs."""
    interval_millis: NonNegativeInt = 5000
    """The time between two scans."""

    known = State[dict[str, list[str]]](dict)
    """The identities of the files that each pattern matched.

    Those of deleted files are kept until they outnumber the existing files by a thousand.
    """

    _home: str = PrivateAttr(default="")
    _indexes: IndexFolder = PrivateAttr(default=IndexFolder(""))

    def setup(self, context: Context) -> None:
        self._home = context.home
        self._indexes = IndexFolder(context.application_path)

    def would_find(self, paths: Sequence[str], items: Sequence[object]) -> Iterator[str]:
        """The paths at which it would find a file. Before a run, only patterns of `Items` are known."""
        for pattern in items:
            if isinstance(pattern, str):
                yield from would_match(pattern, paths)

    def places(self, items: Sequence[object]) -> Sequence[str]:
        """The patterns that are known: those of `Items`, and those that arrived before."""
        return list(dict.fromkeys([*(item for item in items if isinstance(item, str)), *self.known]))

    def file_states(self, items: Sequence[object], path: str | None = None) -> Iterator[FileState]:
        """The files that exist in the folders of the patterns, or only the one at a path."""
        known = Identities(chain.from_iterable(self.known.values()))
        matched = set[str]()
        for pattern in self.places(items):
            for found in _only(path, files_like(absolute(pattern, self._home))):
                if found.path not in matched:
                    matched.add(found.path)
                    identity, was_known = known.identify(found.path, found.version)
                    if identity is None:
                        yield FileState(found.path, "pending", "it is empty")
                    else:
                        yield FileState(found.path, "seen" if was_known else "new")
        for pattern in self.places(items):
            for found in _only(path, files_beside(absolute(pattern, self._home))):
                if found.path not in matched:
                    matched.add(found.path)
                    yield FileState(found.path, "ignored", f"it does not match {pattern!r}, or is hidden or unfinished")

    def initial_restriction(self, element: str) -> OffsetRange:  # noqa: ARG002 - the same for every pattern
        """The numbers of the scans to do."""
        return OffsetRange(0, OFFSET_INFINITY if self.continuously else 1)

    def process(self, element: str, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[FileInfo]:
        look = tracker.current_restriction().start
        place = absolute(element, self._home)
        with reading_from(place, _THEN):
            found = list(self._new(element, place, first=look == 0))
        # a later scan without new files is not claimed but deferred, so that a run until idle can end
        if (found or look == 0) and tracker.try_claim(look):
            yield from found
        tracker.defer_remainder(timedelta(milliseconds=self.interval_millis))

    def _new(self, pattern: str, place: str, *, first: bool) -> Iterator[FileInfo]:
        """The files that were not known before. They are recorded as known."""
        found = sorted(files_like(place), key=lambda file: (file.modified_millis, file.path))
        if not found and first and not is_pattern(pattern) and not exists(place):
            if not self.continuously:
                raise missing(place, _THEN)
            _log.warning("there is no file or directory %s; each scan looks for it again", shown(place))
        known = Identities(chain.from_iterable(self.known.values()))
        there: dict[str, None] = {}
        for file in found:
            identity, was_known = known.identify(file.path, file.version)
            if identity is None:
                continue
            if not was_known:
                codec = found_codec(file, "auto", BLOCK_SIZE)
                content_length = content_length_of(file, codec, self._indexes)
                yield FileInfo(file.path, file.length, file.modified_millis, 1, identity, content_length)
            there[identity] = None
        gone = [identity for identity in self.known.get(pattern, []) if not known.was_identified(identity)]
        self.known[pattern] = [*(gone if len(gone) <= len(there) + KEPT_OF_GONE else []), *there]
