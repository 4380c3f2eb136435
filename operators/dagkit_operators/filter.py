"""Keeping the records that a predicate holds for."""

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from dagkit import InputPort, OutputPort, RowOperator
from dagkit_operators.blocks import Record

T = TypeVar("T")


class Filter(RowOperator, Generic[T]):
    """Passes on the records whose value the predicate holds for, and drops the others."""

    kind = "records.filter/1"
    input = InputPort[Record[T]]()
    output = OutputPort[Record[T]]()

    predicate: Callable[[T], bool]
    """Asked of each record's value."""

    def __init__(self, predicate: Callable[[T], bool] | None = None, /, **properties: Any) -> None:
        super().__init__(**({} if predicate is None else {"predicate": predicate}), **properties)

    def process(self, item: Record[T]) -> Iterator[Record[T]]:
        if self.predicate(item.value):
            yield item
