"""Keeping the items that a predicate holds for."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Self

from pydantic import model_validator
from typing_extensions import TypeVar

from dagkit import Batch, Column, InputPort, Listed, OutputPort, RowOperator
from dagkit_operators.looking import seen, seen_column
from dagkit_operators.masks import mask_of, masked

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T", default=Any)


class Filter(RowOperator, Generic[T]):
    """Passes on the items that the predicate holds for, and drops the others.

    Of a record it is the value that is looked at, of any other item the whole, unless `on` names a field. The predicate
    is any function of one value, or an expression such as `~value.starts_with(".")`, which looks at whole columns where
    it can. `batch` is a function of a whole column, for whoever knows a faster way.
    """

    kind = "records.filter/1"
    stateless = True
    input = InputPort[T]()
    output = OutputPort[T]()

    predicate: Callable[[Any], Any] | None = None
    """Asked of each value."""
    batch: Callable[[Column], Any] | None = None
    """Asked of many values at once, instead: for which of them it holds."""
    on: str | None = None
    """The field that is looked at; none: the value of a record, and any other item as a whole."""

    def __init__(self, predicate: Callable[[Any], Any] | None = None, /, **properties: Any) -> None:
        super().__init__(**({} if predicate is None else {"predicate": predicate}), **properties)

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.predicate is None) == (self.batch is None):
            raise ValueError("it needs a predicate, or batch, and not both")
        return self

    def process(self, item: T) -> Iterator[T]:
        value = seen(item, self.on)
        if self.predicate(value) if self.predicate is not None else self._mask(Listed([value]))[0].as_py():
            yield item

    def process_batch(self, batch: Batch[T]) -> Batch[T]:
        return batch.where(self._mask(seen_column(batch, self.on))) if len(batch) else batch

    def _mask(self, column: Column) -> "pa.BooleanArray":
        if self.batch is not None:
            return masked(self.batch(column), len(column))
        assert self.predicate is not None, "a filter without a predicate is a fault that was told"
        return mask_of(self.predicate, column)
