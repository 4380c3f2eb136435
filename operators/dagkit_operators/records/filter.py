"""Keeping the items for which a predicate holds."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import compress
from typing import Any, Generic, Self

from pydantic import Field, model_validator
from typing_extensions import TypeVar

from dagkit import Batch, Column, Constant, InputPort, Listed, OutputPort, RowOperator, Rows
from dagkit_operators.contexts.line_columns import ReadLines, kept_values_of, picked_of
from dagkit_operators.records.rejecting import ItemsOf, Rejecting
from dagkit_operators.values.expressions import Expression
from dagkit_operators.values.inlined import keeping
from dagkit_operators.values.masks import mask_by_value, masked, only
from dagkit_operators.values.processed import UnaryFunction, column_of, processed_field, processed_value

T = TypeVar("T", default=Any)


class Filter(Rejecting, RowOperator, Generic[T]):
    """Passes on the items for which the predicate holds, and drops the others.

    The predicate receives the value of a record, or any other item as a whole, unless `on` names a field. It is any
    function of one value, or an expression such as `~value.starts_with(".")`, which is evaluated on whole columns where
    possible. `batch` is a function of a whole column, if you know a faster way. An item for which the predicate raises
    ValueError goes to `rejected`.
    """

    kind = "records.filter/1"
    rows = Rows.FILTERED
    stateless = True
    input = InputPort[T]()
    output = OutputPort[T](main=True)

    predicate: UnaryFunction | None = Field(default=None, kw_only=False)
    """Called with each value."""
    batch: UnaryFunction | None = None
    """Called with many values at once, instead; returns one bool for each."""
    on: str | None = None
    """The field that is tested; None: the value of a record, any other item as a whole."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.predicate is None) == (self.batch is None):
            raise ValueError("it needs a predicate, or batch, and not both")
        if isinstance(self.predicate, Expression) and not self.predicate.is_condition:
            problem = f"{self.predicate!r} is no condition, and would keep what is not empty"
            raise ValueError(f"{problem}: compare it, as in {self.predicate!r} == …")
        return self

    def process(self, item: T) -> Iterator[T]:
        value = processed_value(item, self.on)
        if self.predicate is None:
            keeps = masked(self._asked(Listed([value])), 1)[0].as_py()
        else:
            try:
                keeps = self.predicate(value)
            except ValueError as fault:
                self.reject(item, value, fault)
                return
        if keeps:
            yield item

    def process_batch(self, batch: Batch[T]) -> Batch[T] | Iterator[Batch[T]]:
        if not len(batch):
            return batch
        field = processed_field(batch, self.on)
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
            return self._where(batch, column, self.predicate)
        if isinstance(column, ReadLines):
            # In pieces: the texts of a whole chunk leave the cache, and their memory is requested again each time.
            return (self._passing(batch, field, part, self.predicate) for part in column.pieces())
        return self._passing(batch, field, column, self.predicate)

    def _where(self, batch: Batch[T], column: Column, predicate: Callable[[Any], Any]) -> Batch[T]:
        # A ValueError does not show which item caused it: the lines after this block find it.
        with suppress(ValueError):
            return batch.where(mask_by_value(predicate, column))
        results, taken = self.tried(predicate, column, ItemsOf(batch))
        return only(batch, list(compress(taken, results)))

    def _passing(self, batch: Batch[T], field: str | None, column: Column, predicate: Callable[[Any], Any]) -> Batch[T]:
        """The items whose values in this column pass the predicate, tested one by one."""
        # They stay decoded in the result, which costs less than finding their bytes again.
        values = column.values()
        # A ValueError does not show which item caused it: the lines after this block find it.
        with suppress(ValueError):
            return remade(batch, field, kept_values_of(column, values, keeping(predicate)(values)))
        results, taken = self.tried(predicate, column, ItemsOf(remade(batch, field, column)))
        passing = list(compress(taken, results))
        return remade(batch, field, picked_of(column, [values[index] for index in passing], passing))

    def _asked(self, column: Column) -> Any:
        assert self.batch is not None, "the validator refuses a filter without a predicate"
        return self.batch(column)


def stands_alone(batch: Batch[T], field: str | None) -> bool:
    """Whether the items differ only in this field, or in themselves if it is None: all other fields are constant."""
    if field is None:
        return batch.made_by is None
    fields = batch.columns.items()
    return field in batch.columns and all(name == field or isinstance(column, Constant) for name, column in fields)


def remade(batch: Batch[T], field: str | None, values: Column) -> Batch[T]:
    """A batch of the same kind of items with these values. The items must differ only in this field."""
    if field is None:
        return Batch.of_column(values)
    columns = {
        name: other.of_length(len(values)) if isinstance(other, Constant) and name != field else values
        for name, other in batch.columns.items()
    }
    return Batch(columns, batch.made_by)
