"""Applying a function to each item."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain, repeat
from typing import Any, Generic, Self

from pydantic import Field, model_validator
from typing_extensions import TypeVar

from dagkit import Arrowed, Batch, Column, Constant, InputPort, Listed, OutputPort, RowOperator, Rows
from dagkit.errors import clipped
from dagkit_operators.contexts.line_columns import picked_of
from dagkit_operators.payloads import VALUE, Record
from dagkit_operators.records.rejecting import ItemsOf, Rejecting
from dagkit_operators.values.expressions import Expression
from dagkit_operators.values.inlined import making
from dagkit_operators.values.masks import only
from dagkit_operators.values.processed import (
    UnaryFunction,
    column_of,
    element_of,
    processed_field,
    processed_value,
    returned_by,
    with_value,
)

S = TypeVar("S", default=Any)
T = TypeVar("T", default=Any)


class Map(Rejecting, RowOperator, Generic[S, T]):
    """Passes on the result of a function for each item.

    The function receives the value of a record, and its result becomes the value of a record of the same block. It
    receives any other item as a whole, unless `on` names a field. An expression such as `value.strip().lower()` may
    replace the function. `batch` is a function from a whole column to a column, array or list of the same length.
    An item for which the function raises ValueError goes to `rejected`.
    """

    kind = "records.map/1"
    rows = Rows.KEPT
    stateless = True
    input = InputPort[S]()
    output = OutputPort[T](main=True)

    function: UnaryFunction | None = Field(default=None, kw_only=False)
    """Called with each value."""
    batch: UnaryFunction | None = None
    """Called with many values at once, instead; returns a column, an array or a list of the same length."""
    on: str | None = None
    """The field that is replaced; None: the value of a record, any other item as a whole."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.function is None) == (self.batch is None):
            raise ValueError("it needs a function, or batch, and not both")
        return self

    def sent_payload(self, port: str, received: Mapping[str, Any]) -> Any:
        made = None if self.function is None else returned_by(self.function)
        return with_value(received.get("input"), made, self.on) if port == "output" else None

    def process(self, item: Any) -> Iterator[Any]:
        value = processed_value(item, self.on)
        if self.function is None:
            made = self._made_at_once(Listed([value])).values()[0]
        else:
            try:
                made = self.function(value)
            except ValueError as fault:
                self.reject(item, value, fault)
                return
        field = self.on or (VALUE if isinstance(item, Record) else None)
        yield made if field is None else replace(item, **{field: made})

    def process_batch(self, batch: Batch[Any]) -> Batch[Any]:
        if not len(batch):
            return batch
        field = processed_field(batch, self.on)
        column = column_of(batch, field)
        if self.function is None:
            return _with(batch, field, self._made_at_once(column))
        # A ValueError does not show which item caused it: the lines after this block find it.
        with suppress(ValueError):
            return _with(batch, field, _made_by(self.function, column))
        results, taken = self.tried(self.function, column, ItemsOf(batch))
        return _with(only(batch, taken), field, picked_of(column, results, taken))

    def _made_at_once(self, column: Column) -> Column:
        assert self.batch is not None, "the validator refuses a map without a function"
        values = as_column(self.batch(column))
        if len(values) != len(column):
            raise ValueError(f"the batch function made {len(values)} values of {len(column)}; one for each is needed")
        return values.placed(column.starts, column.part_start())


class FlatMap(Rejecting, RowOperator, Generic[S, T]):
    """Passes on all results of a function for each item: none, one or many.

    The function receives the value of a record, and each result becomes the value of a record of the same block. It
    receives any other item as a whole, unless `on` names a field. An item for which the function raises ValueError goes
    to `rejected`, and nothing of it is sent.
    """

    kind = "records.flat-map/1"
    rows = Rows.EXPANDED
    stateless = True
    input = InputPort[S]()
    output = OutputPort[T](main=True)

    function: UnaryFunction = Field(default=..., kw_only=False)
    """Called with each value, returns an iterable of results. A text is refused, since its characters would be sent."""
    on: str | None = None
    """The field that is replaced; None: the value of a record, any other item as a whole."""

    def sent_payload(self, port: str, received: Mapping[str, Any]) -> Any:
        made = element_of(returned_by(self.function))
        return with_value(received.get("input"), made, self.on) if port == "output" else None

    def process(self, item: Any) -> Iterator[Any]:
        value = processed_value(item, self.on)
        try:
            made = self._listed(value)
        except ValueError as fault:
            self.reject(item, value, fault)
            return
        field = self.on or (VALUE if isinstance(item, Record) else None)
        yield from made if field is None else (replace(item, **{field: one}) for one in made)

    def process_batch(self, batch: Batch[Any]) -> Batch[Any]:
        field = processed_field(batch, self.on)
        column = column_of(batch, field)
        made, taken = self.tried(self._listed, column, ItemsOf(batch))
        batch = batch if len(taken) == len(batch) else only(batch, taken)
        flat = list(chain.from_iterable(made))
        counts = [len(some) for some in made]
        values = picked_of(column, flat, list(chain.from_iterable(map(repeat, taken, counts))))
        if field is None:
            return Batch.of_column(values)
        fielded = batch.fielded()
        repeated = {name: _repeated(column, counts) for name, column in fielded.columns.items()}
        return Batch(repeated, fielded.made_by).replaced(field, values)

    def _listed(self, value: Any) -> list[Any]:
        return list(_no_text(self.function(value)))


def _with(batch: Batch[Any], field: str | None, made: Column) -> Batch[Any]:
    """The batch with these values in one field, or as its items if no field is given."""
    if field is None:
        return Batch.of_column(made if isinstance(made, Listed) else Listed(made.values()))
    return batch.replaced(field, made)


def _made_by(function: Callable[[Any], Any], column: Column) -> Column:
    if isinstance(function, Expression):
        return function.of(column).placed(column.starts, column.part_start())
    return Listed(making(function)(column.values()), column.starts, column.part_start())


def as_column(made: Any) -> Column:
    """The result of a `batch` function as a column."""
    if isinstance(made, Column):
        return made
    # An Arrow array. For isinstance, Arrow would have to be loaded.
    if hasattr(made, "to_pylist"):
        return Arrowed(made)
    return Listed(made.tolist() if hasattr(made, "tolist") else list(made))


def _no_text(made: Iterable[Any]) -> Iterable[Any]:
    if isinstance(made, str | bytes):
        raise TypeError(
            f"the function made {clipped(made, 60)}, whose letters would be sent; give [text] to send the text"
        )
    return made


def _repeated(column: Column, counts: list[int]) -> Column:
    """Repeat each value by its count."""
    if isinstance(column, Constant):
        return column.of_length(sum(counts))
    return Listed(list(chain.from_iterable(map(repeat, column.values(), counts))))
