"""A source that an author writes in one class: what a server returns page by page."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Generic

from pydantic import NonNegativeFloat, NonNegativeInt, PrivateAttr
from typing_extensions import TypeVar

from dagkit import InputOperator, OutputPort, State
from dagkit_operators.connectors.answers import answered

T = TypeVar("T", default=Any)


class PagedSource(InputOperator, Generic[T]):
    """Sends the items of a list that a server returns page by page, each item once. A subclass reads a page.

    The cursor of the next page is recorded with the items of a page. If the server does not answer, or answers that it
    cannot now, the page is read again after a pause: for errors of connections, for answers such as 429 and 503 that
    urllib, requests or httpx raise, and for `Unavailable`. It runs on the driver.
    """

    output = OutputPort[T]()

    poll_millis: NonNegativeInt = 5000
    """The time after which a source that has read all asks for more."""
    waits_seconds: NonNegativeFloat | None = None
    """How long a run waits for a server that is away before it fails; None: until it is stopped."""

    cursor = State[Any](None)
    _has_more: bool = PrivateAttr(default=False)
    """Whether another page follows the last one."""

    @abstractmethod
    def read_page(self, cursor: Any) -> tuple[Iterable[T], Any]:
        """Return the items of a page, and the cursor at which the next one will begin.

        The first cursor is None; others are values that JSON can hold. A page without items whose cursor stays the same
        ends the list for the present.
        """

    def emit_tuples(self) -> None:
        before = self.cursor
        count = 0
        with answered():
            items, following = self.read_page(before)
            for count, item in enumerate(items, 1):  # noqa: B007 - only whether there was one
                self.output.emit(item)
        # None is the first cursor, so a later None would begin again.
        if (count and following == before) or (following is None and before is not None):
            raise ValueError(
                f"read_page of {type(self).__name__} returned the cursor {following!r} after {before!r}, "
                "so items would be sent again: return the cursor behind the last item, as the last page "
                "and the number of its items that were sent"
            )
        self.cursor, self._has_more = following, following != before

    def looks_again_in_millis(self) -> int:
        return 0 if self._has_more else self.poll_millis

    @property
    def outage_limit_seconds(self) -> float | None:
        return self.waits_seconds

    @property
    def holds_launch(self) -> bool:
        """Also after a page without items: the next one may have some."""
        return self._has_more

    @property
    def has_unrecorded(self) -> bool:
        """A page without items has moved the cursor."""
        return self._has_more
