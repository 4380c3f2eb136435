"""A source that an author writes in one class: what a server returns page by page."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Generic

from pydantic import NonNegativeInt
from typing_extensions import TypeVar

from dagkit import InputOperator, OutputPort, State

MOST_EMPTY_PAGES = 100
"""How many pages without items a look reads at most, so that requests to stop are heard between looks."""

T = TypeVar("T", default=Any)


class PagedSource(InputOperator, Generic[T]):
    """Sends the items of a list that a server returns page by page, each item once. A subclass reads a page.

    The cursor of the next page is recorded with the items of a page. If the server does not answer, raise
    `Unavailable`: the page is read again after a pause. It runs on the driver.
    """

    output = OutputPort[T]()

    poll_millis: NonNegativeInt = 5000
    """The time after which a source that has read all asks for more."""

    cursor = State[Any](None)

    @abstractmethod
    def read_page(self, cursor: Any) -> tuple[Iterable[T], Any]:
        """Return the items of a page and the cursor of the next one; the same cursor if there is none at present.

        The first cursor is None; others are values that JSON can hold.
        """

    def emit_tuples(self) -> None:
        for _ in range(MOST_EMPTY_PAGES):
            items, following = self.read_page(self.cursor)
            is_last, self.cursor = following == self.cursor, following
            count = 0
            for count, item in enumerate(items, 1):  # noqa: B007 - only whether there was one
                self.output.emit(item)
            if count or is_last:
                return

    def looks_again_in_millis(self) -> int:
        return self.poll_millis
