"""Forms: how the columns of a batch are written as Arrow arrays, such that every value is restored unchanged.

A column that Arrow would change has no form: integers beyond 64 bits, texts with lone surrogates, values of several
types. The batch is then written as pickled items.
"""

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa

from dagkit.schema.batch import ITEM, Batch
from dagkit.schema.columns import Arrowed, Column, Constant, Lines, Listed
from dagkit.schema.objects import objects_of, whole_by_fields

PLAIN = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(), bytes: pa.binary()}
"""The Python types whose values Arrow restores with the same type."""


class NoForm(Exception):
    """Arrow would not restore these values unchanged."""


class Arrays(NamedTuple):
    """The remaining arrays of a batch, which its columns consume in order, and the number of its items."""

    left: Iterator[pa.Array]
    items: int


class Form(ABC):
    """Describes how to restore a column from arrays."""

    @abstractmethod
    def column(self, arrays: Arrays) -> Column:
        """Restore the column. It consumes the next arrays."""

    def of_part(self) -> "Form":
        """The form of a part of the batch."""
        return self


@dataclass(frozen=True, slots=True)
class AsArrow(Form):
    """One array with the values of the column."""

    def column(self, arrays: Arrays) -> Column:
        return Arrowed(next(arrays.left))


@dataclass(frozen=True, slots=True)
class AsLines(Form):
    """One array of lines with their delimiters."""

    delimiter: bytes
    base: int | None = None
    """The byte offset of the first line in the file that was read; None once lines were filtered out."""

    def column(self, arrays: Arrays) -> Column:
        return Lines(next(arrays.left), self.delimiter, self.base)

    def of_part(self) -> Form:
        return replace(self, base=None)


@dataclass(frozen=True, slots=True)
class AsConstant(Form):
    """No array: the form holds the value."""

    pickled: bytes
    """The value, pickled, so that forms are equal only if the values and their types are: 1, 1.0 and True are equal."""
    path: str = ""

    def column(self, arrays: Arrays) -> Column:
        return Constant(pickle.loads(self.pickled), arrays.items, self.path)  # noqa: S301 - written by our own tasks, and never kept


@dataclass(frozen=True, slots=True)
class AsFields(Form):
    """Objects created from their fields, each of which is a column."""

    made_by: Callable[..., Any]
    fields: tuple[tuple[str, Form], ...]

    def of_part(self) -> Form:
        return replace(self, fields=tuple((name, form.of_part()) for name, form in self.fields))

    def columns(self, arrays: Arrays) -> dict[str, Column]:
        return {name: form.column(arrays) for name, form in self.fields}

    def column(self, arrays: Arrays) -> Column:
        columns = [column.values() for column in self.columns(arrays).values()]
        return Listed(objects_of(self.made_by, columns))


def written(batch: Batch[Any]) -> tuple[Form, list[pa.Array]]:
    """The form of a batch, and its arrays. Raise NoForm if Arrow would change a value."""
    arrays: list[pa.Array] = []
    if batch.made_by is None:
        form = _column(batch.columns[ITEM], arrays)
    else:
        # Forms are keys of a cache: see `Frames`.
        if not isinstance(batch.made_by, Hashable):
            raise NoForm
        form = AsFields(batch.made_by, tuple((name, _column(c, arrays)) for name, c in batch.columns.items()))
    return form, arrays


def read(form: Form, arrays: Arrays) -> Batch[Any]:
    """The batch that was written with this form as these arrays."""
    if isinstance(form, AsFields):
        return Batch(form.columns(arrays), form.made_by)
    return Batch({ITEM: form.column(arrays)})


def _column(column: Column, arrays: list[pa.Array]) -> Form:
    if isinstance(column, Lines):
        arrays.append(column.ended)
        return AsLines(column.delimiter, column.base)
    if isinstance(column, Arrowed):
        arrays.append(column.arrow)
        return AsArrow()
    if isinstance(column, Constant) and (column.value is None or type(column.value) in PLAIN):
        return AsConstant(pickle.dumps(column.value), column.path)
    return _values(column.values(), arrays)


def _values(values: Sequence[Any], arrays: list[pa.Array]) -> Form:
    """Write values of one plain type or None, or of one class whose fields are all that it holds."""
    kinds = set(map(type, values))
    if len(kinds) == 1:
        (kind,) = kinds
        fields = whole_by_fields(kind)
        if fields:
            _refuse_further_attributes(values, fields)
            made = [(name, _values([getattr(value, name) for value in values], arrays)) for name in fields]
            return AsFields(kind, tuple(made))
    kinds.discard(type(None))
    if not kinds:
        raise NoForm
    (kind, *others) = kinds
    if others or kind not in PLAIN:
        raise NoForm
    try:
        # As pandas does it, Arrow would turn NaN into null.
        arrays.append(pa.array(values, PLAIN[kind], from_pandas=False))
    except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError) as unfit:
        raise NoForm from unfit
    return AsArrow()


def _refuse_further_attributes(values: Sequence[Any], fields: tuple[str, ...]) -> None:
    """Raise NoForm if an object has attributes besides its fields."""
    if hasattr(values[0], "__dict__") and any(len(vars(value)) != len(fields) for value in values):
        raise NoForm
