"""Finding files by patterns, wherever in a graph the patterns come from."""

import logging
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import chain

from pydantic import NonNegativeInt, PrivateAttr

from dagkit import Context, InputPort, OutputPort, SplittableOperator, State
from dagkit.ranges import OFFSET_INFINITY, OffsetRange, RestrictionTracker
from dagkit.urls import absolute, shown
from dagkit_operators.blocks import FileInfo
from dagkit_operators.identities import Identities
from dagkit_operators.places import exists, files_like, is_pattern, missing, reading_from, would_match
from dagkit_operators.splitter import KEPT_OF_GONE

_THEN = "or give another pattern"
_log = logging.getLogger(__name__)


class MatchFiles(SplittableOperator[str]):
    """Finds the files that patterns mean, each file once; of what is there now, or, `continuously`, of what comes, too.

    A pattern is the path or URL of a file, of a folder with all that is in it, or one with `*`, `?`, `[]` or `**`.
    Files come in the order of their last change, those of one instant by path. An empty file is passed over until it
    holds something.

    A local file is known again by its number on its device, and by how that begins and ends which it held. So it is not
    sent again when it grew or was renamed, and what takes its place, under its name or by its number, is another file.
    Any other file is known by its name.
    """

    kind = "files.match/1"
    partitionable = False
    reads_positions = False
    patterns = InputPort(str)
    files = OutputPort(FileInfo)

    continuously: bool = False
    """Whether a pattern is looked at again and again, for as long as the application runs, from its first look on."""
    interval_millis: NonNegativeInt = 5000
    """The time between two looks."""

    known = State[dict[str, list[str]]](dict)
    """The identities of the files that each pattern meant; of those that are gone, a thousand more than are there."""

    _home: str = PrivateAttr(default="")

    def setup(self, context: Context) -> None:
        self._home = context.home

    def would_find(self, path: str, items: Sequence[object]) -> bool:
        """Whether it would find a file at this path; only patterns of `Items` are known before the application runs."""
        return any(isinstance(pattern, str) and would_match(pattern, path) for pattern in items)

    def initial_restriction(self, element: str) -> OffsetRange:  # noqa: ARG002 - every pattern is looked at so often
        """The looks that are to be taken."""
        return OffsetRange(0, OFFSET_INFINITY if self.continuously else 1)

    def process(self, element: str, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[FileInfo]:
        look = tracker.current_restriction().start
        place = absolute(element, self._home)
        with reading_from(place, _THEN):
            found = list(self._new(element, place, first=look == 0))
        # a further look that finds nothing was in vain: it is put off as it is, and a run until idle ends with it
        if (found or look == 0) and tracker.try_claim(look):
            yield from found
        tracker.defer_remainder(timedelta(milliseconds=self.interval_millis))

    def _new(self, pattern: str, place: str, *, first: bool) -> Iterator[FileInfo]:
        """The files that were not known before; from now on they are."""
        found = sorted(files_like(place), key=lambda found: (found.modified_millis, found.path))
        if not found and first and not is_pattern(pattern) and not exists(place):
            if not self.continuously:
                raise missing(place, _THEN)
            _log.warning("there is no file or directory %s; it is looked for again", shown(place))
        known = Identities(chain.from_iterable(self.known.values()))
        there: dict[str, None] = {}
        for each in found:
            identity, was_known = known.meet(each.path)
            if identity is None:
                continue
            if not was_known:
                yield FileInfo(each.path, each.length, each.modified_millis, 1, identity)
            there[identity] = None
        gone = [identity for identity in self.known.get(pattern, []) if not known.has_met(identity)]
        self.known[pattern] = [*(gone if len(gone) <= len(there) + KEPT_OF_GONE else []), *there]
