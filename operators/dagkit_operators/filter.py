"""Keeping the items that a predicate holds for."""

from collections.abc import Callable, Iterator
from typing import Any, Generic, Self

from pydantic import model_validator
from typing_extensions import TypeVar

from dagkit import Batch, Column, Constant, InputPort, Listed, OutputPort, RowOperator
from dagkit_operators.contexts import ReadLines
from dagkit_operators.expressions import Expression
from dagkit_operators.inlined import keeping
from dagkit_operators.looking import OfOne, column_of, seen, seen_field
from dagkit_operators.masks import each, masked

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

    predicate: OfOne | None = None
    """Asked of each value."""
    batch: OfOne | None = None
    """Asked of many values at once, instead: for which of them it holds."""
    on: str | None = None
    """The field that is looked at; none: the value of a record, and any other item as a whole."""

    def __init__(self, predicate: Callable[[Any], Any] | None = None, /, **properties: Any) -> None:
        super().__init__(**({} if predicate is None else {"predicate": predicate}), **properties)

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.predicate is None) == (self.batch is None):
            raise ValueError("it needs a predicate, or batch, and not both")
        if isinstance(self.predicate, Expression) and not self.predicate.is_condition:
            told = f"{self.predicate!r} is no condition, and would keep what is not empty"
            raise ValueError(f"{told}: compare it, as in {self.predicate!r} == …")
        return self

    def process(self, item: T) -> Iterator[T]:
        value = seen(item, self.on)
        if self.predicate(value) if self.predicate is not None else masked(self._asked(Listed([value])), 1)[0].as_py():
            yield item

    def process_batch(self, batch: Batch[T]) -> Batch[T] | Iterator[Batch[T]]:
        if not len(batch):
            return batch
        field = seen_field(batch, self.on)
        column = column_of(batch, field)
        if self.predicate is None:
            return batch.where(masked(self._asked(column), len(column)))
        alone = stands_alone(batch, field)
        if isinstance(self.predicate, Expression):
            kept = self.predicate.kept(column) if alone else None
            if kept is not None:
                return remade(batch, field, kept)
            known = self.predicate.known(column)
            if known is not None:
                return batch.where(known)
        if not alone:
            return batch.where(each(self.predicate, column))
        if isinstance(column, ReadLines):
            return (remade(batch, field, self._passing(part)) for part in column.pieces())
        return remade(batch, field, self._passing(column))

    def _passing(self, column: Column) -> Listed:
        """The values for which the predicate holds, asked of each.

        They stay the texts that they were decoded to, which costs less than finding them in their bytes again.
        """
        assert self.predicate is not None, "a filter that is told nothing is a fault that was told"
        return Listed(keeping(self.predicate)(column.values()))

    def _asked(self, column: Column) -> Any:
        assert self.batch is not None, "a filter that is told nothing is a fault that was told"
        return self.batch(column)


def stands_alone(batch: Batch[T], field: str | None) -> bool:
    """Whether a field, or the item itself, is all that tells one item from another: other fields are constant."""
    if field is None:
        return batch.made_by is None
    fields = batch.columns.items()
    return field in batch.columns and all(name == field or isinstance(column, Constant) for name, column in fields)


def remade(batch: Batch[T], field: str | None, values: Column) -> Batch[T]:
    """Such items as the batch has, of these values, where that is all that tells them apart."""
    if field is None:
        return Batch.of_column(values)
    columns = {
        name: Constant(other.value, len(values)) if isinstance(other, Constant) and name != field else values
        for name, other in batch.columns.items()
    }
    return Batch(columns, batch.made_by)
