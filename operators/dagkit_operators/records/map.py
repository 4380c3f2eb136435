"""Applying a function to each item."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, repeat
from typing import Any, Generic, Self

from pydantic import model_validator
from typing_extensions import TypeVar

from dagkit import Arrowed, Batch, Column, Constant, InputPort, Listed, OutputPort, RowOperator
from dagkit_operators.payloads import VALUE, Record
from dagkit_operators.records.expressions import Expression
from dagkit_operators.records.inlined import making
from dagkit_operators.records.processed import UnaryFunction, column_of, processed_field, processed_value

S = TypeVar("S", default=Any)
T = TypeVar("T", default=Any)


class Map(RowOperator, Generic[S, T]):
    """Passes on the result of a function for each item.

    The function receives the value of a record, and its result becomes the value of a record of the same block. It
    receives any other item as a whole, unless `on` names a field. An expression such as `value.strip().lower()` may
    replace the function. `batch` is a function from a whole column to a column, array or list of the same length.
    """

    kind = "records.map/1"
    stateless = True
    input = InputPort[S]()
    output = OutputPort[T]()

    function: UnaryFunction | None = None
    """Called with each value."""
    batch: UnaryFunction | None = None
    """Called with many values at once, instead; returns a column, an array or a list of the same length."""
    on: str | None = None
    """The field that is replaced; None: the value of a record, any other item as a whole."""

    def __init__(self, function: Callable[[Any], Any] | None = None, /, **properties: Any) -> None:
        super().__init__(**({} if function is None else {"function": function}), **properties)

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.function is None) == (self.batch is None):
            raise ValueError("it needs a function, or batch, and not both")
        return self

    def process(self, item: Any) -> Iterator[Any]:
        value = processed_value(item, self.on)
        made = self._made(Listed([value])).values()[0] if self.function is None else self.function(value)
        field = self.on or (VALUE if isinstance(item, Record) else None)
        yield made if field is None else replace(item, **{field: made})

    def process_batch(self, batch: Batch[Any]) -> Batch[Any]:
        if not len(batch):
            return batch
        field = processed_field(batch, self.on)
        made = self._made(column_of(batch, field))
        return Batch.of(made.values()) if field is None else batch.replaced(field, made)

    def _made(self, column: Column) -> Column:
        if self.batch is not None:
            made = as_column(self.batch(column))
            if len(made) != len(column):
                raise ValueError(f"the batch function made {len(made)} values of {len(column)}; one for each is needed")
            return made
        assert self.function is not None, "the validator refuses a map without a function"
        if isinstance(self.function, Expression):
            return self.function.of(column)
        return Listed(making(self.function)(column.values()))


class FlatMap(RowOperator, Generic[S, T]):
    """Passes on all results of a function for each item: none, one or many.

    The function receives the value of a record, and each result becomes the value of a record of the same block. It
    receives any other item as a whole, unless `on` names a field.
    """

    kind = "records.flat-map/1"
    stateless = True
    input = InputPort[S]()
    output = OutputPort[T]()

    function: UnaryFunction
    """Called with each value, returns an iterable of results. A text is refused, since its characters would be sent."""
    on: str | None = None
    """The field that is replaced; None: the value of a record, any other item as a whole."""

    def __init__(self, function: Callable[[Any], Iterable[Any]] | None = None, /, **properties: Any) -> None:
        super().__init__(**({} if function is None else {"function": function}), **properties)

    def process(self, item: Any) -> Iterator[Any]:
        made = _no_text(self.function(processed_value(item, self.on)))
        field = self.on or (VALUE if isinstance(item, Record) else None)
        yield from made if field is None else (replace(item, **{field: one}) for one in made)

    def process_batch(self, batch: Batch[Any]) -> Batch[Any]:
        field = processed_field(batch, self.on)
        made = [list(_no_text(some)) for some in map(self.function, column_of(batch, field).values())]
        flat = list(chain.from_iterable(made))
        if field is None:
            return Batch.of(flat)
        fielded = batch.fielded()
        counts = [len(some) for some in made]
        repeated = {name: _repeated(column, counts) for name, column in fielded.columns.items()}
        return Batch(repeated, fielded.made_by).replaced(field, Listed(flat))


def as_column(made: Any) -> Column:
    """The result of a `batch` function as a column."""
    if isinstance(made, Column):
        return made
    if hasattr(made, "to_pylist"):  # an Arrow array; isinstance would have to load Arrow
        return Arrowed(made)
    return Listed(made.tolist() if hasattr(made, "tolist") else list(made))


def _no_text(made: Iterable[Any]) -> Iterable[Any]:
    if isinstance(made, str | bytes):
        raise TypeError(f"the function made {made!r:.60}, whose letters would be sent; give [text] to send the text")
    return made


def _repeated(column: Column, counts: list[int]) -> Column:
    """Repeat each value as often as its count says."""
    if isinstance(column, Constant):
        return Constant(column.value, sum(counts))
    return Listed(list(chain.from_iterable(map(repeat, column.values(), counts))))
