"""Dividing files that arrive on an input port into blocks."""

import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Literal

from pydantic import PrivateAttr

from dagkit import Block, InputPort, OutputPort, SplittableOperator, State
from dagkit.errors import InputUnreadable
from dagkit.ground.urls import absolute, is_url, shown
from dagkit.ranges import (
    OFFSET_UNKNOWN,
    OffsetRange,
    OffsetRestrictionTracker,
    RestrictionTracker,
    SequentialRestrictionTracker,
)
from dagkit_operators.compression.opening import facts_of
from dagkit_operators.filesystem.access import Found, is_bad_file, reading_from
from dagkit_operators.filesystem.identities import witness_in
from dagkit_operators.filesystem.path_patterns import missing
from dagkit_operators.filesystem.snapshot import refuse_changed
from dagkit_operators.finding.contents import AsksForReceipts, StillChanging, receipt_of, settled_hash
from dagkit_operators.finding.splitting import Cut, SplitsFiles
from dagkit_operators.payloads import FileInfo

_THEN = "or send the path of a file that exists"
_log = logging.getLogger(__name__)
_LOOKS_AGAIN = timedelta(seconds=1)
"""How long a file that is being changed waits, if a receipt is wanted for it."""


class FileSplitterBase(AsksForReceipts, SplitsFiles, SplittableOperator[FileInfo]):
    """Describes the blocks of the files that arrive at `input`, each as it was when it arrived.

    The path of a `FileInfo` is enough. Files are divided in the order of their arrival. The offsets of its work are
    those of the file: offset 0 stands for its metadata, and each byte for the offset after its own. A block of the
    content of a compressed file has the offset of its share of the file.
    """

    kind = "files.splitter.base/1"
    position_unit = "byte"
    reads_positions = False
    input = InputPort(FileInfo, main=True)
    missing = OutputPort(FileInfo)

    file: str | None = None
    """A URL of the filesystem that holds all files whose paths are no URLs; None: this machine's."""

    on_missing: Literal["fail", "send"] = "fail"
    """What happens if a file does not exist: the run fails until it is there, or the file is sent to `missing`."""

    on_bad_file: Literal["stop", "quarantine"] = "stop"
    """What to do with a file whose status, or whose content for a receipt, cannot be read: stop the run, or set the
    file aside and continue. `dagkit work ls` lists it, and `dagkit work retry` puts it back.
    """

    cuts = State[dict[str, Cut]](dict)
    """The files that are being split, by the names of their sources."""

    _sent: int = PrivateAttr(default=0)
    """The blocks and the files without blocks that were sent in this window."""
    _arrived: FileInfo | None = PrivateAttr(default=None)
    """The item that `get_file_info` is asked for."""

    def get_file_info(self) -> FileInfo | None:
        """The file to divide for the item that arrived: the item itself. None: it is left out.

        Override it to divide another file, whose path is enough. It is called more than once for an item, and returns
        the same each time.
        """
        return self._arrived

    def begin_window(self, window_id: int) -> None:  # noqa: ARG002 - the same for every window
        self._sent = 0

    def initial_restriction(self, element: FileInfo) -> OffsetRange:
        """The metadata and the bytes of the file, as long as it is now; of a missing one, only the metadata."""
        info = self._info_for(element)
        try:
            status = None if info is None else self._status(info)
        except InputUnreadable as error:
            if not self.sets_aside(error):
                raise
            return OffsetRange(0, OFFSET_UNKNOWN)  # `process` fails in the same way, or finds the length
        return OffsetRange(0, 1 if status is None else status.length + 1)

    def sets_aside(self, error: Exception) -> bool:
        return self.on_bad_file == "quarantine" and is_bad_file(error)

    def refuse_retry(self, element: FileInfo) -> None:
        """Raise FileChanged if the file has changed and is found again: it is divided as a whole then."""
        info = self._info_for(element)
        if info is not None and info.is_found_again:
            refuse_changed(
                Block(0, self._place_of(info.path), 0, 0, facts=facts_of(info.length, info.modified_millis, None))
            )

    def tracker(
        self,
        element: FileInfo,  # noqa: ARG002 - the same for every element
        restriction: OffsetRange,
    ) -> RestrictionTracker[OffsetRange, int]:
        """Return a tracker that splits off all unclaimed work or nothing."""
        # `cuts` has the rest of a file as a whole, and the stop of a range is the length of its file plus 1.
        return SequentialRestrictionTracker(OffsetRestrictionTracker(restriction))

    def process(self, element: FileInfo, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[Block]:
        start, stop = tracker.current_restriction().start, tracker.current_restriction().stop
        # Also deferred: a file that arrives again while its earlier reading is not all described. Both would share one
        # entry of `cuts`.
        if self._sent >= self._most or (start == 0 and element.source in self.cuts):
            tracker.defer_remainder()
            return
        cut = self.cuts.pop(element.source, None)
        if start == 0:
            info = self._info_for(element)
            if info is None:
                tracker.try_claim(stop)
                return
            status = self._status(info)
            try:
                receipt = None if status is None else self._receipt(element, status, stop - 1)
            except StillChanging:
                tracker.defer_remainder(_LOOKS_AGAIN)
                return
            if not tracker.try_claim(0):
                return
            # The file was missing when its work was measured, so that its work has no bytes. It may be there now, and
            # is reported as missing all the same.
            if status is None or (stop == 1 and status.length and self.on_missing == "send"):
                self.missing.emit(element)
                tracker.try_claim(stop)
                return
            # Bytes that were appended since it arrived belong to another reading of the file.
            status = status._replace(length=min(status.length, stop - 1))
            cut = self._begin_file(
                status,
                f"{self.next_block_id:x}",
                identity=element.identity,
                receipt=receipt,
                is_found_again=info.is_found_again,
                witness=witness_in(info.identity, status.length),
            )
            self._sent += cut is None
        while cut is not None and self._sent < self._most and (cut.is_empty or tracker.try_claim(cut.place + 1)):
            (block,), cut = self._split_next(cut, 1)
            self._sent += 1
            yield block
        if cut is None:
            tracker.try_claim(stop)
            return
        self.cuts[element.source] = cut
        tracker.defer_remainder()

    def _info_for(self, element: FileInfo) -> FileInfo | None:
        self._arrived = element
        return self.get_file_info()

    def _status(self, info: FileInfo) -> Found | None:
        """The file as it is now. If it does not exist, raise InputUnreadable unless missing files are sent."""
        place = self._place_of(info.path)
        with reading_from(place, _THEN):
            status = self.get_file_status(place) if info.path else None
        if status is not None and status.is_directory:
            _log.warning("%s is a folder, and nothing of it is read: find the files in it by MatchFiles", shown(place))
        if status is None and self.on_missing == "fail":
            raise missing(place, _THEN)
        return status

    def _receipt(self, element: FileInfo, status: Found, most: int) -> dict[str, Any] | None:
        """The facts for the receipt of a file, of which `most` bytes are read; None if no receipt is wanted.

        This operator wants one, or the operator that found the file. Raise StillChanging if the file is being changed.
        """
        folder = self.receipts if element.receipt is None else element.receipt["folder"]
        if folder is None:
            return None
        now_millis = int(self._now().timestamp() * 1000)
        divided = status._replace(length=min(status.length, most))
        return receipt_of(divided, settled_hash(status, divided.length, now_millis), folder, self._launched_in)

    def _place_of(self, path: str) -> str:
        if is_url(path) or self.file is None or not is_url(self.file):
            return absolute(path, self._launched_in)
        whole, mark, options = self.file.partition("?")
        scheme, _, rest = whole.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}/{path.lstrip('/')}{mark}{options}"
