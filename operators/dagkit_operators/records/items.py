"""Items that are known in advance: names, patterns, initial numbers."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import Annotated, Any, Generic

from pydantic import AfterValidator, BaseModel, Field, PrivateAttr
from typing_extensions import TypeVar

from dagkit import Context, InputOperator, OutputPort, State
from dagkit.api.adapters import adapter_of

MOST = 10_000
"""The most items sent by one call of `emit_tuples`."""

DIGEST = 16
"""The characters of a digest."""

T = TypeVar("T")


class Items(InputOperator, Generic[T]):
    """Sends each given item once. If the list changes, the next launch sends the items that are new in it."""

    kind = "items.given/1"
    output = OutputPort[T]()

    items: Annotated[Sequence[T], AfterValidator(tuple)] = Field(default=..., kw_only=False)
    """The items to send, in this order."""

    sent = State(0)
    """The number of items sent so far."""
    digests = State("")
    """DIGEST characters for each item sent. Earlier versions kept the number alone: they sent the first ones."""
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
        # Earlier versions saved the number alone: the first items of the list count as sent.
        self._is_upgraded = len(self.digests) < self.sent * DIGEST
        if self._is_upgraded:
            first = self.items[: self.sent]
            self.digests, self.sent = "".join(map(_digest, first)), len(first)
        self._unsent = _without(self.digests, self.items) if self.digests else iter(self.items)

    def emit_tuples(self) -> None:
        items = list(islice(self._unsent, MOST))
        for item in items:
            self.output.emit(item)
        if items:
            self.sent += len(items)
            self.digests += "".join(map(_digest, items))


def _without(sent: str, items: Iterable[T]) -> Iterator[T]:
    """Yield the items that were not sent. Of equal items, as many as were sent are left out."""
    left = Counter(sent[start : start + DIGEST] for start in range(0, len(sent), DIGEST))
    for item in items:
        digest = _digest(item)
        if left[digest]:
            left[digest] -= 1
        else:
            yield item


def _digest(item: object) -> str:
    """The same for equal items in each process, also for sets, whose order differs between processes."""
    written = json.dumps(_plain(item), sort_keys=True)
    return hashlib.blake2b(written.encode(), digest_size=DIGEST // 2).hexdigest()


def _plain(item: Any) -> Any:
    """An item as JSON that names its class. Raise Unwritable if it has no JSON form."""
    kind = type(item).__qualname__
    if isinstance(item, set | frozenset):
        return [kind, sorted(json.dumps(_plain(member), sort_keys=True) for member in item)]
    if isinstance(item, Mapping):
        return [kind, sorted(json.dumps([_plain(key), _plain(item[key])], sort_keys=True) for key in item)]
    if isinstance(item, list | tuple):
        return [kind, *map(_plain, item)]
    if is_dataclass(item):
        return [kind, [[field.name, _plain(getattr(item, field.name))] for field in fields(item)]]
    if isinstance(item, BaseModel):
        return [kind, [[name, _plain(getattr(item, name))] for name in type(item).model_fields]]
    return [kind, adapter_of(type(item)).dump(item)]
