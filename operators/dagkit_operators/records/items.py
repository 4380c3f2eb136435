"""Items that are known in advance: names, patterns, initial numbers."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Annotated, Generic

from pydantic import AfterValidator, Field, PrivateAttr
from typing_extensions import TypeVar

from dagkit import Context, InputOperator, OutputPort, State
from dagkit.api.adapters import adapter_of
from dagkit.api.tagged import Unwritable

MOST = 10_000
"""The most items sent by one call of `emit_tuples`."""

T = TypeVar("T")


class Items(InputOperator, Generic[T]):
    """Sends each given item once. If the list changes, the next launch sends the items that are new in it."""

    kind = "items.given/1"
    output = OutputPort[T]()

    items: Annotated[Sequence[T], AfterValidator(tuple)] = Field(default=..., kw_only=False)
    """The items to send, in this order."""

    sent = State(0)
    """The number of items sent so far."""
    digests = State[list[str]](list)
    """Sixteen characters for each item sent. Earlier versions kept the number alone: they sent the first ones."""
    _unsent: Iterator[T] = PrivateAttr(default_factory=lambda: iter(()))
    _is_upgraded: bool = PrivateAttr(default=False)
    """Whether the digests of items that an earlier version sent were added, and are to be kept."""

    def known_items(self) -> tuple[T, ...]:
        """The items that this operator sends."""
        return tuple(self.items)

    @property
    def has_unrecorded(self) -> bool:
        return self._is_upgraded

    def setup(self, context: Context) -> None:  # noqa: ARG002 - each launch compares the list
        self._is_upgraded = len(self.digests) < self.sent
        if self._is_upgraded:
            self.digests = [_digest(item) for item in self.items[: self.sent]]
        self._unsent = _without(self.digests, self.items) if self.digests else iter(self.items)

    def emit_tuples(self) -> None:
        for item in islice(self._unsent, MOST):
            self.output.emit(item)
            self.sent += 1
            self.digests.append(_digest(item))


def _without(sent: Iterable[str], items: Iterable[T]) -> Iterator[T]:
    """Yield the items that were not sent. Of equal items, as many as were sent are left out."""
    left = Counter(sent)
    for item in items:
        digest = _digest(item)
        if left[digest]:
            left[digest] -= 1
        else:
            yield item


def _digest(item: object) -> str:
    try:
        written = json.dumps(adapter_of(type(item)).dump(item), sort_keys=True)
    except Unwritable:  # a value that only the declared type of the items can write
        written = repr(item)
    return hashlib.blake2b(written.encode(errors="surrogatepass"), digest_size=8).hexdigest()
