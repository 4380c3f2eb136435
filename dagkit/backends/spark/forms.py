"""Forms: how the columns of a batch are written as Arrow arrays, so that every value comes back as it was.

A column that Arrow would change has no form: whole numbers beyond 64 bits, texts with lone surrogates, values of
several types. The batch is then written as pickled items.
"""

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from dagkit.schema.batch import ITEM, Batch, whole_by_fields
from dagkit.schema.columns import Arrowed, Column, Constant, Lines, Listed

PLAIN = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(), bytes: pa.binary()}
"""What Arrow gives back as the very type that it was given."""


class NoForm(Exception):
    """These values would not come back from Arrow as they are."""


class Arrays(NamedTuple):
    """The arrays of a batch, which its columns take one after the other, and how many items there are."""

    left: Iterator[pa.Array]
    items: int


class Form(ABC):
    """How one column is made of arrays again."""

    @abstractmethod
    def column(self, arrays: Arrays) -> Column:
        """The column, made of the next arrays."""


@dataclass(frozen=True, slots=True)
class AsArrow(Form):
    """One array, whose values are those of the column."""

    def column(self, arrays: Arrays) -> Column:
        return Arrowed(next(arrays.left))


@dataclass(frozen=True, slots=True)
class AsLines(Form):
    """One array of lines with their delimiters."""

    delimiter: bytes

    def column(self, arrays: Arrays) -> Column:
        return Lines(next(arrays.left), self.delimiter)


@dataclass(frozen=True, slots=True)
class AsConstant(Form):
    """No array: the value stands in the form."""

    pickled: bytes
    """So that forms are equal only where the values are, and their types."""

    def column(self, arrays: Arrays) -> Column:
        return Constant(pickle.loads(self.pickled), arrays.items)  # noqa: S301 - written by our own tasks, and never kept


@dataclass(frozen=True, slots=True)
class AsFields(Form):
    """Values that are made of fields, each of which is a column."""

    made_by: Callable[..., Any]
    fields: tuple[tuple[str, Form], ...]

    def columns(self, arrays: Arrays) -> dict[str, Column]:
        return {name: form.column(arrays) for name, form in self.fields}

    def column(self, arrays: Arrays) -> Column:
        columns = [column.values() for column in self.columns(arrays).values()]
        return Listed(list(map(self.made_by, *columns)))


def written(batch: Batch[Any]) -> tuple[Form, list[pa.Array]]:
    """The form of a batch and the arrays that go with it. Raises `NoForm` where there is none."""
    arrays: list[pa.Array] = []
    if batch.made_by is None:
        form = _column(batch.columns[ITEM], arrays)
    else:
        if not isinstance(batch.made_by, Hashable):
            raise NoForm
        form = AsFields(batch.made_by, tuple((name, _column(c, arrays)) for name, c in batch.columns.items()))
    return form, arrays


def read(form: Form, arrays: Arrays) -> Batch[Any]:
    """The batch of these arrays."""
    if isinstance(form, AsFields):
        return Batch(form.columns(arrays), form.made_by)
    return Batch({ITEM: form.column(arrays)})


def _column(column: Column, arrays: list[pa.Array]) -> Form:
    if isinstance(column, Lines):
        arrays.append(column.ended)
        return AsLines(column.delimiter)
    if isinstance(column, Arrowed):
        arrays.append(column.arrow)
        return AsArrow()
    if isinstance(column, Constant) and (column.value is None or type(column.value) in PLAIN):
        return AsConstant(pickle.dumps(column.value))
    return _values(column.values(), arrays)


def _values(values: Sequence[Any], arrays: list[pa.Array]) -> Form:
    """Values of one plain type, none among them or not, or of one class that is its fields and nothing else."""
    kinds = set(map(type, values))
    if len(kinds) == 1:
        (kind,) = kinds
        fields = whole_by_fields(kind)
        if fields:
            _nothing_beside(values, fields)
            made = [(name, _values([getattr(value, name) for value in values], arrays)) for name in fields]
            return AsFields(kind, tuple(made))
    kinds.discard(type(None))
    if not kinds:
        raise NoForm
    (kind, *others) = kinds
    if others or kind not in PLAIN:
        raise NoForm
    try:
        arrays.append(pa.array(values, PLAIN[kind], from_pandas=False))
    except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError) as unfit:
        raise NoForm from unfit
    return AsArrow()


def _nothing_beside(values: Sequence[Any], fields: tuple[str, ...]) -> None:
    """Objects that have room for more than their fields must not have used it."""
    if hasattr(values[0], "__dict__") and any(len(vars(value)) != len(fields) for value in values):
        raise NoForm
